"""Obstacles: what excludes a pod from nodes, one rule at a time, and the changes that would help.

A filter refuses nodes for all its rules together. Here, each rule is evaluated alone over all nodes
at once, with the pod's other rules of the same kind removed.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from service.engine.cluster import Cluster
from service.engine.framework.plugin import Plugin
from service.engine.placing.placement import profile_of
from service.engine.plugins import (
    inter_pod_affinity as relations,
    node_affinity as selection,
    node_declared_features as features,
    node_ports as ports,
    node_resources_fit as fit,
    node_unschedulable as cordons,
    pod_topology_spread as spreading,
    taint_toleration as tainting,
)
from service.engine.profiles.profile import Profile
from service.engine.rules.relaxations import (
    Edit,
    Relaxation,
    apply_edits,
    relaxations,
    request_edit,
    toleration_edit,
)
from service.engine.state.nodes.columns import Ints, Mask
from service.engine.state.nodes.taints import HARD_EFFECTS, tolerates
from service.engine.state.pods.importance import PODS
from service.model.core.primitives import Taint
from service.model.core.quantity import format_amount
from service.model.nodes.condition_taints import CONDITION_KEYS, asked_keys
from service.model.nodes.node import Node
from service.model.plans.repair_changes import (
    AddToleration,
    AnyRepairChange,
    DropRule,
    LowerRequest,
    SetLabels,
    SetTaints,
    UncordonNodes,
)
from service.model.pods.pod import Pod, Toleration

OBSTACLES_MAX = 60
"""The maximum number of obstacles distinguished; nodes with any others are ignored."""

Key = tuple[str, ...]
NodeEdit = Callable[[Node], Node]


class Remedy(NamedTuple):
    """One change that removes one or more obstacles."""

    key: Key
    """A key that is equal for equal remedies."""
    of_pod: Edit | None = None
    of_node: NodeEdit | None = None
    """The change of a node, or None if the pod is changed."""
    node_name: str = ""
    added: Node | None = None
    """The node to add, or None; `node_name` is then the node that it resembles."""
    change: AnyRepairChange | None = None
    """The reported change, or None for a request whose reduction depends on the node."""
    resource: str = ""
    """The resource whose request is lowered, or ""."""


class Obstacle(NamedTuple):
    """One rule that excludes the pod from some nodes."""

    nodes: Mask
    """The nodes that the rule excludes, shape (nodes,)."""
    of_pod: Remedy | None = None
    of_node: Callable[[Node], Remedy] | None = None
    """Returns the remedy of changing one of these nodes."""
    removable: bool = False
    """Whether removing placed pods may help."""

    @property
    def is_final(self) -> bool:
        """Whether no known change would help."""
        return self.of_pod is None and self.of_node is None and not self.removable


_REMOVABLE = frozenset({relations.NAME, spreading.NAME, ports.NAME})
_OF_OTHERS = frozenset({relations.EXISTING, relations.EXISTING_FULL, selection.ENFORCED})
"""Reasons that do not concern a rule of the pod itself."""
_BY_RULE = frozenset({selection.NAME, features.NAME, relations.NAME, spreading.NAME, ports.NAME})


def obstacles(cluster: Cluster, pod: Pod, profile: Profile) -> Iterator[Obstacle]:
    """Yield everything that excludes a pod from any node."""
    pod_class = cluster.class_of(pod)
    rules = list(relaxations(pod.spec))
    for plugin in profile.filters:
        failing = _failing(cluster, pod, plugin)
        if not failing.any():
            continue
        if plugin.name in _BY_RULE:
            own = [rule for rule in rules if rule.plugin == plugin.name]
            yield from _of_rules(cluster, pod, plugin, own, failing)
        elif plugin.name == cordons.NAME:
            yield Obstacle(failing, _toleration_remedy(cordons.CORDON), _uncordon_remedy)
        elif plugin.name == tainting.NAME:
            yield from _of_taints(cluster, pod)
        elif plugin.name == fit.NAME:
            for failure in plugin.failures(cluster.nodes, pod_class):
                resource = failure.reason.removeprefix(fit.INSUFFICIENT)
                remedy = None if failure.reason == fit.TOO_MANY_PODS else _request_remedy(resource)
                yield Obstacle(failure.nodes & cluster.nodes.alive, remedy, removable=True)
        else:
            yield Obstacle(failing)


def _failing(
    cluster: Cluster, pod: Pod, plugin: Plugin, *, without: frozenset[str] = frozenset()
) -> Mask:
    """Return the nodes that a filter refuses, ignoring some reasons, shape (nodes,)."""
    failing = np.zeros(cluster.nodes.size, dtype=np.bool_)
    for failure in plugin.failures(cluster.nodes, cluster.class_of(pod)):
        if failure.reason not in without:
            failing |= failure.nodes
    return failing & cluster.nodes.alive


def _of_rules(
    cluster: Cluster, pod: Pod, plugin: Plugin, rules: list[Relaxation], failing: Mask
) -> Iterator[Obstacle]:
    """Yield an obstacle for each rule, and one for nodes refused regardless of the rules."""
    removable = plugin.name in _REMOVABLE
    covered = np.zeros_like(failing)
    for rule in rules:
        others = [other.without for other in rules if other is not rule]
        alone = replace(pod, spec=apply_edits(pod.spec, others)) if others else pod
        nodes = _failing(cluster, alone, plugin, without=_OF_OTHERS)
        covered |= nodes
        yield Obstacle(nodes, _drop_remedy(rule), _label_remedy(rule), removable=removable)
    rest = failing
    if rules:
        bare = replace(pod, spec=apply_edits(pod.spec, [other.without for other in rules]))
        # Nodes refused only by a combination of rules cannot be blamed on one of them.
        rest = _failing(cluster, bare, plugin) | (failing & ~covered)
    yield Obstacle(rest, removable=removable)


def _drop_remedy(rule: Relaxation) -> Remedy:
    change = DropRule(path=rule.path)
    return Remedy(("DropRule", rule.path), of_pod=rule.without, change=change)


def _label_remedy(rule: Relaxation) -> Callable[[Node], Remedy] | None:
    if rule.label is None:
        return None
    key, value = rule.label

    def of_node(node: Node) -> Remedy:
        return Remedy(
            ("SetLabels", node.name, key),
            of_node=lambda node: replace(node, labels={**node.labels, key: value}),
            node_name=node.name,
            change=SetLabels(names=(node.name,), labels={key: value}),
        )

    return of_node


def _request_remedy(resource: str) -> Remedy:
    return Remedy(
        ("LowerRequest", resource), of_pod=request_edit(resource, None), resource=resource
    )


def _toleration_remedy(taint: Taint) -> Remedy:
    toleration = Toleration(
        key=taint.key,
        operator="Equal" if taint.value else "Exists",
        value=taint.value,
        effect=taint.effect,
    )
    return Remedy(
        ("AddToleration", taint.key, taint.value, taint.effect),
        of_pod=toleration_edit(toleration),
        change=AddToleration(toleration=toleration),
    )


def _uncordon_remedy(node: Node) -> Remedy:
    return Remedy(
        ("UncordonNodes", node.name),
        of_node=lambda node: replace(node, unschedulable=False),
        node_name=node.name,
        change=UncordonNodes(names=(node.name,)),
    )


def _of_taints(cluster: Cluster, pod: Pod) -> Iterator[Obstacle]:
    """Yield an obstacle for each taint that the pod does not tolerate."""
    nodes, masks = cluster.nodes, dict[tuple[str, str, str], tuple[Taint, Mask]]()
    for taints, index in nodes.taint_sets.items():
        for taint in taints:
            is_tolerated = any(tolerates(toleration, taint) for toleration in pod.spec.tolerations)
            if taint.effect not in HARD_EFFECTS or is_tolerated:
                continue
            mask = (nodes.taint_set == index) & nodes.alive
            key = (taint.key, taint.value, taint.effect)
            before = masks.get(key)
            masks[key] = (taint, mask if before is None else before[1] | mask)
    for taint, mask in masks.values():
        by_condition = _set_by_conditions(cluster, taint, mask)
        if by_condition.any():
            yield Obstacle(by_condition, _toleration_remedy(taint))
        if (mask & ~by_condition).any():
            yield Obstacle(mask & ~by_condition, _toleration_remedy(taint), _taint_remedy(taint))


def _set_by_conditions(cluster: Cluster, taint: Taint, mask: Mask) -> Mask:
    """Return which of the nodes in `mask` have a taint because of their conditions."""
    by_condition = np.zeros_like(mask)
    if cluster.config.taints_nodes and taint.key in CONDITION_KEYS:
        for slot in mask.nonzero()[0]:
            node = cluster.nodes.nodes[slot]
            by_condition[slot] = node is not None and taint.key in asked_keys(node)
    return by_condition


def _taint_remedy(taint: Taint) -> Callable[[Node], Remedy]:
    wanted = (taint.key, taint.value, taint.effect)

    def without(node: Node) -> Node:
        others = [t for t in node.taints if (t.key, t.value, t.effect) != wanted]
        return replace(node, taints=tuple(others))

    def of_node(node: Node) -> Remedy:
        return Remedy(
            ("SetTaints", node.name, *wanted),
            of_node=without,
            node_name=node.name,
            change=SetTaints(names=(node.name,), taints=without(node).taints),
        )

    return of_node


class NodeKind(NamedTuple):
    """Nodes with the same obstacles."""

    bits: int
    """The obstacles as a bit mask."""
    slot: int
    """The slot of an example node."""
    obstacles: tuple[Obstacle, ...]


class PromisingNode(NamedTuple):
    """A node that may accept a pod after other pods leave."""

    fewest: int
    """A lower bound on the number of pods that must leave."""
    slot: int


NEVER = 2**31
"""A number that exceeds the pods of any cluster."""


class ObstacleMap:
    """A pod's obstacles on the nodes of a cluster, as of creation."""

    def __init__(self, cluster: Cluster, pod: Pod) -> None:
        self._cluster = cluster
        needs = cluster.class_of(pod).template.rules.needs
        self._requested = dict(needs.amounts)
        self._obstacles: list[Obstacle] = []
        self._covered: dict[Key, int] = {}
        self.is_complete = True
        """Whether all obstacles and kinds of nodes were considered."""
        nodes = cluster.nodes
        self._bits: Ints = np.zeros(nodes.size, dtype=np.int64)
        hopeless = ~nodes.alive
        for obstacle in obstacles(cluster, pod, profile_of(cluster, pod)):
            if not obstacle.nodes.any():
                continue
            if obstacle.is_final or len(self._obstacles) == OBSTACLES_MAX:
                hopeless |= obstacle.nodes
                self.is_complete &= obstacle.is_final
                continue
            bit = 1 << len(self._obstacles)
            self._bits[obstacle.nodes] |= bit
            self._obstacles.append(obstacle)
            if obstacle.of_pod is not None:
                self._note(obstacle.of_pod, bit)
        self._bits[hopeless] = -1

    def _note(self, remedy: Remedy, bits: int) -> None:
        self._covered[remedy.key] = self._covered.get(remedy.key, 0) | bits

    def kinds(self, most: int) -> list[NodeKind]:
        """Return up to `most` kinds of nodes, in ascending order of their number of obstacles."""
        kinds = [int(bits) for bits in np.unique(self._bits) if bits >= 0]
        kinds.sort(key=lambda bits: (bits.bit_count(), bits))
        self.is_complete &= len(kinds) <= most
        return [NodeKind(bits, self._example(bits), self._of(bits)) for bits in kinds[:most]]

    def _of(self, bits: int) -> tuple[Obstacle, ...]:
        return tuple(
            obstacle for index, obstacle in enumerate(self._obstacles) if bits >> index & 1
        )

    def _example(self, bits: int) -> int:
        """Return the node of a kind with the most room for the resources the pod cannot get."""
        slots: Ints = np.flatnonzero(self._bits == bits)
        resources = [
            obstacle.of_pod.resource for obstacle in self._of(bits) if obstacle.of_pod is not None
        ]
        rooms = [
            self._free(resource)[slots] / max(self._requested[resource], 1)
            for resource in resources
            if resource
        ]
        if not rooms:
            return int(slots[0])
        return int(slots[np.minimum.reduce(rooms).argmax()])

    def _free(self, resource: str) -> Ints:
        """Return the unrequested amount of a resource, shape (nodes,)."""
        nodes = self._cluster.nodes
        return nodes.allocatable(resource) - nodes.requested(resource)

    def options(self, obstacle: Obstacle, slot: int) -> list[Remedy]:
        """Return the remedies of an obstacle on a node."""
        node = self._cluster.nodes.nodes[slot]
        assert node is not None
        options: list[Remedy] = []
        if obstacle.of_pod is not None:
            resource = obstacle.of_pod.resource
            options.append(self._request_remedy_at(resource, slot) if resource else obstacle.of_pod)
        if obstacle.of_node is not None:
            remedy = obstacle.of_node(node)
            index = next(i for i, other in enumerate(self._obstacles) if other is obstacle)
            self._note(remedy, 1 << index)
            options.append(remedy)
        return options

    def _request_remedy_at(self, resource: str, slot: int) -> Remedy:
        """Return the remedy of lowering a request to the amount that a node has left."""
        left = int(self._free(resource)[slot])
        to = format_amount(resource, max(left, 0))
        change = LowerRequest(
            resource=resource,
            from_amount=format_amount(resource, self._requested[resource]),
            to=to,
        )
        edit = request_edit(resource, to if left > 0 else None)
        return Remedy(("LowerRequest", resource), of_pod=edit, change=change, resource=resource)

    def may_suffice(self, remedies: Sequence[Remedy], kinds: Sequence[NodeKind]) -> bool:
        """Return whether these remedies remove all obstacles on some node."""
        of_pod, at = 0, dict[str, int]()
        for remedy in remedies:
            covered = self._covered.get(remedy.key, 0)
            if remedy.of_pod is not None:
                of_pod |= covered
            else:
                at[remedy.node_name] = at.get(remedy.node_name, 0) | covered
        slots = self._cluster.nodes.slots
        for name, more in at.items():
            if not int(self._bits[slots[name]]) & ~(of_pod | more):
                return True
        return any(not kind.bits & ~of_pod for kind in kinds)

    def blocked_by_others(self) -> Ints:
        """Return the slots of large enough nodes that refuse the pod only because of others.

        The others are pods on these nodes or in their domains, or a cordon.
        """
        of_others = -1 << len(self._obstacles)
        for index, obstacle in enumerate(self._obstacles):
            if obstacle.removable or obstacle.of_node is _uncordon_remedy:
                of_others |= 1 << index
        blocked = (self._bits >= 0) & ((self._bits & ~of_others) == 0)
        for resource, amount in self._requested.items():
            blocked &= self._cluster.nodes.allocatable(resource) >= amount
        return np.flatnonzero(blocked)

    def count_without(self, remedies: Sequence[Remedy]) -> int:
        """Count the nodes whose obstacles are all removed by remedies that change the pod."""
        covered = 0
        for remedy in remedies:
            covered |= self._covered.get(remedy.key, 0)
        return int(((self._bits >= 0) & ((self._bits & ~covered) == 0)).sum())


def promising_nodes(cluster: Cluster, pod: Pod, victims_max: int, most: int) -> list[PromisingNode]:
    """Return up to `most` nodes that may accept a pod after few others leave, the fewest first."""
    fewest = fewest_victims(cluster, pod, profile_of(cluster, pod))
    slots = np.flatnonzero((fewest <= victims_max) & cluster.nodes.alive)
    chosen = slots[np.argsort(fewest[slots], kind="stable")][:most]
    return [PromisingNode(max(int(fewest[slot]), 1), int(slot)) for slot in chosen]


def fewest_victims(cluster: Cluster, pod: Pod, profile: Profile) -> Ints:
    """Return a lower bound on the number of pods that must leave each node, shape (nodes,).

    It is `NEVER` where no removal helps. Filters without headrooms are ignored, and of several
    shortages only the worst counts.
    """
    pod_class, nodes = cluster.class_of(pod), cluster.nodes
    fewest = np.zeros(nodes.size, dtype=np.int64)
    for plugin in profile.filters:
        headrooms = plugin.headrooms(nodes, pod_class)
        for room in () if headrooms is None else headrooms.rooms:
            lacking: Ints = np.maximum(-room.spare, 0)
            if not lacking.any():
                continue
            if room.resource and room.resource != PODS:
                lacking = _fewest_of(cluster, room.resource, lacking)
            elif not room.resource and room.taken is None:
                lacking = np.where(lacking > 0, NEVER, 0)
            fewest = np.maximum(fewest, lacking)
    return fewest


def _fewest_of(cluster: Cluster, resource: str, lacking: Ints) -> Ints:
    """Return the minimum number of pods that free `lacking` of a resource, shape (nodes,)."""
    table = cluster.importance((resource,))
    slots = np.flatnonzero(lacking)
    greatest_first = -np.sort(-table.amounts(resource)[:, slots], axis=0)
    freed = np.cumsum(greatest_first, axis=0)
    counted = (freed < lacking[slots]).sum(axis=0) + 1
    counted = np.where(counted > len(freed), NEVER, counted)
    answer = np.zeros_like(lacking)
    answer[slots] = np.where(table.crowded[slots], 1, counted)
    return answer
