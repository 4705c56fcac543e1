"""The check of evictions knows which ones make room for another pod, and which ones only say so."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from service.model.log.commit import Change
from tests.builders import PodBuilder, matching, node, pod
from tests.concurrency.checker.evicting import PREEMPTION, EvictionCheck
from tests.concurrency.checker.state import State

NOW = datetime(2026, 1, 1, tzinfo=UTC)
NO_TIME = timedelta(0)
CONDITION = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": PREEMPTION,
    "message": "preempting",
}


def low(name: str) -> PodBuilder:
    return of(pod(name).request(cpu="1").priority(1).on("n1"))


def waiting(name: str, priority: int = 9, on: str = "n1") -> PodBuilder:
    return of(pod(name).request(cpu="3").priority(priority).nominated(on))


def of(manifest: PodBuilder) -> PodBuilder:
    manifest["metadata"] |= {"uid": manifest["metadata"]["name"]}
    manifest["metadata"] |= {"creationTimestamp": "2026-01-01T00:00:00Z"}
    return manifest


def marked(manifest: PodBuilder) -> PodBuilder:
    leaving = manifest.terminating()
    leaving["status"] = {"conditions": [CONDITION]}
    return leaving


def told_of(*commits: Sequence[Any], by_domains: bool = False) -> list[str]:
    """What the check says of commits of nodes and pods, one after the other."""
    state, told, revision = State(), list[str](), 0
    following = EvictionCheck(
        state, told.append, unseen=NO_TIME, blur=NO_TIME, by_domains=by_domains
    )
    for commit in commits:
        changes = [change(revision + at, each) for at, each in enumerate(commit, start=1)]
        revision += len(changes)
        for each in changes:
            following.see(each, NOW, changes)
            state.apply(each)
        following.settle(NOW)
    return told


def change(revision: int, manifest: Any) -> Change:
    metadata = manifest["metadata"]
    return Change(
        revision=revision,
        verb="Put",
        kind="Pod" if "spec" in manifest and "containers" in manifest["spec"] else "Node",
        namespace=metadata.get("namespace", ""),
        name=metadata["name"],
        uid=metadata.get("uid", ""),
        body=msgspec.json.encode(dict(manifest)),
        node_name=manifest.get("spec", {}).get("nodeName"),
    )


FULL = [node("n1").allocatable(cpu="3", memory="8Gi", pods="9"), low("a"), low("b"), low("c")]


def test_victims_in_the_commit_that_nominates_their_node_are_right() -> None:
    assert told_of(FULL, [marked(low("a")), marked(low("b")), waiting("urgent")]) == []


@pytest.mark.parametrize(
    "commit",
    [
        [marked(low("a"))],
        [marked(low("a")), waiting("urgent", on="n2")],
        [marked(low("a")), waiting("urgent", priority=1)],
    ],
)
def test_a_victim_for_whose_node_no_pod_of_higher_priority_is_nominated_is_told(
    commit: list[Any],
) -> None:
    [told] = told_of(FULL, commit)
    assert told.endswith("but its commit has none for which n1 is nominated")


ZONE = [
    node(name).label(zone="a").allocatable(cpu="3", memory="8Gi", pods="9") for name in ("n1", "n2")
]


@pytest.mark.parametrize(("app", "count"), [("loud", 0), ("meek", 1)])
def test_a_victim_on_another_node_is_right_only_if_it_keeps_the_pod_from_the_nominated_one(
    app: str, count: int
) -> None:
    away = of(pod("away").label(app=app).priority(1).on("n2"))
    quiet = waiting("quiet").require_anti_affinity("zone", matching(app="loud"))
    commits = [*ZONE, away], [marked(away), quiet]
    assert len(told_of(*commits, by_domains=True)) == count
    assert len(told_of(*commits)) == 1


def test_a_nomination_in_a_later_commit_is_too_late() -> None:
    assert len(told_of(FULL, [marked(low("a"))], [waiting("urgent")])) == 1


def test_a_second_round_for_a_pod_whose_victims_are_still_leaving_is_told() -> None:
    first = [marked(low("a")), waiting("urgent")]
    again = of(waiting("urgent").label(written="again"))
    [told] = told_of(FULL, first, [marked(low("b")), again])
    assert told.endswith("but others are leaving for urgent already")


def test_a_pod_is_not_evicted_twice() -> None:
    first = [marked(low("a")), waiting("urgent")]
    again = marked(low("a"))
    again["status"] = {"conditions": [CONDITION | {"message": "in other words"}]}
    assert any("a second time" in each for each in told_of(FULL, first, [again]))


@pytest.mark.parametrize(
    ("blur", "after", "count"),
    [(0.0, 59.6, 1), (0.0, 60.0, 0), (2.0, 59.6, 0), (2.0, 57.9, 1)],
)
def test_evictions_count_for_a_minute_from_when_they_may_have_been_decided(
    blur: float, after: float, count: int
) -> None:
    state, told = State(), list[str]()
    following = EvictionCheck(
        state, told.append, unseen=NO_TIME, blur=timedelta(seconds=blur), keeps_past=False
    )
    for each in map(change, range(1, 5), FULL):
        state.apply(each)
    state.cluster.config["evictionsPerMinute"] = 1
    for name, at in (("a", NOW), ("b", NOW + timedelta(seconds=after))):
        leaving = marked(low(name))
        leaving["status"] = {"conditions": [CONDITION | {"reason": "NodeAffinityViolated"}]}
        eviction = change(5, leaving)
        following.see(eviction, at, [eviction])
        state.apply(eviction)
    assert sum(each.endswith("2 in a minute, 1 are allowed") for each in told) == count
