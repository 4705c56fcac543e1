"""Groups against brute force: thousands of small worlds in which every assignment can be tried."""

import random
from collections.abc import Sequence
from typing import NamedTuple

import pytest
from msgspec.structs import replace

from service.engine import (
    Cluster,
    Colocation,
    GroupPlacement,
    digest,
    place_group,
    place_group_in_steps,
)
from service.model.cluster.cluster_config import ClusterConfig
from service.model.core.primitives import LabelSelector
from service.model.nodes.node import Node
from service.model.pods.pod import (
    Affinity,
    Container,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodSpec,
    ResourceRequirements,
    TopologySpreadConstraint,
)
from tests.seeds import chance, examples

NODE_KEY, ZONE_KEY = "host", "zone"
CHUNKS, CASES = examples(4), 150


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


class _World(NamedTuple):
    cluster: Cluster
    there: list[Pod]
    members: list[Pod]
    alike: bool


PRODUCT_MAX = 1_300
"""Assignments of members that differ; of members that are alike the order does not matter."""
PODS_MAX, NODES_MAX = 6, 8


def _world(draw: random.Random) -> _World:
    cluster = Cluster(ClusterConfig(daemon_namespaces=()))
    alike = draw.random() < 0.5
    count, size = draw.randint(1, NODES_MAX), draw.randint(2, PODS_MAX)
    while not alike and count**size > PRODUCT_MAX:
        count, size = draw.randint(1, NODES_MAX), draw.randint(2, PODS_MAX)
    for index in range(count):
        labels = {NODE_KEY: f"n{index}"}
        if draw.random() < 0.9:
            labels[ZONE_KEY] = draw.choice("abc" if count > 5 else "ab")
        room = {"cpu": str(draw.randint(1, 3)), "pods": str(draw.randint(1, 4))}
        cluster.put_node(Node(name=f"n{index}", labels=labels, allocatable=room))
    there = []
    for index in range(draw.randint(0, 2)):
        node_name = f"n{draw.randrange(count)}"
        there.append(_pod(f"there-{index}", _spec(draw), draw.choice("xy"), node_name))
        cluster.put_pod(there[-1])
    spec, app = _spec(draw), draw.choice("xy")
    members = []
    for index in range(size):
        if not alike:
            spec, app = _spec(draw), draw.choice("xy")
        members.append(_pod(f"member-{index}", spec, app))
    return _World(cluster, there, members, alike)


def _pod(name: str, spec: PodSpec, app: str, node_name: str | None = None) -> Pod:
    return Pod(namespace="d", name=name, spec=spec, labels={"app": app}, node_name=node_name)


class _BruteForce:
    """All assignments, judged by rules written down once more, straight from what they mean.

    What more pods can only make worse (room, anti-affinity) is judged as soon as a pod is put.
    """

    def __init__(self, world: _World) -> None:
        self._nodes = [node for node in world.cluster.nodes.nodes if node is not None]
        self._labels = {node.name: node.labels for node in self._nodes}
        self._room = {
            node.name: (int(node.allocatable["cpu"]), int(node.allocatable["pods"]))
            for node in self._nodes
        }
        self._placed: list[tuple[Pod, str]] = []
        for pod in world.there:
            assert pod.node_name is not None
            self._placed.append((pod, pod.node_name))
        self._members, self._alike = world.members, world.alike
        self._open = self._labels.keys()
        """The nodes that members may have."""

    def holds(self, names: Sequence[str]) -> bool:
        """Whether this assignment of all members breaks no rule of any of them."""
        start = len(self._placed)
        try:
            for pod, name in zip(self._members, names, strict=True):
                if not self._may_stay(pod, name):
                    return False
                self._placed.append((pod, name))
            return self._is_whole(start)
        finally:
            del self._placed[start:]

    def exists(self) -> bool:
        """Whether some assignment holds; those that differ in the names of like pods are one."""
        return self._exists(len(self._placed), 0, 0)

    def exists_within(self, key: str) -> bool:
        """Whether some assignment holds whose nodes all have the same value of a label."""
        for value in {labels[key] for labels in self._labels.values() if key in labels}:
            self._open = {
                n: each for n, each in self._labels.items() if each.get(key) == value
            }.keys()
            if self.exists():
                return True
        return False

    def _exists(self, start: int, index: int, least: int) -> bool:
        if index == len(self._members):
            return self._is_whole(start)
        pod = self._members[index]
        for slot in range(least, len(self._nodes)):
            name = self._nodes[slot].name
            if name not in self._open or not self._may_stay(pod, name):
                continue
            self._placed.append((pod, name))
            found = self._exists(start, index + 1, slot if self._alike else 0)
            self._placed.pop()
            if found:
                return True
        return False

    def _may_stay(self, pod: Pod, name: str) -> bool:
        cpu, pods = _cpu(pod), 1
        for other, other_name in self._placed:
            if other_name == name:
                cpu, pods = cpu + _cpu(other), pods + 1
            if self._apart(pod, name, other, other_name):
                return False
            if self._apart(other, other_name, pod, name):
                return False
        return cpu <= self._room[name][0] and pods <= self._room[name][1]

    def _apart(self, owner: Pod, name: str, other: Pod, other_name: str) -> bool:
        """Whether a pod's anti-affinity is about another, and they share the domain."""
        return any(
            _matches(term.label_selector, other)
            and self._shared(term.topology_key, name, other_name)
            for term in _terms(owner, "pod_anti_affinity")
        )

    def _shared(self, key: str, one: str, other: str) -> bool:
        value = self._labels[one].get(key)
        return value is not None and value == self._labels[other].get(key)

    def _is_whole(self, start: int) -> bool:
        return all(
            self._is_with_its_own(index) and self._is_spread(index)
            for index in range(start, len(self._placed))
        )

    def _is_with_its_own(self, index: int) -> bool:
        pod, name = self._placed[index]
        terms = _terms(pod, "pod_affinity")
        if any(term.topology_key not in self._labels[name] for term in terms):
            return False
        wanted = [
            other_name
            for at, (other, other_name) in enumerate(self._placed)
            if at != index and all(_matches(term.label_selector, other) for term in terms)
        ]
        counted = {
            term.topology_key
            for term in terms
            for other in wanted
            if term.topology_key in self._labels[other]
        }
        if not counted:
            return all(_matches(term.label_selector, pod) for term in terms)
        return all(
            any(self._shared(term.topology_key, name, other) for other in wanted) for term in terms
        )

    def _is_spread(self, index: int) -> bool:
        pod, name = self._placed[index]
        for constraint in pod.spec.topology_spread_constraints:
            key, selector = constraint.topology_key, constraint.label_selector
            counts = {labels[key]: 0 for labels in self._labels.values() if key in labels}
            if key not in self._labels[name]:
                return False
            for at, (other, other_name) in enumerate(self._placed):
                value = self._labels[other_name].get(key)
                if at != index and value is not None and _matches(selector, other):
                    counts[value] += 1
            own = int(_matches(selector, pod))
            if counts[self._labels[name][key]] + own - min(counts.values()) > 1:
                return False
        return True


def _terms(pod: Pod, name: str) -> tuple[PodAffinityTerm, ...]:
    rules: PodAffinity | None = getattr(pod.spec.affinity, name)
    assert rules is not None
    return rules.required_during_scheduling_ignored_during_execution or ()


def _matches(selector: LabelSelector | None, pod: Pod) -> bool:
    assert selector is not None
    assert selector.match_labels is not None
    return selector.match_labels["app"] == pod.labels["app"]


def _cpu(pod: Pod) -> int:
    requests = pod.spec.containers[0].resources.requests
    return int(requests["cpu"])


def _hints(seed: int, world: _World) -> list[str | None]:
    """In half of the worlds none; else any, as another state may have led to."""
    draw = chance(-seed)
    names = [None, *world.cluster.nodes.slots]
    return [draw.choice(names) for _ in world.members] if seed % 2 else []


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_a_group_is_placed_exactly_when_some_assignment_holds(chunk: int) -> None:
    """P10, E07, E08, E09: sound and complete on small worlds, mutual affinity included."""
    placed = refused = 0
    for seed in range(chunk * CASES, (chunk + 1) * CASES):
        world = _world(chance(seed))
        answer = place_group(world.cluster, world.members, _hints(seed, world))
        judge = _BruteForce(world)
        if isinstance(answer, GroupPlacement):
            placed += 1
            assert judge.holds([each.node_name for each in answer.placements]), seed
        elif not answer.exhausted or world.alike:
            refused += 1
            assert not judge.exists(), seed
    assert placed > CASES // 6
    assert refused > CASES // 10


@pytest.mark.parametrize("chunk", range(CHUNKS // 4))
def test_members_share_a_domain_exactly_when_some_assignment_in_one_holds(chunk: int) -> None:
    """E07: a topology constraint is kept, and no domain that has room for all is overlooked."""
    placed = refused = 0
    for seed in range(chunk * CASES, (chunk + 1) * CASES):
        world = _world(chance(seed))
        together = Colocation(ZONE_KEY, tuple(range(len(world.members))))
        before = digest(world.cluster)
        answer = place_group(world.cluster, world.members, _hints(seed, world), [together])
        judge = _BruteForce(world)
        if isinstance(answer, GroupPlacement):
            placed += 1
            names = [each.node_name for each in answer.placements]
            zones = {world.cluster.node(name).labels.get(ZONE_KEY) for name in names}
            assert judge.holds(names), seed
            assert len(zones - {None}) == len(zones) == 1, seed
        elif not answer.exhausted or world.alike:
            refused += 1
            assert not judge.exists_within(ZONE_KEY), seed
        assert digest(world.cluster) == before, seed
    assert placed > CASES // 8
    assert refused > CASES // 8


def racks(**cpus: str) -> Cluster:
    """Nodes named after their racks: `a_1` is in rack a."""
    cluster = Cluster(ClusterConfig(daemon_namespaces=()))
    for name, cpu in cpus.items():
        room = {"cpu": cpu, "memory": "8Gi", "pods": "10"}
        cluster.put_node(Node(name=name, labels={"rack": name[0]}, allocatable=room))
    return cluster


def asking(count: int) -> list[Pod]:
    """So many pods of one cpu."""
    requests = ResourceRequirements(requests={"cpu": "1"})
    spec = PodSpec(containers=(Container(resources=requests),))
    return [_pod(f"member-{index}", spec, "x") for index in range(count)]


def in_one_rack(*members: int, value: str | None = None) -> Colocation:
    return Colocation("rack", members, value)


def test_the_fullest_domain_with_room_for_all_is_taken() -> None:
    cluster = racks(a_1="8", b_1="1", b_2="2", c_1="2")
    answer = place_group(cluster, asking(3), (), [in_one_rack(0, 1, 2)])
    assert isinstance(answer, GroupPlacement)
    assert sorted(each.node_name for each in answer.placements) == ["b_1", "b_2", "b_2"]


def test_where_members_are_already_is_the_only_domain() -> None:
    cluster = racks(a_1="1", b_1="8")
    answer = place_group(cluster, asking(2), (), [in_one_rack(0, 1, value="a")])
    assert not isinstance(answer, GroupPlacement)
    told = "1 node(s) outside of rack=a, where the pod's group has to be"
    assert answer.message == f"0/2 nodes are available: 1 Insufficient cpu, {told}."


def test_without_the_label_there_is_no_domain() -> None:
    cluster = Cluster(ClusterConfig())
    cluster.put_node(Node(name="n1", labels={}, allocatable={"cpu": "8", "pods": "10"}))
    answer = place_group(cluster, asking(1), (), [in_one_rack(0)])
    assert not isinstance(answer, GroupPlacement)
    told = "1 node(s) without the label rack, which the pod's group asks for"
    assert answer.message == f"0/1 nodes are available: {told}."


def test_the_nodes_of_a_lost_race_come_first_in_their_domain() -> None:
    cluster = racks(a_1="3", b_1="3", b_2="3")
    answer = place_group(cluster, asking(2), ("b_2", "b_1"), [in_one_rack(0, 1)])
    assert isinstance(answer, GroupPlacement)
    assert [each.node_name for each in answer.placements] == ["b_2", "b_1"]
    answer = place_group(cluster, asking(2), ("b_2", "a_1"), [in_one_rack(0, 1)])
    assert isinstance(answer, GroupPlacement)
    assert {each.node_name[0] for each in answer.placements} == {"b"}


def test_a_search_of_domains_ends_at_its_budget() -> None:
    cluster = racks(a_1="1", b_1="1", c_1="1")
    cluster.configure(replace(cluster.config, group_search_steps=3))
    answer = place_group(cluster, asking(2), (), [in_one_rack(0, 1)])
    assert not isinstance(answer, GroupPlacement)
    assert (answer.exhausted, answer.tried) == (True, 2)
    assert answer.message.endswith(
        "The search ended at groupSearchSteps; a placement may still exist."
    )


def test_the_domains_of_many_colocations_are_listed_with_a_pause_for_each() -> None:
    cluster = racks(a_1="20", b_1="20")
    together = list(place_group_in_steps(cluster, asking(8), (), [in_one_rack(*range(8))]))
    apart = list(place_group_in_steps(cluster, asking(8), (), [in_one_rack(i) for i in range(8)]))
    assert len(apart) == len(together) + 7


def test_hints_are_kept_while_the_whole_group_still_passes_there() -> None:
    """P9, P10: after a lost race a group keeps its nodes without a search."""
    for seed in range(100):
        cluster, _, members, _ = _world(chance(seed))
        first = place_group(cluster, members)
        if isinstance(first, GroupPlacement):
            hints = [each.node_name for each in first.placements]
            again = place_group(cluster, members, hints)
            assert isinstance(again, GroupPlacement)
            assert [each.node_name for each in again.placements] == hints
            return
    pytest.fail("no group could be placed")


def test_after_a_lost_race_only_members_whose_nodes_are_taken_get_others() -> None:
    """P9, P10: the rest of the group stays where it was to go."""
    cluster = Cluster(ClusterConfig(daemon_namespaces=()))
    for name in ("n0", "n1", "n2", "n3"):
        cluster.put_node(Node(name=name, labels={}, allocatable={"cpu": "1", "pods": "9"}))
    spec = PodSpec(containers=(Container(resources=ResourceRequirements(requests={"cpu": "1"})),))
    members = [Pod(name=f"p{i}", namespace="d", labels={}, spec=spec) for i in range(3)]
    cluster.put_pod(replace(members[0], name="rival", node_name="n1"))
    answer = place_group(cluster, members, ["n3", "n1", "n0"])
    assert isinstance(answer, GroupPlacement)
    assert [each.node_name for each in answer.placements] == ["n3", "n2", "n0"]


def test_a_search_that_runs_out_of_steps_says_so() -> None:
    """The message of a refusal tells a budget that ended from a proof."""
    for seed in range(200):
        cluster, _, members, _ = _world(chance(seed))
        if isinstance(place_group(cluster, members), GroupPlacement):
            continue
        cluster.configure(replace(cluster.config, group_search_steps=1))
        answer = place_group(cluster, members)
        assert not isinstance(answer, GroupPlacement)
        if answer.exhausted:
            return
    pytest.fail("every search ended within one step")


def test_a_long_search_leaves_room_for_others() -> None:
    """Or else the other clusters of the process would wait for its end."""
    for seed in range(200):
        cluster, _, members, _ = _world(chance(seed))
        answer = place_group(cluster, members)
        if isinstance(answer, GroupPlacement) or answer.steps < 100:
            continue
        mark, pauses = cluster.mark(), list(place_group_in_steps(cluster, members))
        assert len(pauses) >= answer.steps // 20
        assert cluster.mark() == mark
        return
    pytest.fail("every search was short")
