"""Groups against brute force: small worlds in which every assignment can be tried."""

import itertools
import random

import pytest
from msgspec.structs import replace

from service.engine import Cluster, GroupPlacement, check, place_group
from service.model.config import ClusterConfig
from service.model.objects import (
    Affinity,
    Container,
    LabelSelector,
    Node,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodSpec,
    ResourceRequirements,
    TopologySpreadConstraint,
)

NODE_KEY, ZONE_KEY = "host", "zone"


def _term(draw: random.Random) -> PodAffinityTerm:
    return PodAffinityTerm(
        topology_key=draw.choice((NODE_KEY, ZONE_KEY)),
        label_selector=LabelSelector(match_labels={"app": draw.choice("xy")}),
    )


def _spec(draw: random.Random) -> PodSpec:
    together = tuple(_term(draw) for _ in range(draw.randint(0, 2)))
    apart = tuple(_term(draw) for _ in range(draw.choice((0, 0, 1))))
    spread = TopologySpreadConstraint(
        topology_key=draw.choice((NODE_KEY, ZONE_KEY)),
        label_selector=LabelSelector(match_labels={"app": draw.choice("xy")}),
    )
    return PodSpec(
        containers=(
            Container(resources=ResourceRequirements(requests={"cpu": draw.choice("10")})),
        ),
        affinity=Affinity(
            pod_affinity=PodAffinity(required_during_scheduling_ignored_during_execution=together),
            pod_anti_affinity=PodAffinity(
                required_during_scheduling_ignored_during_execution=apart
            ),
        ),
        topology_spread_constraints=(spread,) if draw.random() < 0.3 else (),
    )


def _world(draw: random.Random) -> tuple[Cluster, list[Pod]]:
    cluster = Cluster(ClusterConfig(daemon_namespaces=()))
    count = draw.randint(1, 5)
    for index in range(count):
        labels = {NODE_KEY: f"n{index}"}
        if draw.random() < 0.9:
            labels[ZONE_KEY] = draw.choice("ab")
        room = {"cpu": str(draw.randint(1, 3)), "pods": str(draw.randint(1, 4))}
        cluster.put_node(Node(name=f"n{index}", labels=labels, allocatable=room))
    for index in range(draw.randint(0, 2)):
        node_name = f"n{draw.randrange(count)}"
        cluster.put_pod(_pod(f"there-{index}", _spec(draw), draw.choice("xy"), node_name))
    alike = draw.random() < 0.4
    spec, app = _spec(draw), draw.choice("xy")
    members = []
    for index in range(draw.randint(2, 4)):
        if not alike:
            spec, app = _spec(draw), draw.choice("xy")
        members.append(_pod(f"member-{index}", spec, app))
    return cluster, members


def _pod(name: str, spec: PodSpec, app: str, node_name: str | None = None) -> Pod:
    return Pod(namespace="d", name=name, spec=spec, labels={"app": app}, node_name=node_name)


def _holds_whole(cluster: Cluster, members: list[Pod], names: tuple[str, ...]) -> bool:
    """P10: the whole group applied, each member checked with itself taken out."""
    start = cluster.mark()
    for pod, name in zip(members, names, strict=True):
        cluster.put_pod(replace(pod, node_name=name))
    holds = True
    for pod, name in zip(members, names, strict=True):
        mark = cluster.mark()
        cluster.delete_pod(pod.namespace, pod.name)
        holds = holds and not check(cluster, pod, name)
        cluster.undo(mark)
    cluster.undo(start)
    return holds


@pytest.mark.parametrize("chunk", range(8))
def test_a_group_is_placed_exactly_when_some_assignment_holds(chunk: int) -> None:
    """P10, E07, E08, E09: sound and complete on small worlds, mutual affinity included."""
    placed = refused = 0
    for seed in range(chunk * 40, chunk * 40 + 40):
        cluster, members = _world(random.Random(seed))
        answer = place_group(cluster, members)
        names = [node.name for node in cluster.nodes.nodes if node is not None]
        if isinstance(answer, GroupPlacement):
            placed += 1
            chosen = tuple(each.node_name for each in answer.placements)
            assert _holds_whole(cluster, members, chosen), seed
            continue
        refused += 1
        assignments = itertools.product(names, repeat=len(members))
        assert not any(_holds_whole(cluster, members, each) for each in assignments), seed
    assert placed
    assert refused


def test_hints_are_kept_while_the_whole_group_still_passes_there() -> None:
    """P9, P10: after a lost race a group keeps its nodes without a search."""
    cluster, members = _world(random.Random(3))
    for seed in range(3, 100):
        cluster, members = _world(random.Random(seed))
        first = place_group(cluster, members)
        if isinstance(first, GroupPlacement):
            hints = [each.node_name for each in first.placements]
            again = place_group(cluster, members, hints)
            assert isinstance(again, GroupPlacement)
            assert [each.node_name for each in again.placements] == hints
            return
    pytest.fail("no group could be placed")


def test_a_search_that_runs_out_of_steps_says_so() -> None:
    """The message of a refusal tells a budget that ended from a proof."""
    for seed in range(200):
        cluster, members = _world(random.Random(seed))
        if isinstance(place_group(cluster, members), GroupPlacement):
            continue
        cluster.configure(replace(cluster.config, group_search_steps=1))
        answer = place_group(cluster, members)
        assert not isinstance(answer, GroupPlacement)
        if answer.exhausted:
            return
    pytest.fail("every search ended within one step")
