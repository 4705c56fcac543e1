"""The state of one cluster that decisions look at, in columns and counters, with exact undo."""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import TypeVar

from service.engine.pipeline import Pipeline, pipelines_of
from service.engine.ranking.rank_cache import RowCache
from service.engine.ranking.static_rows import StaticRows
from service.engine.state.classes import MatchIndex, PodClass
from service.engine.state.nodes import NodeTable
from service.engine.state.rules import NodeRules, Use
from service.engine.state.templates import Compiler, Eligibilities
from service.engine.state.views import NodeViews
from service.model.config import ClusterConfig
from service.model.objects import Namespace, Node, ObjectName, Pod

ROW_CACHE_BYTES_MAX = 64 * 1024 * 1024
"""Cached masks and scores; the least recently used go first."""

SITES_KEPT = 32
"""For rules that come; those that are there keep theirs. The least recently asked for go first."""

"""Namespace and name."""


class Resident:
    """A pod that is known, with what it uses where it is placed."""

    __slots__ = ("pod", "pod_class", "ports", "use")

    def __init__(self, pod: Pod, pod_class: PodClass) -> None:
        self.pod = pod
        self.pod_class = pod_class
        template = pod_class.template
        self.use = template.use if pod.resize is None else Use.of(pod.spec, pod.resize)
        self.ports = template.rules.needs.ports


class Cluster:
    """Nodes, namespaces and pods as decisions see them.

    Only pods that are bound to a known node and not finished count. Every change has an exact
    inverse in the undo log: `undo(mark)` returns to the state in which `mark()` was called.
    Single-threaded; knows no clock and does no I/O.
    """

    def __init__(self, config: ClusterConfig | None = None) -> None:
        self.config = config or ClusterConfig()
        self._undo: list[Callable[[], object]] = []
        self._settled = 0
        self._recording = True
        self._pods: dict[ObjectName, Resident] = {}
        self._by_node: dict[str, dict[ObjectName, Resident]] = {}
        self._namespaces: dict[str, Namespace] = {}
        self._start(())

    def _start(self, nodes: tuple[Node, ...]) -> None:
        """Empty structures for the present configuration, then everything that is known."""
        self.nodes = NodeTable()
        self._acquaintance = MatchIndex()
        self._eligibilities = Eligibilities(self.nodes)
        self._compiler = Compiler(self.config, self.nodes, self._acquaintance, self._eligibilities)
        self._pipelines = pipelines_of(self.config)
        self._classes_on: list[dict[PodClass, int]] = []
        self._row_caches: OrderedDict[tuple[NodeRules, Pipeline], RowCache] = OrderedDict()
        self._row_cache_bytes = 0
        self._sites: OrderedDict[tuple[Hashable, Pipeline], StaticRows] = OrderedDict()
        for namespace in self._namespaces.values():
            self._acquaintance.relabel_namespace(namespace.name, dict(namespace.labels))
        for node in nodes:
            self._insert_node(node)
        pods = [resident.pod for resident in self._pods.values()]
        self._pods, self._by_node = {}, {}
        for pod in pods:
            self._insert_pod(pod, (pod.namespace, pod.name))

    # Undo

    def mark(self) -> int:
        """A position in the undo log."""
        return self._settled + len(self._undo)

    def undo(self, mark: int) -> None:
        """Return to the state at that mark, by inverses in reverse order."""
        assert mark >= self._settled
        self._recording = False
        try:
            while self.mark() > mark:
                self._undo.pop()()
        finally:
            self._recording = True

    def settle(self, mark: int) -> None:
        """Changes before that mark are final: forget how to undo them."""
        assert self._settled <= mark <= self.mark()
        del self._undo[: mark - self._settled]
        self._settled = mark

    def _record(self, inverse: Callable[[], object]) -> None:
        if self._recording:
            self._undo.append(inverse)

    # Configuration

    def configure(self, config: ClusterConfig) -> None:
        """Another configuration. Where it changes what is compiled, the cost is that of a load."""
        before = self.config
        self._record(lambda: self.configure(before))
        self.config = config
        if _compiles_alike(before, config):
            return
        self._start(tuple(node for node in self.nodes.nodes if node is not None))

    # Nodes

    def node(self, name: str) -> Node | None:
        slot = self.nodes.slots.get(name)
        return None if slot is None else self.nodes.nodes[slot]

    def put_node(self, node: Node) -> None:
        """Add or replace. Pods that named the node before it came count from now on."""
        before = self.node(node.name)
        if before is None:
            self._record(lambda: self.delete_node(node.name))
            self._insert_node(node)
            for resident in self._by_node.get(node.name, {}).values():
                self._attach(resident, self.nodes.slots[node.name])
            return
        self._record(lambda: self.put_node(before))
        slot = self.nodes.slots[node.name]
        self.recount(slot, -1)
        self._eligibilities.leave(slot)
        self.nodes.forget(slot)
        self.nodes.describe(slot, node)
        self._eligibilities.enter(slot)
        self.recount(slot, 1)

    def delete_node(self, name: str) -> None:
        """Remove; its pods stay known and count again when a node of that name comes.

        Raises KeyError if there is no such node.
        """
        slot = self.nodes.slots[name]
        before = self.nodes.nodes[slot]
        assert before is not None
        self._record(lambda: self.put_node(before))
        self.detach_pods(name, slot)
        self._eligibilities.leave(slot)
        self.nodes.remove(slot)

    def detach_pods(self, name: str, slot: int) -> None:
        """The pods of a node that goes count no longer."""
        for resident in self._by_node.get(name, {}).values():
            self._detach(resident, slot)

    def _insert_node(self, node: Node) -> None:
        slot = self.nodes.add(node)
        if slot == len(self._classes_on):
            self._classes_on.append({})
            self._eligibilities.resize()
        self._eligibilities.enter(slot)

    def recount(self, slot: int, sign: int) -> None:
        """Count a node's pods (1) in the domains that it is in, or no longer (-1)."""
        for pod_class, pods in self._classes_on[slot].items():
            pod_class.count(slot, sign * pods)

    # Namespaces

    def put_namespace(self, namespace: Namespace) -> None:
        """Add or relabel; what namespace selectors select is re-derived at once."""
        self._swap_namespace(namespace.name, namespace)

    def delete_namespace(self, name: str) -> None:
        """Forget the labels; a namespace that was never stored has none."""
        self._swap_namespace(name, None)

    def _swap_namespace(self, name: str, namespace: Namespace | None) -> None:
        before = self._namespaces.pop(name, None)
        self._record(lambda: self._swap_namespace(name, before))
        if namespace is not None:
            self._namespaces[name] = namespace
        labels = None if namespace is None else dict(namespace.labels)
        self._acquaintance.relabel_namespace(name, labels)

    # Pods

    def pod(self, namespace: str, name: str) -> Pod | None:
        resident = self._pods.get((namespace, name))
        return None if resident is None else resident.pod

    def pods(self) -> Iterator[Pod]:
        return (resident.pod for resident in self._pods.values())

    def pods_on(self, node_name: str) -> Iterator[Pod]:
        """Pods bound to a node, known or not, finished ones included."""
        return (resident.pod for resident in self._by_node.get(node_name, {}).values())

    def placed_classes(self) -> tuple[PodClass, ...]:
        """The classes that have pods which count, each with the slots of these."""
        return tuple(each for each in self._acquaintance.classes if each.nodes)

    def known_classes(self) -> tuple[PodClass, ...]:
        """The classes that have pods, placed or not: others are kept for pods that may come."""
        return tuple(each for each in self._acquaintance.classes if each.pods)

    def classes_on(self, slot: int) -> Mapping[PodClass, int]:
        """The pods that count on a node, by class."""
        return self._classes_on[slot]

    @property
    def endures(self) -> bool:
        """Whether any known pod has a rule that is required during execution."""
        return bool(self._compiler.enduring)

    def enduring_classes(self) -> tuple[PodClass, ...]:
        """The classes of known pods with rules that are required during execution."""
        return tuple(self._compiler.enduring)

    def placed_on(self, slot: int) -> Iterator[tuple[Pod, PodClass]]:
        """The pods that count on a node, with their classes."""
        node = self.nodes.nodes[slot]
        residents = {} if node is None else self._by_node.get(node.name, {})
        for resident in residents.values():
            if not resident.pod.finished:
                yield resident.pod, resident.pod_class

    def put_pod(self, pod: Pod) -> ObjectName:
        """Add or replace the pod of that namespace and name; it counts where it is bound.

        Its key is returned, so that whoever keeps pods by theirs need not have one more.
        """
        key = (pod.namespace, pod.name)
        before = self._pods.get(key)
        if before is None:
            self._record(lambda: self._remove_pod(key))
        else:
            old = before.pod
            self._record(lambda: self.put_pod(old))
            self._remove_pod(key)
        self._insert_pod(pod, key)
        return key

    def delete_pod(self, namespace: str, name: str) -> None:
        """Remove; raises KeyError if there is no such pod."""
        before = self._pods[namespace, name].pod
        self._record(lambda: self.put_pod(before))
        self._remove_pod((namespace, name))

    def _insert_pod(self, pod: Pod, key: ObjectName) -> None:
        pod_class = self.class_of(pod)
        self._compiler.hold(pod_class)
        resident = Resident(pod, pod_class)
        if pod.resize is not None:
            self.nodes.track(resource for resource, _ in resident.use.amounts)
        self._pods[key] = resident
        if pod.node_name is None:
            return
        self._by_node.setdefault(pod.node_name, {})[key] = resident
        slot = self.nodes.slots.get(pod.node_name)
        if slot is not None:
            self._attach(resident, slot)

    def _remove_pod(self, key: ObjectName) -> None:
        resident = self._pods.pop(key)
        node_name = resident.pod.node_name
        if node_name is not None:
            on_node = self._by_node[node_name]
            del on_node[key]
            if not on_node:
                del self._by_node[node_name]
            slot = self.nodes.slots.get(node_name)
            if slot is not None:
                self._detach(resident, slot)
        self._compiler.drop(resident.pod_class)

    def _attach(self, resident: Resident, slot: int) -> None:
        self._count(resident, slot, 1)

    def _detach(self, resident: Resident, slot: int) -> None:
        self._count(resident, slot, -1)

    def _count(self, resident: Resident, slot: int, pods: int) -> None:
        """A pod comes to a node (1) or leaves it (-1)."""
        if resident.pod.finished:
            return
        pod_class = resident.pod_class
        self.nodes.use(slot, resident.use.amounts, resident.use.scored, pods)
        if resident.ports:
            self.nodes.use_ports(slot, resident.ports, pods)
        _tally(pod_class.nodes, slot, pods)
        _tally(self._classes_on[slot], pod_class, pods)
        pod_class.count(slot, pods)

    # What decisions ask

    def class_of(self, pod: Pod) -> PodClass:
        return self._compiler.class_of(pod)

    def pipeline(self, scheduler_name: str) -> Pipeline | None:
        """The plugins of a profile; None if there is no such profile."""
        return self._pipelines.get(scheduler_name)

    def rows(self, rules: NodeRules, pipeline: Pipeline) -> RowCache:
        """The cached masks and scores of these rules, brought up to date.

        Nodes that the rules name are not told from others.
        """
        rules = rules.anywhere or rules
        key = (rules, pipeline)
        cache = self._row_caches.get(key)
        if cache is None:
            cache = self._row_caches[key] = RowCache(
                self.nodes, rules, pipeline, self._site(rules, pipeline)
            )
        else:
            self._row_caches.move_to_end(key)
        cache.refresh()
        grown = cache.size_in_bytes - cache.bytes_counted
        if grown:
            cache.bytes_counted += grown
            self._row_cache_bytes += grown
            self._evict_rows()
        return cache

    # What is kept

    def kept_rows(self) -> tuple[RowCache, ...]:
        """What is kept of rules that were asked for, the least recently used first."""
        return tuple(self._row_caches.values())

    @property
    def kept_rows_bytes(self) -> int:
        """What all that counts for towards its bound."""
        return self._row_cache_bytes

    def forget_rows(self) -> None:
        """Drop all that is kept between two placements but the counters: it is worked out anew."""
        self._row_caches.clear()
        self._row_cache_bytes = 0
        self._sites.clear()
        self.nodes.views = NodeViews()

    def interned(self) -> dict[str, int]:
        """How many things of each kind are known, for pods that there are or that may come again."""
        return {
            **self._compiler.interned(),
            "matchers by label pair": self._acquaintance.indexed,
            "sets of nodes": len(self._eligibilities),
        }

    def _site(self, rules: NodeRules, pipeline: Pipeline) -> StaticRows:
        key = (rules.site, pipeline)
        site = self._sites.get(key)
        if site is None:
            site = self._sites[key] = StaticRows(self.nodes, rules, pipeline)
            if len(self._sites) > SITES_KEPT:
                self._sites.popitem(last=False)
        else:
            self._sites.move_to_end(key)
        return site

    def _evict_rows(self) -> None:
        while self._row_cache_bytes > ROW_CACHE_BYTES_MAX and len(self._row_caches) > 1:
            _, oldest = self._row_caches.popitem(last=False)
            self._row_cache_bytes -= oldest.bytes_counted


_NEVER_COMPILED = frozenset(
    (
        "place_pending_pods",
        "group_search_steps",
        "priority_classes",
        "limited_resources",
        "opportunity_cost_basis",
        "restrict_all_namespaces_anti_affinity",
        "node_topology_keys",
        "trusted_namespaces",
        "affinity_violation_grace_seconds",
        "anti_affinity_victim",
        "evictions_per_minute",
    )
)
"""Settings that others read, or that are read at the time of use."""


def _compiles_alike(one: ClusterConfig, other: ClusterConfig) -> bool:
    return all(
        getattr(one, field) == getattr(other, field)
        for field in ClusterConfig.__struct_fields__
        if field not in _NEVER_COMPILED
    )


K = TypeVar("K", int, PodClass)


def _tally(counts: dict[K, int], key: K, pods: int) -> None:
    """Add to a count; what comes to zero is not kept."""
    after = counts.get(key, 0) + pods
    if after:
        counts[key] = after
    else:
        del counts[key]
