"""Cluster events: changes that may help a pending pod, as plugins receive them.

A plugin that rejected a pod states, by `Plugin.events` and `Plugin.helps`, which events can change
its verdict. These are the queueing hints of kube-scheduler.
"""

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import NamedTuple

from service.model.core.kind import DeclaredObject, alike
from service.model.core.primitives import LabelSelector, Partial
from service.model.nodes.node import Node
from service.model.pods.pod import Pod
from service.model.pods.requests import named_resources

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
    POD_RESIZED = "a pod on a node asks for other amounts"
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
    """The resources that a removed pod used, or None for other events."""
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


def node_events(before: Node | None, after: Node | None) -> list[ClusterEvent]:
    """Return the events of a node's change; None stands for a node that does not exist."""
    if after is None:
        return [ClusterEvent(Change.NODE_REMOVED)]
    described = ClusterEvent(Change.NODE_DESCRIBED, node=(before, after))
    if before is None:
        return [ClusterEvent(Change.NODE_ADDED), described]
    events = []
    if (before.taints, before.unschedulable) != (after.taints, after.unschedulable):
        events.append(ClusterEvent(Change.NODE_TAINTED))
    if before.allocatable != after.allocatable:
        events.append(ClusterEvent(Change.NODE_RESIZED))
    if before.declared_features != after.declared_features:
        events.append(ClusterEvent(Change.NODE_FEATURES))
    if before.labels != after.labels:
        keys = changed_keys(before.labels, after.labels)
        events += [ClusterEvent(Change.NODE_RELABELLED, relabelled=keys), described]
    return events


def pod_events(before: Pod | None, after: Pod | None) -> list[ClusterEvent]:
    """Return the events of a pod's change; None stands for a pod that counts on no node."""
    if before is None or after is None:
        arrived = [ClusterEvent(Change.POD_CAME, (after,))] if after else []
        return [_removal_event(before)] if before else arrived
    if before.node_name != after.node_name:
        return [_removal_event(before), ClusterEvent(Change.POD_CAME, (after,))]
    events = []
    if before.labels != after.labels or before.terminating != after.terminating:
        events.append(ClusterEvent(Change.POD_RELABELLED, (before, after)))
    if before.resize != after.resize or before.spec != after.spec:
        events.append(ClusterEvent(Change.POD_RESIZED))
    return events


def object_events(
    before: DeclaredObject[Partial] | None, after: DeclaredObject[Partial] | None
) -> list[ClusterEvent]:
    """Return the events of an object's change; None stands for an object that does not exist."""
    if before is not None and after is not None and alike(before, after):
        return []
    known = tuple(stored for stored in (before, after) if stored is not None)
    return [ClusterEvent(Change.OBJECT_CHANGED, objects=known)]


def _removal_event(pod: Pod) -> ClusterEvent:
    return ClusterEvent(Change.POD_LEFT, (pod,), named_resources(pod.spec, pod.resize))


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
