"""One cluster's scheduling state, held in columns and counters, with exact undo."""

from collections import OrderedDict
from collections.abc import Callable, Generator, Hashable, Iterable, Iterator, Mapping
from typing import TypeVar

from msgspec.structs import replace

from service.engine.profiles.profile import Profile, profiles_of
from service.engine.ranking.rank_cache import RowCache
from service.engine.ranking.static_rows import StaticRows
from service.engine.state.devices.device_table import DeviceTable, with_allocation
from service.engine.state.nodes.counters import DomainCounter, NodeViews
from service.engine.state.nodes.node_rules import NodeRules, PodUsage
from service.engine.state.nodes.node_table import NodeTable
from service.engine.state.pods.classes import MatcherEntry, MatchIndex, PodClass
from service.engine.state.pods.compiler import Compiler, InclusionSets, ObjectRules
from service.engine.state.pods.data_sets import DataSets
from service.engine.state.pods.default_spread import DefaultSelectors
from service.engine.state.pods.importance import ImportanceTable, PlacedPod
from service.engine.state.pods.matchers import Subject
from service.engine.state.pods.other_objects import AuxiliaryObjects
from service.engine.state.volumes.volume_table import VolumeTable
from service.model.cluster.cluster_config import ClusterConfig
from service.model.core.kind import DeclaredObject
from service.model.core.primitives import LabelSelector, ObjectName, OwnerReference, Partial
from service.model.devices.device import ClaimAllocation, DeviceObject, ResourceClaim, nodes_of
from service.model.devices.device_kinds import device_object
from service.model.nodes.node import Namespace, Node
from service.model.pods.pod import Pod
from service.model.volumes.volume import ClaimRef, VolumeObject
from service.model.volumes.volume_kinds import volume_object

ROW_CACHE_BYTES_MAX = 64 * 1024 * 1024
"""The size limit of all cached masks and scores, in bytes; the least recently used are evicted
first."""

STATIC_ROWS_MAX = 32
"""The maximum number of cached `StaticRows`; the least recently used are evicted first. Cached
ranks keep those that they use alive."""


class PodInfo:
    """A known pod, with its class and the resources that it uses on its node."""

    __slots__ = ("pod", "pod_class", "ports", "use")

    def __init__(self, pod: Pod, pod_class: PodClass, use: PodUsage) -> None:
        self.pod = pod
        self.pod_class = pod_class
        template = pod_class.template
        self.use = use
        self.ports = template.rules.needs.ports


class Cluster:
    """A cluster's nodes, namespaces, pods, and auxiliary objects, as scheduling decisions see them.

    Pods count only if they are bound to a known node and not finished. Every change has an exact
    inverse in the undo log: `undo(mark)` returns to the state at the call of `mark()`. A cluster
    may be used by one thread only; it has no clock and does no I/O.
    """

    def __init__(self, config: ClusterConfig | None = None) -> None:
        self.config = config or ClusterConfig()
        self._undo: list[Callable[[], object]] = []
        self._committed = 0
        self.position = 0
        """The number of changes made and not undone."""
        self.version = 0
        """Incremented by every change and undo, so that equal versions mean equal state."""
        self._recording = True
        self._pods: dict[ObjectName, PodInfo] = {}
        self._by_node: dict[str, dict[ObjectName, PodInfo]] = {}
        self.nominated: dict[str, dict[ObjectName, Pod]] = {}
        """Pending pods by the name of the node that they are nominated for; other nodes have no
        entry."""
        self.reserved: dict[ObjectName, tuple[str, Pod]] = {}
        """Moved pods, each with the name of the node on which room is reserved for its replacement.
        """
        self._namespaces: dict[str, Namespace] = {}
        self.objects = AuxiliaryObjects()
        """The objects that rules read besides nodes, namespaces, and pods."""
        self._selectors = DefaultSelectors()
        self._start(())

    def _start(self, nodes: tuple[Node, ...]) -> None:
        """Create empty structures for the configuration, then add all known objects."""
        self.nodes = NodeTable()
        self.resize_rules = self.config.resize_rules
        """How pods count that are resized in place."""
        self._match_index = MatchIndex()
        self._inclusion_sets = InclusionSets(self.nodes)
        self.volumes = VolumeTable(self.nodes)
        """The volume objects, and the placed pods that use them."""
        self.devices = DeviceTable(
            self.nodes, self.config.device_search_steps, self.config.scheduler_version
        )
        """The device objects, and the devices in use."""
        self.profiles = profiles_of(self.config)
        """The plugins of each profile, by scheduler name."""
        self._compiler = Compiler(
            self.config,
            {name: profile.rules for name, profile in self.profiles.items()},
            self.nodes,
            self._match_index,
            self._inclusion_sets,
            ObjectRules(self._selectors, self.volumes, self.devices, DataSets(self.objects)),
            self._forget_rules,
        )
        self._classes_on: list[dict[PodClass, int]] = []
        self._row_caches: OrderedDict[tuple[NodeRules, Profile], RowCache] = OrderedDict()
        self._row_cache_bytes = 0
        self._static_rows: OrderedDict[tuple[Hashable, Profile], StaticRows] = OrderedDict()
        self._importance: ImportanceTable | None = None
        for kept in self.objects:
            self._enter_object(kept)
        for namespace in self._namespaces.values():
            self._match_index.relabel_namespace(namespace.name, dict(namespace.labels))
        for node in nodes:
            self._insert_node(node)
        pods = [info.pod for info in self._pods.values()]
        self._pods, self._by_node, self.nominated = {}, {}, {}
        for pod in pods:
            self._insert_pod(pod, (pod.namespace, pod.name))

    # Undo

    def mark(self) -> int:
        """Return the current position in the undo log."""
        return self.position

    def undo(self, mark: int) -> None:
        """Return to the state at a mark by applying the recorded inverses in reverse order."""
        assert mark >= self._committed
        self.version += 1
        self._recording = False
        try:
            while self.position > mark:
                self.position -= 1
                self._undo.pop()()
        finally:
            self._recording = True

    def commit_until(self, mark: int) -> None:
        """Make the changes before a mark permanent by discarding their inverses."""
        assert self._committed <= mark <= self.position
        del self._undo[: mark - self._committed]
        self._committed = mark
        self._compiler.commit_until(mark)

    def _record(self, inverse: Callable[[], object]) -> None:
        self.version += 1
        if self._recording:
            self._undo.append(inverse)
            self.position += 1

    # Configuration

    def configure(self, config: ClusterConfig) -> None:
        """Apply a new configuration; changing a compiled setting rebuilds the whole state."""
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
        """Add or replace a node. Pods already bound to a new node start to count."""
        before = self.node(node.name)
        if before is None:
            self._record(lambda: self.delete_node(node.name))
            self._insert_node(node)
            for info in self._by_node.get(node.name, {}).values():
                self._attach(info, self.nodes.slots[node.name])
            return
        self._record(lambda: self.put_node(before))
        slot = self.nodes.slots[node.name]
        self.recount(slot, -1)
        self._inclusion_sets.leave(slot)
        self.nodes.forget(slot)
        self.nodes.describe(slot, node)
        self._inclusion_sets.enter(slot)
        self.devices.touch(slot)
        self.recount(slot, 1)

    def delete_node(self, name: str) -> None:
        """Remove a node. Its pods stay known, and count again once a node of that name is added.

        Raises:
            KeyError: there is no such node.
        """
        slot = self.nodes.slots[name]
        before = self.nodes.nodes[slot]
        assert before is not None
        self._record(lambda: self.put_node(before))
        self.detach_pods(name, slot)
        self._inclusion_sets.leave(slot)
        self.nodes.remove(slot)
        self.volumes.limits.touch((slot,))
        self.devices.touch(slot)

    def detach_pods(self, name: str, slot: int) -> None:
        """Stop counting the pods of a node that is about to be removed."""
        for info in self._by_node.get(name, {}).values():
            self._detach(info, slot)

    def _insert_node(self, node: Node) -> None:
        slot = self.nodes.add(node)
        if slot == len(self._classes_on):
            self._classes_on.append({})
            self._inclusion_sets.resize()
        self._inclusion_sets.enter(slot)
        self.volumes.limits.touch((slot,))
        self.devices.touch(slot)

    def recount(self, slot: int, sign: int) -> None:
        """Add a node's pods to the counters of its domains (`sign` = 1), or subtract them (-1)."""
        for pod_class, pods in self._classes_on[slot].items():
            add_to_counters(pod_class, slot, sign * pods)

    # Namespaces

    def put_namespace(self, namespace: Namespace) -> None:
        """Add a namespace or change its labels, and re-evaluate namespace selectors."""
        self._swap_namespace(namespace.name, namespace)

    def delete_namespace(self, name: str) -> None:
        """Remove a namespace's labels, if any are stored."""
        self._swap_namespace(name, None)

    def _swap_namespace(self, name: str, namespace: Namespace | None) -> None:
        before = self._namespaces.pop(name, None)
        self._record(lambda: self._swap_namespace(name, before))
        if namespace is not None:
            self._namespaces[name] = namespace
        labels = None if namespace is None else dict(namespace.labels)
        self._match_index.relabel_namespace(name, labels)

    # Other objects that rules read

    def put_object(self, kept: DeclaredObject[Partial]) -> None:
        """Add or replace an auxiliary object."""
        self._swap_object(kept.kind, (kept.namespace, kept.name), kept)

    def delete_object(self, kind: str, namespace: str, name: str) -> None:
        """Remove an auxiliary object.

        Raises:
            KeyError: there is no such object.
        """
        self._swap_object(kind, (namespace, name), None)

    def _swap_object(
        self, kind: str, key: ObjectName, kept: DeclaredObject[Partial] | None
    ) -> None:
        before = self.objects.get(kind, *key)
        if kept is None:
            self.objects.delete(kind, *key)
            if before is not None:
                self._leave_object(before)
        else:
            self.objects.put(kept)
            self._enter_object(kept)
        self._record(lambda: self._swap_object(kind, key, before))
        self._selectors.change(key, before, kept)
        self._compiler.follow_object(before, kept)

    def assume_binding(self, claim: ObjectName, volume_name: str) -> None:
        """Tentatively bind a claim to an available volume."""
        before, volume = self.volumes.claims[claim], self.volumes.volumes[volume_name]
        reference = ClaimRef(namespace=before.namespace, name=before.name, uid=before.uid)
        self._assume(replace(before, volume_name=volume_name, is_bound=True), before)
        self._assume(replace(volume, claim=reference, is_available=False), volume)

    def assume_provisioning(self, claim: ObjectName, node_name: str) -> None:
        """Tentatively select a node for a claim whose volume is yet to be provisioned."""
        before = self.volumes.claims[claim]
        self._assume(replace(before, selected_node=node_name), before)

    def _assume(self, after: VolumeObject, before: VolumeObject) -> None:
        self._record(lambda: self.volumes.put(before))
        self.volumes.put(after)

    def assume_devices(self, pod: Pod, allocations: Iterable[ClaimAllocation]) -> None:
        """Tentatively allocate devices to a pod's claims.

        A claim yet to be created gets a name that no stored claim can have.
        """
        for allocation in allocations:
            name = (
                f"{pod.name}/{allocation.pod_claim}"
                if allocation.claim is None
                else allocation.claim
            )
            before = self.devices.claims.get((pod.namespace, name))
            claim = before or ResourceClaim(namespace=pod.namespace, name=name)
            after = with_allocation(claim, allocation.grants, nodes_of(allocation.grants))
            self._swap_assumed(after, before)

    def forget_assumed_devices(self, pod: Pod) -> None:
        """Tentatively remove the claims that were assumed for a pod but are yet to be created."""
        for claim in pod.spec.resource_claims:
            assumed = self.devices.claims.get((pod.namespace, f"{pod.name}/{claim.name}"))
            if assumed is not None:
                self._swap_assumed(None, assumed)

    def _swap_assumed(self, after: DeviceObject | None, before: DeviceObject | None) -> None:
        self._record(lambda: self._swap_assumed(before, after))
        if after is not None:
            self.devices.put(after)
        elif before is not None:
            self.devices.remove(before)

    def _enter_object(self, kept: DeclaredObject[Partial]) -> None:
        volume, device = volume_object(kept), device_object(kept)
        if volume is not None:
            self.volumes.put(volume)
        if device is not None:
            self.devices.put(device)

    def _leave_object(self, kept: DeclaredObject[Partial]) -> None:
        volume, device = volume_object(kept), device_object(kept)
        if volume is not None:
            self.volumes.remove(volume)
        if device is not None:
            self.devices.remove(device)

    # Pods

    def pod(self, namespace: str, name: str) -> Pod | None:
        info = self._pods.get((namespace, name))
        return None if info is None else info.pod

    def pods(self) -> Iterator[Pod]:
        return (info.pod for info in self._pods.values())

    def placed_classes(self) -> tuple[PodClass, ...]:
        """Return the classes that have pods counted on nodes."""
        return tuple(pod_class for pod_class in self._match_index.classes if pod_class.nodes)

    def subject(self, pod_class: PodClass) -> Subject:
        """Return the attributes of a class's pods that matchers read."""
        return self._match_index.subject(pod_class)

    def known_classes(self) -> tuple[PodClass, ...]:
        """Return the classes that have pods, placed or not, excluding merely cached classes."""
        return tuple(pod_class for pod_class in self._match_index.classes if pod_class.pods)

    def selected_classes(self, namespace: str, selector: LabelSelector | None) -> list[PodClass]:
        """Return the classes with pods in a namespace, placed or not, that match a selector."""
        return [
            pod_class
            for pod_class in self._match_index.selected(namespace, selector)
            if pod_class.pods
        ]

    def matchers(self) -> tuple[MatcherEntry, ...]:
        """Return the matchers that any template uses, with their counters."""
        return tuple(self._match_index.entries.values())

    def is_wide(self, entry: MatcherEntry) -> bool:
        """Return whether a matcher must be checked against every new class."""
        return self._match_index.is_wide(entry)

    def node_set_verdicts(self) -> Iterator[bool]:
        """Yield, for each interned set of included nodes, whether it is correct."""
        return self._inclusion_sets.verdicts()

    @property
    def pod_count(self) -> int:
        """The number of known pods, placed or not."""
        return len(self._pods)

    def classes_on(self, slot: int) -> Mapping[PodClass, int]:
        """Return the number of pods that count on a node, by class."""
        return self._classes_on[slot]

    @property
    def has_execution_rules(self) -> bool:
        """Whether any known pod has a rule that is required during execution."""
        return bool(self._compiler.execution_classes)

    def execution_classes(self) -> tuple[PodClass, ...]:
        """Return the classes of known pods with rules that are required during execution."""
        return tuple(self._compiler.execution_classes)

    def pods_of(self, node_name: str) -> tuple[Pod, ...]:
        """Return the pods bound to a node, finished or not, even if the node is unknown."""
        return tuple(info.pod for info in self._by_node.get(node_name, {}).values())

    def placed_on(self, slot: int) -> Iterator[tuple[Pod, PodClass]]:
        """Yield the pods that count on a node, with their classes."""
        node = self.nodes.nodes[slot]
        infos = {} if node is None else self._by_node.get(node.name, {})
        for info in infos.values():
            if not info.pod.finished:
                yield info.pod, info.pod_class

    def importance(self, resources: Iterable[str]) -> ImportanceTable:
        """Return the table of each node's pods by importance, with the amounts of `resources`."""
        if self._importance is None:
            self._importance = ImportanceTable(self.nodes)
        self._importance.refresh(self._placed_with_use, resources)
        return self._importance

    def _placed_with_use(self, slot: int) -> list[PlacedPod]:
        node = self.nodes.nodes[slot]
        infos = {} if node is None else self._by_node.get(node.name, {})
        return [
            (info.pod, info.pod_class, info.use) for info in infos.values() if not info.pod.finished
        ]

    def put_pod(self, pod: Pod) -> ObjectName:
        """Add or replace a pod, and count it on the node that it is bound to.

        Returns the pod's key, so that callers can reuse the tuple.
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
        """Remove a pod.

        Raises:
            KeyError: there is no such pod.
        """
        before = self._pods[namespace, name].pod
        self._record(lambda: self.put_pod(before))
        self._remove_pod((namespace, name))

    def discount(self, counter: DomainCounter, slot: int, pods: int) -> None:
        """Tentatively subtract pods on a node that a counter never had."""
        self._record(lambda: counter.discount(slot, -pods))
        counter.discount(slot, pods)

    @property
    def has_reservations(self) -> bool:
        """Whether any node has room reserved for pending pods or for replacements."""
        return bool(self.nominated or self.reserved)

    def reserve(self, pod: Pod, node_name: str | None) -> None:
        """Reserve room on a node for a pod's replacement, or release it if `node_name` is None."""
        key = (pod.namespace, pod.name)
        before = self.reserved.get(key)
        old_pod, old_node = (pod, None) if before is None else (before[1], before[0])
        self._record(lambda: self.reserve(old_pod, old_node))
        if node_name is None:
            self.reserved.pop(key, None)
        else:
            self.reserved[key] = (node_name, pod)

    def _insert_pod(self, pod: Pod, key: ObjectName) -> None:
        pod_class = self.class_of(pod)
        self._compiler.hold(pod_class, self.position)
        controller = pod.controller
        if controller is not None:
            _tally(pod_class.owners, controller, 1)
        use = pod_class.template.use
        if pod.resize is not None:
            use = PodUsage.of(pod.spec, pod.resize, self.resize_rules)
        info = PodInfo(pod, pod_class, use)
        if pod.resize is not None:
            self.nodes.track(resource for resource, _ in info.use.amounts)
        self._pods[key] = info
        if pod.node_name is None:
            if pod.nominated_node_name is not None and pod.wants_node:
                self.nominated.setdefault(pod.nominated_node_name, {})[key] = pod
            return
        self._by_node.setdefault(pod.node_name, {})[key] = info
        slot = self.nodes.slots.get(pod.node_name)
        if slot is not None:
            self._attach(info, slot)

    def _remove_pod(self, key: ObjectName) -> None:
        info = self._pods.pop(key)
        node_name = info.pod.node_name
        if node_name is not None:
            on_node = self._by_node[node_name]
            del on_node[key]
            if not on_node:
                del self._by_node[node_name]
            slot = self.nodes.slots.get(node_name)
            if slot is not None:
                self._detach(info, slot)
        elif info.pod.nominated_node_name is not None:
            self._forget_nomination(info.pod.nominated_node_name, key)
        if info.pod.controller is not None:
            _tally(info.pod_class.owners, info.pod.controller, -1)
        if info.pod.resize is not None:
            self.nodes.release_resources(resource for resource, _ in info.use.amounts)
        self._compiler.drop(info.pod_class)

    def _forget_nomination(self, node_name: str, key: ObjectName) -> None:
        nominated = self.nominated.get(node_name, {})
        nominated.pop(key, None)
        if not nominated:
            self.nominated.pop(node_name, None)

    def _attach(self, info: PodInfo, slot: int) -> None:
        self._count(info, slot, 1)

    def _detach(self, info: PodInfo, slot: int) -> None:
        self._count(info, slot, -1)

    def _count(self, info: PodInfo, slot: int, pods: int) -> None:
        """Count a pod that is added to a node (`pods` = 1) or removed from it (`pods` = -1)."""
        if info.pod.finished:
            return
        pod_class = info.pod_class
        if info.pod.unready:
            pod_class.unready += pods
        self.nodes.use(slot, info.use.amounts, info.use.scored, pods)
        if info.ports:
            self.nodes.use_ports(slot, info.ports, pods)
        _tally(pod_class.nodes, slot, pods)
        _tally(self._classes_on[slot], pod_class, pods)
        if pod_class.volumes is not None:
            self.volumes.count(pod_class.volumes, slot, pods)
        add_to_counters(pod_class, slot, pods)

    # Queries during decisions

    def class_of(self, pod: Pod) -> PodClass:
        return self._compiler.class_of(pod)

    def rows(self, rules: NodeRules, profile: Profile) -> RowCache:
        """Return the cached masks and scores for rules, brought up to date.

        They ignore the node names in the rules.
        """
        rules = rules.anywhere or rules
        key = (rules, profile)
        cache = self._row_caches.get(key)
        if cache is None:
            cache = self._row_caches[key] = RowCache(
                self.nodes, rules, profile, self._static_rows_of(rules, profile)
            )
        else:
            self._row_caches.move_to_end(key)
        cache.refresh()
        if cache.size_in_bytes != cache.bytes_counted:
            self._count_bytes(cache)
            self._evict_rows()
        return cache

    # Caches

    def cached_rows(self) -> tuple[RowCache, ...]:
        """Return all cached rows, least recently used first."""
        return tuple(self._row_caches.values())

    @property
    def cached_row_bytes(self) -> int:
        """The size in bytes of all cached rows, which ROW_CACHE_BYTES_MAX limits."""
        return self._row_cache_bytes

    def forget_rows(self) -> None:
        """Drop all placement caches; the counters stay."""
        self._row_caches.clear()
        self._row_cache_bytes = 0
        self._static_rows.clear()
        self.nodes.views = NodeViews()

    def forget_in_steps(self) -> Generator[None, None, None]:
        """Drop in steps what decisions added, such as rules of pods that were never stored.

        Call it after each decision, never during one. Data of known pods is kept, and, within
        bounds, so is data of formerly stored pods.
        """
        if self._compiler.uncommitted_idle:
            yield from self._compiler.forget_in_steps()
        self._forget_unused()

    def forget_uncommitted(self) -> None:
        """Run `forget_in_steps` to completion."""
        for _ in self.forget_in_steps():
            pass

    def forget_idle(self) -> None:
        """Drop all rules that no pod has, including those cached for later pods."""
        self._compiler.forget_idle()
        self._forget_unused()

    def _forget_unused(self) -> None:
        """Drop cached data of dropped classes, counters, label keys, and resources."""
        if not self._compiler.has_dropped and not self.nodes.users.unused:
            return
        self._compiler.has_dropped = False
        self.version += 1
        before = len(self.nodes.keys)
        self.nodes.drop_unused()
        if self._match_index.has_dropped_viewed:
            self.nodes.views.forget_dropped()
        if self._match_index.has_dropped_viewed or len(self.nodes.keys) < before:
            for rows in self._row_caches.values():
                rows.forget_dropped()
                self._count_bytes(rows)
        self._match_index.has_dropped_viewed = False
        if self._importance is not None:
            self._importance.forget_dropped()

    def _forget_rules(self, rules: NodeRules, is_last: bool) -> None:  # noqa: FBT001 - a callback
        """Drop cached data of released rules; `is_last` if no other rules have their static key."""
        for profile in self.profiles.values():
            rows = self._row_caches.pop((rules, profile), None)
            if rows is not None:
                self._release_rows(rows)
            if is_last:
                self._static_rows.pop((rules.static_key, profile), None)

    def _release_rows(self, rows: RowCache) -> None:
        rows.is_cached = False
        self._row_cache_bytes -= rows.bytes_counted

    def _count_bytes(self, rows: RowCache) -> None:
        """Add the growth of cached rows to the total size."""
        grown = rows.size_in_bytes - rows.bytes_counted
        rows.bytes_counted += grown
        self._row_cache_bytes += grown

    def interned(self) -> dict[str, int]:
        """Return the number of interned entries of each kind, including those that no pod uses."""
        return {
            **self._compiler.interned(),
            "matchers by label pair": self._match_index.indexed,
            "sets of nodes": len(self._inclusion_sets),
        }

    def sizes(self) -> Iterator[tuple[str, int]]:
        """Yield the kind and approximate size in bytes of each structure except stored objects."""
        yield from self._compiler.sizes()
        yield from self._match_index.sizes()
        yield from self.nodes.sizes()
        yield from (("sets of nodes", size) for size in self._inclusion_sets.sizes())
        yield from (("rows", cache.size_in_bytes) for cache in self._row_caches.values())
        yield from (("static rows", row.size_in_bytes) for row in self._static_rows.values())
        for sets in (self.volumes.sets, self.devices.sets):
            yield from (("selected nodes", size) for size in sets.sizes())
        yield from (("device verdicts", size) for size in self.devices.sizes())
        if self._importance is not None:
            yield from (("importance", size) for size in self._importance.sizes())

    def _static_rows_of(self, rules: NodeRules, profile: Profile) -> StaticRows:
        key = (rules.static_key, profile)
        rows = self._static_rows.get(key)
        if rows is None:
            rows = self._static_rows[key] = StaticRows(self.nodes, rules, profile)
            if len(self._static_rows) > STATIC_ROWS_MAX:
                self._static_rows.popitem(last=False)
        else:
            self._static_rows.move_to_end(key)
        return rows

    def _evict_rows(self) -> None:
        while self._row_cache_bytes > ROW_CACHE_BYTES_MAX and len(self._row_caches) > 1:
            _, oldest = self._row_caches.popitem(last=False)
            self._release_rows(oldest)


_NEVER_COMPILED = frozenset(
    (
        "place_pending_pods",
        "queue_preemption",
        "queue_preemption_scope",
        "group_search_steps",
        "priority_classes",
        "limited_resources",
        "policies",
        "opportunity_cost_basis",
        "restrict_all_namespaces_anti_affinity",
        "node_topology_keys",
        "trusted_namespaces",
        "affinity_violation_grace_seconds",
        "anti_affinity_victim",
        "evictions_per_minute",
        "no_execute_taints",
        "default_not_ready_toleration_seconds",
        "default_unreachable_toleration_seconds",
        "node_conditions",
        "node_monitor_grace_seconds",
        "node_eviction_rate",
        "secondary_node_eviction_rate",
        "unhealthy_zone_threshold",
        "large_zone_nodes",
        "deleted_node_pods",
        "orphan_grace_seconds",
    )
)
"""Settings that compiled state does not depend on: the engine ignores them or reads them on use."""


def _compiles_alike(one: ClusterConfig, other: ClusterConfig) -> bool:
    return all(
        getattr(one, field) == getattr(other, field)
        for field in ClusterConfig.__struct_fields__
        if field not in _NEVER_COMPILED
    )


def add_to_counters(pod_class: PodClass, slot: int, pods: int) -> None:
    """Add pods on a node to every counter of their class, or subtract them if negative."""
    for entry in pod_class.matched:
        for counter in entry.counters.values():
            counter.add(slot, pods)
    for term in pod_class.template.owned:
        term.counter.add(slot, pods)


K = TypeVar("K", int, PodClass, OwnerReference)


def _tally(counts: dict[K, int], key: K, pods: int) -> None:
    """Add to a count, and remove the entry if the count becomes zero."""
    after = counts.get(key, 0) + pods
    if after:
        counts[key] = after
    else:
        del counts[key]
