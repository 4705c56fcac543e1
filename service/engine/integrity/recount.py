"""A recount of an engine's derived state: nodes, counters, ranks, trees, levels, and views.

Derived state follows from the nodes and pods, and is repaired after each change. A forgotten repair
makes all later decisions wrong without any other symptom. A recount detects this. It proceeds in
short steps, and compares the current state in each, so the cluster may change between steps.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import NamedTuple

import numpy as np

from service.engine.cluster import Cluster
from service.engine.ranking.affinity_ranks import AffinityRanks
from service.engine.ranking.rank_cache import RowCache
from service.engine.ranking.score_tree import BestNodeTree
from service.engine.state.nodes.counters import DomainCounter, SpreadCounter
from service.engine.state.nodes.node_rules import PodUsage
from service.engine.state.nodes.node_table import AMOUNT_MAX, HostPort, NodeTable, without_times
from service.engine.state.nodes.topology import NO_DOMAIN
from service.engine.state.pods.classes import OwnedTerm, PodClass
from service.model.core.quantity import amounts
from service.model.nodes.node import Node
from service.model.pods.cluster_topology import topology_value
from service.model.pods.pod import Pod, PodSpec
from service.model.pods.requests import host_ports

SLOTS_A_STEP = 2_048
"""The number of nodes whose ranks are checked per step, taking about a quarter of a millisecond."""
BRANCHES_A_STEP = 1_024
PLACES_A_STEP = 2_048
"""The number of places recounted per step; a place is all pods of one class on one node."""
ATTEMPTS_MAX = 3
"""The maximum number of attempts to recount one counter in a cluster that keeps changing."""
SPECS_MAX = 4_096
"""The maximum number of specs with cached usage."""

Stored = Callable[[str, str], Pod | None]
"""Finds a stored pod by namespace and name."""
Counted = Mapping[int, int]
"""The number of pods in each domain, omitting zeros."""


class Mistake(NamedTuple):
    """An incorrect part of an engine's derived state."""

    part: str
    """The incorrect part, one of `PARTS`."""
    detail: str
    """A description for people."""


PARTS = ("node", "node set", "pod", "counter", "ranks", "tree", "levels", "view")
"""The parts of the state that are recounted."""

Step = Mistake | None
"""The mistake that a step found, or None."""


def recount_in_steps(
    cluster: Cluster, stored: Stored, stored_pods: Callable[[], int]
) -> Iterator[Step]:
    """Recount everything once, in steps that mostly take less than half a millisecond.

    A step may run whenever no change is in progress. `stored` and `stored_pods` access the objects
    that the engine should count.
    """
    yield from _rows(cluster)
    yield from (_of("view", view.holds(), "for each node") for view in cluster.nodes.views.cached())
    yield from (_of("node set", verdict, "for spread") for verdict in cluster.node_set_verdicts())
    yield from _matching(cluster)
    yield from _owned(cluster)
    yield from _Nodes(cluster, stored).steps()
    yield from _unready(cluster)
    counted, wanted = cluster.pod_count, stored_pods()
    yield _of("pod", counted == wanted, f"{counted} are known, and {wanted} are stored")


def _of(part: str, holds: bool, detail: str) -> Step:  # noqa: FBT001 - it is the verdict
    return None if holds else Mistake(part, detail)


# Ranks


def _rows(cluster: Cluster) -> Iterator[Step]:
    for number, rows in enumerate(cluster.cached_rows()):
        yield from _ranks(cluster.nodes, rows, number)
        for tree in rows.trees:
            yield from _tree(rows, tree, number)
        yield _refreshed("ranks", rows, rows.feasible_holds, f"feasible nodes of row {number}")
        for affinity in rows.affinities:
            yield _refreshed(
                "levels", rows, partial(_holds_levels, rows, affinity), f"row {number}"
            )


def _refreshed(part: str, rows: RowCache, holds: Callable[[], bool], detail: str) -> Step:
    """Refresh ranks and check them, unless all of them are about to be rebuilt."""
    if not rows.is_repairable:
        return None
    rows.refresh()
    return _of(part, holds(), detail)


def _ranks(nodes: NodeTable, rows: RowCache, number: int) -> Iterator[Step]:
    for start in range(0, nodes.size, SLOTS_A_STEP):
        slots = np.arange(start, min(start + SLOTS_A_STEP, nodes.size))
        yield _refreshed("ranks", rows, partial(rows.ranks_hold, slots), f"row {number}")


def _tree(rows: RowCache, tree: BestNodeTree, number: int) -> Iterator[Step]:
    for start in range(0, tree.size, BRANCHES_A_STEP):
        stop = start + BRANCHES_A_STEP
        yield _refreshed(
            "tree",
            rows,
            partial(_holds, rows, tree, start, stop),
            f"a tree of row {number}",
        )


def _holds(rows: RowCache, tree: BestNodeTree, start: int, stop: int) -> bool:
    """Return whether a part of a tree is correct, ignoring trees that are no longer in use."""
    key = tree.layout.key
    if key is not None and tree.layout.version != key.version:
        return True
    return not any(current is tree for current in rows.trees) or tree.holds(start, stop)


def _holds_levels(rows: RowCache, affinity: AffinityRanks) -> bool:
    return affinity.holds(rows.ranks)


# Counters


def _matching(cluster: Cluster) -> Iterator[Step]:
    """Recount the pods that each matcher matches, in each domain."""
    for entry in cluster.matchers():
        for counter in tuple(entry.counters.values()):
            yield from _counter(cluster, counter, partial(tuple, entry.classes))


def _owned(cluster: Cluster) -> Iterator[Step]:
    """Recount the pods that have each term; stop early if the cluster changes."""
    version = cluster.version
    owners: defaultdict[OwnedTerm, list[PodClass]] = defaultdict(list)
    for place, pod_class in enumerate(cluster.known_classes()):
        for term in pod_class.template.owned:
            owners[term].append(pod_class)
        if place % PLACES_A_STEP == PLACES_A_STEP - 1:
            yield None
    for term, classes in owners.items():
        for step in _counter(cluster, term.counter, partial(tuple, classes)):
            if cluster.version != version:
                return
            yield step


def _counter(
    cluster: Cluster, counter: DomainCounter, classes: Callable[[], tuple[PodClass, ...]]
) -> Iterator[Step]:
    """Recount the pods of some classes, restarting if the cluster changes between steps."""
    for _ in range(ATTEMPTS_MAX):
        version, counts = cluster.version, defaultdict[int, int](int)
        for places in _batches(classes()):
            if cluster.version != version:
                break
            _add(counter, places, counts)
            yield None
        if cluster.version == version:
            yield _of("counter", _is(counter, counts), f"by {counter.key.name or 'node'}")
            return


def _batches(classes: tuple[PodClass, ...]) -> Iterator[list[tuple[int, int]]]:
    """Yield (slot, number of pods) pairs of some classes, in lists of bounded length."""
    places: list[tuple[int, int]] = []
    for pod_class in classes:
        places += pod_class.nodes.items()
        while len(places) >= PLACES_A_STEP:
            yield places[:PLACES_A_STEP]
            del places[:PLACES_A_STEP]
    yield places


def _add(counter: DomainCounter, places: list[tuple[int, int]], counts: dict[int, int]) -> None:
    included_nodes = counter.included_nodes if isinstance(counter, SpreadCounter) else None
    cells = counter.key.cells
    for slot, pods in places:
        domain = cells[slot]
        if domain != NO_DOMAIN and (included_nodes is None or included_nodes.admits(slot)):
            counts[domain] += pods


def _is(counter: DomainCounter, expected: Counted) -> bool:
    counts = counter.counts
    held = {domain: int(counts[domain]) for domain in counts.nonzero()[0].tolist()}
    return held == expected and counter.total == sum(expected.values())


def _unready(cluster: Cluster) -> Iterator[Step]:
    """Recount the pods of each class that are not ready; stop early if the cluster changes."""
    version, unready = cluster.version, Counter[PodClass]()
    for slot in tuple(cluster.nodes.slots.values()):
        unready.update(pod_class for pod, pod_class in cluster.placed_on(slot) if pod.unready)
        yield None
        if cluster.version != version:
            return
    for pod_class in cluster.known_classes():
        if pod_class.unready != unready[pod_class]:
            counted, wanted = pod_class.unready, unready[pod_class]
            yield Mistake("pod", f"{counted} of a class are not ready, and {wanted} report so")


# Nodes


class _Nodes:
    """Recounts each node from its pods, and compares these pods with the stored objects."""

    def __init__(self, cluster: Cluster, stored: Stored) -> None:
        self._cluster = cluster
        self._stored = stored
        self._uses: dict[int, tuple[PodSpec, PodUsage]] = {}
        """The usage of each spec, by its id. Holding the spec keeps its id from being reused."""

    def steps(self) -> Iterator[Step]:
        """Recount node by node, leaving nodes added between steps to the next round."""
        for name in list(self._cluster.nodes.slots):
            slot = self._cluster.nodes.slots.get(name)
            if slot is not None:
                yield self._step(name, slot)

    def _step(self, name: str, slot: int) -> Step:
        for pod in self._cluster.pods_of(name):
            if self._stored(pod.namespace, pod.name) is not pod or pod.node_name != name:
                return Mistake("pod", f"{pod.namespace}/{pod.name} on {name}")
        node = self._cluster.nodes.nodes[slot]
        wrong = "its name" if node is None else self._of_node(node, slot) or self._of_pods(slot)
        return Mistake("node", f"{name}: {wrong}") if wrong else None

    def _of_node(self, node: Node, slot: int) -> str:
        """Return the first column that disagrees with the node, or ""."""
        nodes = self._cluster.nodes
        there = {
            name: min(amount, AMOUNT_MAX) for name, amount in amounts(node.allocatable).items()
        }
        if there.pop("pods", 0) != nodes.allowed_pods[slot]:
            return "allowed pods"
        for resource in nodes.resources():
            if nodes.allocatable_at(resource, slot) != there.pop(resource, 0):
                return f"allocatable {resource}"
        for key in nodes.keys.values():
            domain = key.cells[slot]
            value = None if domain == NO_DOMAIN else key.values.values[domain]
            if value != topology_value(node.labels, key.name):
                return f"label {key.name}"
        if nodes.taint_sets.values[nodes.taint_set[slot]] != without_times(node.taints):
            return "taints"
        if nodes.feature_sets.values[nodes.feature_set[slot]] != node.declared_features:
            return "declared features"
        return "unschedulable" if bool(nodes.unschedulable[slot]) != node.unschedulable else ""

    def _of_pods(self, slot: int) -> str:
        """Return the first incorrect sum over a node's pods, or ""."""
        nodes = self._cluster.nodes
        requested, classes = Counter[str](), Counter[PodClass]()
        ports = Counter[HostPort]()
        scored_cpu = scored_memory = 0
        for pod, pod_class in self._cluster.placed_on(slot):
            use = self._use_of(pod)
            requested.update(dict(use.amounts))
            scored_cpu, scored_memory = scored_cpu + use.scored[0], scored_memory + use.scored[1]
            classes[pod_class] += 1
            ports.update(host_ports(pod.spec))
        if nodes.pods[slot] != classes.total():
            return "number of pods"
        for resource in nodes.resources():
            if nodes.requested_at(resource, slot) != requested[resource]:
                return f"requested {resource}"
        if (nodes.scored_at("cpu", slot), nodes.scored_at("memory", slot)) != (
            scored_cpu,
            scored_memory,
        ):
            return "scored amounts"
        if (nodes.ports[slot] or Counter()) != ports:
            return "host ports"
        return self._of_classes(slot, classes)

    def _of_classes(self, slot: int, classes: Counter[PodClass]) -> str:
        if self._cluster.classes_on(slot) != classes:
            return "classes of pods"
        for pod_class, pods in classes.items():
            if pod_class.nodes.get(slot) != pods:
                return "pods of a class"
            if next(iter(pod_class.nodes)) == slot and not self._nodes_match(pod_class):
                return "nodes of a class"
        return ""

    def _nodes_match(self, pod_class: PodClass) -> bool:
        """Return whether each node of a class counts the same number of its pods."""
        return all(
            self._cluster.classes_on(slot).get(pod_class) == pods
            for slot, pods in pod_class.nodes.items()
        )

    def _use_of(self, pod: Pod) -> PodUsage:
        if pod.resize is not None:
            return PodUsage.of(pod.spec, pod.resize, self._cluster.resize_rules)
        known = self._uses.get(id(pod.spec))
        if known is None:
            if len(self._uses) >= SPECS_MAX:
                self._uses.clear()
            known = self._uses[id(pod.spec)] = (pod.spec, PodUsage.of(pod.spec))
        return known[1]
