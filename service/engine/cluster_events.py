"""What happens to a cluster that may help a pod which waits, as plugins are told of it.

A plugin that rejected a pod says, by `Plugin.events` and `Plugin.helps`, which of these can turn its verdict: the
queueing hints of kube-scheduler.
"""

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import NamedTuple

from service.model.objects import LabelSelector, Node, Pod
from service.model.requests import placed_requests

Pair = tuple[str, str]
"""A label: key and value."""


class Change(Enum):
    """The kinds of events."""

    NODE_ADDED = "a node came"
    NODE_REMOVED = "a node went"
    NODE_RELABELLED = "a node has other labels; `relabelled` says which keys"
    NODE_DESCRIBED = "a node came or has other labels; `node` tells it as it was and as it is"
    NODE_TAINTED = "a node has other taints, or was cordoned or uncordoned"
    NODE_RESIZED = "a node has other allocatable resources"
    POD_CAME = "a pod counts on a node now"
    POD_LEFT = "a pod counts on its node no longer; `freed` names the resources"
    POD_RELABELLED = "a pod on a node has other labels, or began to terminate"
    POD_RESIZED = "a pod on a node asks for other amounts"
    NAMESPACE_RELABELLED = "a namespace came, went or has other labels"
    ADMISSION = "a rule that pods themselves are admitted by may be another"


ANY_CHANGE = frozenset(Change) - {Change.ADMISSION}
"""For a plugin that cannot say: after each of these the pods that it rejected are tried again."""


class ClusterEvent(NamedTuple):
    """Something that happened to nodes, namespaces or placed pods."""

    change: Change | None
    """None: anything may be another."""
    pods: tuple[Pod, ...] = ()
    """The pod that came, left or changed, as it was and as it is; empty: no pod did."""
    freed: frozenset[str] | None = None
    """The resources that the pod used, if it left; None if it did not."""
    relabelled: frozenset[str] | None = None
    """The label keys of which the node has another value now; None if it is not about labels."""
    node: tuple[Node | None, Node] | None = None
    """A node as it was and as it is, whose coming or labels are what it is about."""

    @property
    def pod_labels(self) -> frozenset[Pair] | None:
        """All labels of the pods that it is about; None if it is about none."""
        if not self.pods:
            return None
        return frozenset(pair for pod in self.pods for pair in pod.labels.items())


def node_events(before: Node | None, after: Node | None) -> list[ClusterEvent]:
    """What it may mean for pods that wait that a node was one thing and is another; None: it is not there."""
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
    if before.labels != after.labels:
        keys = differing(before.labels, after.labels)
        events += [ClusterEvent(Change.NODE_RELABELLED, relabelled=keys), described]
    return events


def pod_events(before: Pod | None, after: Pod | None) -> list[ClusterEvent]:
    """What it may mean for pods that wait that a pod counts on a node, or did; None: it counts on none."""
    if before is None or after is None:
        arrived = [ClusterEvent(Change.POD_CAME, (after,))] if after else []
        return [_leaving(before)] if before else arrived
    if before.node_name != after.node_name:
        return [_leaving(before), ClusterEvent(Change.POD_CAME, (after,))]
    events = []
    if before.labels != after.labels or before.terminating != after.terminating:
        events.append(ClusterEvent(Change.POD_RELABELLED, (before, after)))
    if before.resize != after.resize or before.spec != after.spec:
        events.append(ClusterEvent(Change.POD_RESIZED))
    return events


def _leaving(pod: Pod) -> ClusterEvent:
    amounts = placed_requests(pod.spec, pod.resize).amounts
    freed = frozenset(name for name, amount in amounts.items() if amount)
    return ClusterEvent(Change.POD_LEFT, (pod,), freed)


def differing(before: Mapping[str, str], after: Mapping[str, str]) -> frozenset[str]:
    """The keys of which one has another value than the other."""
    return frozenset(key for key, _ in before.items() ^ after.items())


def selected_pairs(selectors: Iterable[LabelSelector | None]) -> frozenset[Pair] | None:
    """Labels of which whatever matches any of the selectors has one; None where nothing can be said."""
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
    for each in selector.match_expressions or ():
        if each.operator == "In":
            return {(each.key, value) for value in each.values or ()}
    return None
