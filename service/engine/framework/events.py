"""Cluster events: changes that may help a pending pod, as plugins receive them.

A plugin that rejected a pod states, by `Plugin.events` and `Plugin.helps`, which events can change
its verdict. These are the queueing hints of kube-scheduler.
"""

from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import NamedTuple

from service.model.core.kind import DeclaredObject, alike
from service.model.core.primitives import LabelSelector, Partial
from service.model.nodes.node import Node
from service.model.pods.pod import Pod, PodSpec
from service.model.pods.requests import amounts_by_rules, host_ports

Pair = tuple[str, str]
"""A label's key and value."""


class Change(Enum):
    """The kinds of cluster events."""

    NODE_ADDED = "a node came"
    NODE_REMOVED = "a node went"
    NODE_RELABELLED = "a node has other labels; `relabelled` says which keys"
    NODE_DESCRIBED = "a node came or has other labels; `node` tells it as it was and as it is"
    NODE_TAINTED = "a node has other taints, or was cordoned or uncordoned"
    NODE_RESIZED = "a node has other allocatable resources"
    NODE_FEATURES = "a node declares other features"
    POD_CAME = "a pod counts on a node now"
    POD_LEFT = "a pod counts on its node no longer; `freed` names the resources"
    POD_RELABELLED = "a pod on a node has other labels, or began to terminate"
    POD_RESIZED = "a pod on a node asks for other amounts; `freed` names those that became less"
    POD_PORTS_CHANGED = "a pod on a node takes other host ports"
    POD_VOLUMES_CHANGED = "a pod on a node uses other volumes or claims"
    POD_AFFINITY_CHANGED = "a pod on a node has other required rules about pods"
    POD_OWNER_CHANGED = "a pod on a node has another controller"
    NAMESPACE_RELABELLED = "a namespace came, went or has other labels"
    OBJECT_CHANGED = "an object of a kept kind came, went or is another; `objects` tells it"
    ADMISSION = "a rule that pods themselves are admitted by may be another"


ANY_CHANGE = frozenset(Change) - {Change.ADMISSION}
"""The default events of a plugin, each of which retries the pods that the plugin rejected."""

DOMAINS_CHANGE = frozenset(
    {
        Change.NODE_ADDED,
        Change.NODE_REMOVED,
        Change.NODE_RELABELLED,
        Change.POD_CAME,
        Change.POD_LEFT,
        Change.POD_RELABELLED,
    }
)
"""The events of a plugin that counts pods by topology domain: each may change domains or their
pods."""


class ClusterEvent(NamedTuple):
    """A change of nodes, namespaces, placed pods, or auxiliary objects."""

    change: Change | None
    """The kind of event, or None if anything may have changed."""
    pods: tuple[Pod, ...] = ()
    """The pod that was added or removed, or the changed pod before and after; empty for other
    events."""
    freed: frozenset[str] | None = None
    """The resources that a pod that left used, or uses less of now, or None for other events."""
    relabelled: frozenset[str] | None = None
    """The label keys whose values changed on the node, or None for other events."""
    node: tuple[Node | None, Node] | None = None
    """The node before and after an addition or relabeling, or None for other events."""
    objects: tuple[DeclaredObject[Partial], ...] = ()
    """The auxiliary object before and after; empty for other events."""

    @property
    def pod_labels(self) -> frozenset[Pair] | None:
        """The labels of all pods in the event, or None if it has no pods."""
        if not self.pods:
            return None
        return frozenset(pair for pod in self.pods for pair in pod.labels.items())


NODE_FACTS: Mapping[Change, tuple[str, ...]] = {
    Change.NODE_TAINTED: ("taints", "unschedulable"),
    Change.NODE_RESIZED: ("allocatable",),
    Change.NODE_FEATURES: ("declared_features",),
    Change.NODE_RELABELLED: ("labels",),
}
"""The fields of a node that filters read, by the event of their change. A field that is in none of
them is read by no filter; the tests compare the table with the fields of nodes."""


def node_events(before: Node | None, after: Node | None) -> list[ClusterEvent]:
    """Return the events of a node's change; None stands for a node that does not exist."""
    if after is None:
        return [ClusterEvent(Change.NODE_REMOVED)]
    described = ClusterEvent(Change.NODE_DESCRIBED, node=(before, after))
    if before is None:
        return [ClusterEvent(Change.NODE_ADDED), described]
    events = []
    for change, fields in NODE_FACTS.items():
        if any(getattr(before, field) != getattr(after, field) for field in fields):
            relabelled = change is Change.NODE_RELABELLED
            keys = changed_keys(before.labels, after.labels) if relabelled else None
            events.append(ClusterEvent(change, relabelled=keys))
            if relabelled:
                events.append(described)
    return events


class PodFact(NamedTuple):
    """Something that filters read of the pods on nodes, so that it is an event if it changes."""

    change: Change
    """The event, which a plugin that reads the fact lists in `Plugin.events`."""
    fields: frozenset[str]
    """The fields of a pod that the fact depends on."""
    spec_fields: frozenset[str]
    """The fields of `spec` that the fact depends on."""
    read: Callable[[Pod], object]


def _required_rules(spec: PodSpec) -> object:
    """Return a pod's required rules about other pods."""
    if spec.affinity is None:
        return None
    sides = (spec.affinity.pod_affinity, spec.affinity.pod_anti_affinity)
    return [
        rules
        and (
            rules.required_during_scheduling_ignored_during_execution or (),
            rules.required_during_scheduling_required_during_execution or (),
        )
        for rules in sides
    ]


POD_FACTS = (
    PodFact(
        Change.POD_RELABELLED,
        frozenset({"labels", "terminating"}),
        frozenset(),
        lambda pod: (pod.labels, pod.terminating),
    ),
    PodFact(
        Change.POD_RESIZED,
        frozenset({"spec", "resize"}),
        frozenset({"containers", "init_containers", "overhead", "resources"}),
        lambda pod: amounts_by_rules(pod.spec, pod.resize),
    ),
    PodFact(
        Change.POD_PORTS_CHANGED,
        frozenset({"spec"}),
        frozenset({"containers", "init_containers"}),
        lambda pod: host_ports(pod.spec),
    ),
    PodFact(
        Change.POD_VOLUMES_CHANGED,
        frozenset({"spec", "claims"}),
        frozenset({"volumes"}),
        lambda pod: (pod.spec.volumes, pod.claims),
    ),
    PodFact(
        Change.POD_AFFINITY_CHANGED,
        frozenset({"spec"}),
        frozenset({"affinity"}),
        lambda pod: _required_rules(pod.spec),
    ),
    PodFact(
        Change.POD_OWNER_CHANGED, frozenset({"controller"}), frozenset(), lambda pod: pod.controller
    ),
)
"""All that filters read of the pods on nodes. A field that is in none of these facts is read by no
filter; the tests compare the facts with the fields of pods."""


_FACT_FIELDS = sorted({field for fact in POD_FACTS for field in fact.fields})


def pod_events(before: Pod | None, after: Pod | None) -> list[ClusterEvent]:
    """Return the events of a pod's change; None stands for a pod that counts on no node."""
    if before is None or after is None:
        arrived = [ClusterEvent(Change.POD_CAME, (after,))] if after else []
        return [_removal_event(before)] if before else arrived
    if before.node_name != after.node_name:
        return [_removal_event(before), ClusterEvent(Change.POD_CAME, (after,))]
    changed = [field for field in _FACT_FIELDS if _differs(before, after, field)]
    if not changed:
        return []
    return [
        ClusterEvent(fact.change, (before, after), _shrunk(before, after, fact.change))
        for fact in POD_FACTS
        if not fact.fields.isdisjoint(changed) and fact.read(before) != fact.read(after)
    ]


def _differs(before: Pod, after: Pod, field: str) -> bool:
    """Return whether a field differs; pods of a template share their spec, which is quick to see."""
    old, new = getattr(before, field), getattr(after, field)
    return old is not new and old != new


def _shrunk(before: Pod, after: Pod, change: Change) -> frozenset[str] | None:
    """Return the resources that a resized pod requests less of, or None for other changes."""
    if change is not Change.POD_RESIZED:
        return None
    used, left = (amounts_by_rules(pod.spec, pod.resize) for pod in (before, after))
    return frozenset(
        name
        for amounts, rest in zip(used, left, strict=True)
        for name, amount in amounts.items()
        if rest.get(name, 0) < amount
    )


def object_events(
    before: DeclaredObject[Partial] | None, after: DeclaredObject[Partial] | None
) -> list[ClusterEvent]:
    """Return the events of an object's change; None stands for an object that does not exist."""
    if before is not None and after is not None and alike(before, after):
        return []
    known = tuple(stored for stored in (before, after) if stored is not None)
    return [ClusterEvent(Change.OBJECT_CHANGED, objects=known)]


def _removal_event(pod: Pod) -> ClusterEvent:
    used = amounts_by_rules(pod.spec, pod.resize)
    freed = frozenset(name for amounts in used for name, amount in amounts.items() if amount)
    return ClusterEvent(Change.POD_LEFT, (pod,), freed)


def changed_keys(before: Mapping[str, str], after: Mapping[str, str]) -> frozenset[str]:
    """Return the keys whose values differ or that only one of the mappings has."""
    return frozenset(key for key, _ in before.items() ^ after.items())


def selected_pairs(selectors: Iterable[LabelSelector | None]) -> frozenset[Pair] | None:
    """Return labels such that every match of any selector has one of them, or None."""
    pairs: set[Pair] = set()
    for selector in selectors:
        needed = _pairs_of(selector)
        if needed is None:
            return None
        pairs |= needed
    return frozenset(pairs)


def _pairs_of(selector: LabelSelector | None) -> set[Pair] | None:
    if selector is None:
        return set()
    for key, value in (selector.match_labels or {}).items():
        return {(key, value)}
    for expression in selector.match_expressions or ():
        if expression.operator == "In":
            return {(expression.key, value) for value in expression.values or ()}
    return None
