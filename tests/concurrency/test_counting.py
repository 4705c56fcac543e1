"""The check by counters finds what is broken, and nothing where nothing is."""

from uuid import UUID

import msgspec
import pytest

from service.model.log.commit import Change, CommitInfo
from tests.builders import matching, node, pod
from tests.concurrency.checker.counting import check_by_counting
from tests.concurrency.checker.history import Call, History

APP = matching(app="x")
NODES = [node(f"n{i}").label(zone=f"z{i % 2}", host=f"n{i}").allocatable(cpu="2") for i in range(4)]


def member(name):
    return pod(name).label(app="x").request(cpu="1")


def history(*commits, groups=()):
    """Nodes, then one commit each of pods on nodes; None as the node deletes the pod."""
    changes = [change(i, "Node", each, None) for i, each in enumerate(NODES, start=1)]
    infos = [info(1, len(NODES))]
    for commit in commits:
        first = len(changes) + 1
        changes += [
            change(first + i, "Pod", each, node_name) for i, (each, node_name) in enumerate(commit)
        ]
        infos.append(info(first, len(changes)))
    calls = [
        Call(
            number=number,
            client="c",
            operation=number,
            action="place",
            asked={"pods": [("Pod", "default", name) for name in names], "group": True},
            called=0,
            returned=1,
            outcome="ok",
            status="ok",
        )
        for number, names in enumerate(groups)
    ]
    return History(calls=calls, commits=infos, changes=changes, granted=len(NODES))


def change(revision, kind, manifest, node_name):
    body = manifest.on(node_name) if node_name else manifest
    return Change(
        revision=revision,
        verb="Delete" if kind == "Pod" and node_name is None else "Put",
        kind=kind,
        namespace=manifest["metadata"].get("namespace", ""),
        name=manifest["metadata"]["name"],
        uid="",
        body=msgspec.json.encode(body),
        created=True,
        node_name=node_name,
    )


def info(first, last):
    commit_id = UUID(int=first)
    return CommitInfo(
        commit_id=commit_id,
        parent=None,
        first=first,
        last=last,
        planned_at=first - 1,
        kind="",
        at=0,
    )


TOGETHER = [member(f"p{i}").require_affinity("zone", APP) for i in range(3)]
APART = [member(f"p{i}").require_anti_affinity("host", APP) for i in range(3)]
EVEN = [member(f"p{i}").spread(1, "zone", APP) for i in range(3)]
PLAIN = [member(f"p{i}") for i in range(3)]


@pytest.mark.parametrize(
    ("placed", "broken"),
    [
        ([(PLAIN[0], "n0"), (PLAIN[1], "n0")], None),
        ([(PLAIN[0], "n0"), (PLAIN[1], "n0"), (PLAIN[2], "n0")], "A1"),
        ([(PLAIN[0], "n0"), (PLAIN[1], "n0"), (PLAIN[1], None), (PLAIN[2], "n0")], None),
        ([(TOGETHER[0], "n0"), (TOGETHER[1], "n2")], None),
        ([(TOGETHER[0], "n0"), (TOGETHER[1], "n1")], "A2"),
        ([(TOGETHER[0], "n0"), (TOGETHER[0], None), (TOGETHER[1], "n1")], None),
        ([(PLAIN[0], "n0"), (TOGETHER[1], "n1")], "A2"),
        ([(APART[0], "n0"), (APART[1], "n1")], None),
        ([(APART[0], "n0"), (APART[1], "n0")], "A2"),
        ([(APART[0], "n0"), (PLAIN[1], "n0")], "A2"),
        ([(PLAIN[0], "n0"), (APART[1], "n0")], "A2"),
        ([(EVEN[0], "n0"), (EVEN[1], "n1"), (EVEN[2], "n2")], None),
        ([(EVEN[0], "n0"), (EVEN[1], "n2")], "A2"),
    ],
)
def test_single_placements(placed, broken):
    tally = check_by_counting(history(*([each] for each in placed)))

    assert {each.invariant for each in tally.violations} == ({broken} if broken else set())
    assert tally.placements == sum(node_name is not None for _, node_name in placed)


@pytest.mark.parametrize(
    ("commits", "broken"),
    [
        ([[(TOGETHER[0], "n0"), (TOGETHER[1], "n2")]], None),
        ([[(TOGETHER[0], "n0"), (TOGETHER[1], "n1")]], "A2"),
        ([[(TOGETHER[0], "n0")], [(TOGETHER[1], "n2")]], "A9"),
        ([[(TOGETHER[0], "n0")]], "A9"),
        ([], None),
    ],
)
def test_groups_are_whole_and_right_with_all_their_members(commits, broken):
    tally = check_by_counting(history(*commits, groups=[("p0", "p1")]))

    assert {each.invariant for each in tally.violations} == ({broken} if broken else set())


def test_what_it_does_not_know_it_refuses():
    with pytest.raises(NotImplementedError):
        check_by_counting(history([(PLAIN[0].node_selector(zone="z0"), "n0")]))
