"""Which changes can help a pod that waits: the queueing hints of kube-scheduler.

A refusal names, for every node, the first plugin that rejects it there. The pod can become
feasible only through a change that turns one of these verdicts, so it is tried again after such
changes and after no others. Where a hint cannot tell for sure it says yes: a needless attempt costs
little, a missed one would leave a pod waiting.

Source: `pkg/scheduler/framework/plugins/*`, `EventsToRegister` and `isSchedulableAfter…`, v1.35.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

from service.engine.plugins.inter_pod_affinity import EXISTING
from service.engine.plugins.node_affinity import ENFORCED
from service.engine.plugins.node_resources_fit import TOO_MANY_PODS
from service.model.manifest import NamespaceManifest, NodeManifest, PodGroupManifest, PodManifest
from service.model.objects import (
    LabelSelector,
    Node,
    NodeSelectorRequirement,
    Pod,
    PodAffinity,
    PodAffinityTerm,
)
from service.model.requests import placed_requests
from service.model.selectors import (
    matches,
    required_node_affinity_matches,
    required_node_selectors,
)
from service.scheduler.replica.kinds import WaitingGroup
from service.scheduler.replica.replica import Entry

FIT = "NodeResourcesFit"
AFFINITY = "InterPodAffinity"
SPREAD = "PodTopologySpread"
ADMISSION = "Admission"
"""Not a plugin of Kubernetes: the pod itself is refused, wherever there is room."""
MEMBERS = "Members"
"""Neither: too few members of the pod's group are there, which only they can change."""
NO_NODES = ""
"""Stands for the plugin where there is no node that could reject."""

_INSUFFICIENT = "Insufficient "
_NEGATIVE = frozenset({"NotIn", "DoesNotExist"})
_RELATIONS = frozenset({AFFINITY, SPREAD})
_NODE_AFFINITY = frozenset({"NodeAffinity"})
_NODE_ADDED = frozenset(
    {
        NO_NODES,
        FIT,
        AFFINITY,
        SPREAD,
        "NodeName",
        "NodePorts",
        "NodeUnschedulable",
        "TaintToleration",
    }
)
_TAINTS = frozenset({"NodeUnschedulable", "TaintToleration", SPREAD})
_POD_LEFT = frozenset({FIT, "NodePorts", AFFINITY, SPREAD})

Pair = tuple[str, str]
"""A label: key and value."""
ANY_VALUE = "*"
"""As a pair's value: whatever value the key has, or none; no label has this one."""


class ClusterEvent(NamedTuple):
    """Something that happened to nodes, namespaces or placed pods."""

    plugins: frozenset[str] | None
    """Those whose verdicts it can turn; None: all of them."""
    pods: tuple[Pod, ...] = ()
    """The pod that came, left or changed, as it was and as it is; empty: no pod did."""
    freed: frozenset[str] | None = None
    """The resources that the pod used, if it left; None if it did not."""
    relabelled: frozenset[str] | None = None
    """The label keys of which the node has another value now; None if it is not about labels."""
    node: tuple[Node | None, Node] | None = None
    """A node as it was and as it is, whose coming or labels are what it is about."""

    @property
    def identity(self) -> object:
        """Equal for events that help the same pods."""
        node = self.node and tuple(map(_node_identity, self.node))
        return self.plugins, self.freed, self.relabelled, tuple(map(_identity, self.pods)), node

    @property
    def pairs(self) -> frozenset[Pair] | None:
        """Labels that it is about, see `topics`; None: it may concern anybody."""
        if self.node is not None:
            return _turned(*self.node)
        if not self.pods or (self.freed is not None and self.forbids):
            return None
        return frozenset(pair for pod in self.pods for pair in pod.labels.items())

    @property
    def forbids(self) -> bool:
        """Whether a pod left, or changed, that keeps others out by required anti-affinity."""
        return any(True for pod in self.pods for _ in _terms(pod, "pod_anti_affinity"))


EVERYTHING = ClusterEvent(None)


def events_of(entry: Entry) -> list[ClusterEvent]:
    """What a committed change may mean for pods that wait; nothing for most changes."""
    before = entry.before.manifest if entry.before else None
    after = entry.after.manifest if entry.after else None
    some = after or before
    match some:
        case PodManifest():
            return _pod_events(_counting(before), _counting(after))
        case NodeManifest():
            old = before.node if isinstance(before, NodeManifest) else None
            new = after.node if isinstance(after, NodeManifest) else None
            return _node_events(old, new)
        case NamespaceManifest():
            changed = before is None or after is None or before.labels != after.labels
            return _of(frozenset({AFFINITY}) if changed else frozenset())
        case PodGroupManifest() | WaitingGroup():
            return []  # The queue knows who waits with whom.
        case _:
            return [EVERYTHING] if entry.kind == "Cluster" else _of(frozenset({ADMISSION}))


def topics(plugin: str, pod: Pod, reasons: Collection[str]) -> frozenset[Pair] | None:
    """Labels of which an event has one at least if it matters to `plugin`'s verdict; None: any."""
    match plugin:
        case "InterPodAffinity":
            return _pairs(term.label_selector for term in _required_terms(pod))
        case "PodTopologySpread":
            constraints = pod.spec.topology_spread_constraints
            # Without any of its own it was the cluster's default constraints that rejected.
            return _pairs(each.label_selector for each in constraints) if constraints else None
        case "NodeAffinity":
            return None if ENFORCED in reasons else _node_pairs(pod)
        case _:
            return None


def helps(event: ClusterEvent, plugin: str, pod: Pod, reasons: Collection[str]) -> bool:
    """Whether an event can turn this plugin's verdict on a pod."""
    if event.plugins is None:
        return True
    if plugin not in event.plugins:
        return False
    if event.node is not None:
        # The profile's own rule, of which nothing is known here.
        return ENFORCED in reasons or _begins_to_match(pod, *event.node)
    if plugin == AFFINITY and event.relabelled is not None:
        keys = {term.topology_key for term in _required_terms(pod)}
        # Where other pods' terms reject, nothing is known of their topology keys.
        return EXISTING in reasons or not keys.isdisjoint(event.relabelled)
    if plugin == FIT and event.freed is not None:
        freed = event.freed
        return any(
            reason == TOO_MANY_PODS or reason.removeprefix(_INSUFFICIENT) in freed
            for reason in reasons
        )
    return not event.pods or any(_concerns(plugin, pod, other) for other in event.pods)


def _concerns(plugin: str, pod: Pod, other: Pod) -> bool:
    """Whether it may matter to a plugin's verdict on a pod that another one came, left or changed."""
    match plugin:
        case "InterPodAffinity":
            return _are_related(pod, other)
        case "PodTopologySpread":
            return _are_counted(pod, other)
        case _:
            return True


def _of(plugins: frozenset[str]) -> list[ClusterEvent]:
    return [ClusterEvent(plugins)] if plugins else []


def _node_events(before: Node | None, after: Node | None) -> list[ClusterEvent]:
    if after is None:
        return _of(_RELATIONS)
    labelled = ClusterEvent(_NODE_AFFINITY, node=(before, after))
    if before is None:
        return [ClusterEvent(_NODE_ADDED), labelled]
    events = _of(_other_changes(before, after))
    if before.labels != after.labels:
        keys = _differing(before.labels, after.labels)
        events += [ClusterEvent(_RELATIONS, relabelled=keys), labelled]
    return events


def _differing(before: Mapping[str, str], after: Mapping[str, str]) -> frozenset[str]:
    return frozenset(key for key, _ in before.items() ^ after.items())


def _turned(before: Node | None, after: Node) -> frozenset[Pair]:
    """The labels that a node has now and had not before, and whose values were others."""
    old = before.labels if before else {}
    keys = _differing(old, after.labels)
    given = {(key, after.labels[key]) for key in keys if key in after.labels}
    return frozenset(given | {(key, ANY_VALUE) for key in keys})


def _begins_to_match(pod: Pod, before: Node | None, after: Node) -> bool:
    """Whether a node matches a pod's node affinity now, and did not before.

    Terms that are empty count as what wakes the pod, for they mean what the configuration says.
    """
    if not required_node_affinity_matches(
        pod.spec, after.name, after.labels, empty_matches_all=True
    ):
        return False
    return before is None or not required_node_affinity_matches(
        pod.spec, before.name, before.labels
    )


def _other_changes(before: Node, after: Node) -> frozenset[str]:
    """Whom a change of the node's taints and resources concerns."""
    plugins: frozenset[str] = frozenset()
    if (before.taints, before.unschedulable) != (after.taints, after.unschedulable):
        plugins |= _TAINTS
    if before.allocatable != after.allocatable:
        plugins |= {FIT}
    return plugins


def _counting(manifest: object) -> Pod | None:
    """The pod, if it counts on a node."""
    if not isinstance(manifest, PodManifest):
        return None
    pod = manifest.pod
    return None if pod.node_name is None or pod.finished else pod


def _pod_events(before: Pod | None, after: Pod | None) -> list[ClusterEvent]:
    if before is None or after is None:
        arrived = [ClusterEvent(_RELATIONS, (after,))] if after else []
        return [_leaving(before)] if before else arrived
    if before.node_name != after.node_name:
        return [_leaving(before), ClusterEvent(_RELATIONS, (after,))]
    events = []
    if before.labels != after.labels or before.terminating != after.terminating:
        events.append(ClusterEvent(_RELATIONS, (before, after)))
    if before.resize != after.resize or before.spec != after.spec:
        events.append(ClusterEvent(frozenset({FIT})))
    return events


def _leaving(pod: Pod) -> ClusterEvent:
    amounts = placed_requests(pod.spec, pod.resize).amounts
    freed = frozenset(name for name, amount in amounts.items() if amount)
    return ClusterEvent(_POD_LEFT, (pod,), freed)


def _identity(pod: Pod) -> object:
    return pod.namespace, id(pod.spec), pod.terminating, frozenset(pod.labels.items())


def _node_identity(node: Node | None) -> object:
    return node and (node.name, frozenset(node.labels.items()))


def _required_terms(pod: Pod) -> Iterator[PodAffinityTerm]:
    yield from _terms(pod, "pod_affinity")
    yield from _terms(pod, "pod_anti_affinity")


def _terms(pod: Pod, name: str) -> Iterator[PodAffinityTerm]:
    rules: PodAffinity | None = getattr(pod.spec.affinity, name, None)
    if rules is not None:
        yield from rules.required_during_scheduling_ignored_during_execution or ()
        yield from rules.required_during_scheduling_required_during_execution or ()


def _are_related(waiting: Pod, other: Pod) -> bool:
    """Whether a term of the one may be about the other; namespace labels are not looked up."""
    own = any(_may_match(term, waiting, other) for term in _required_terms(waiting))
    return own or any(
        _may_match(term, other, waiting) for term in _terms(other, "pod_anti_affinity")
    )


def _may_match(term: PodAffinityTerm, owner: Pod, other: Pod) -> bool:
    everywhere = term.namespace_selector is not None or term.namespaces == ()
    if not everywhere and other.namespace not in (term.namespaces or (owner.namespace,)):
        return False
    return matches(term.label_selector, other.labels)


def _are_counted(waiting: Pod, other: Pod) -> bool:
    """Whether a spread constraint may count the other pod; label keys only narrow it further."""
    constraints = waiting.spec.topology_spread_constraints
    return waiting.namespace == other.namespace and (
        not constraints or any(matches(each.label_selector, other.labels) for each in constraints)
    )


def _node_pairs(pod: Pod) -> frozenset[Pair] | None:
    """Labels of which a node gets or loses one when it begins to match; None: perhaps of none.

    A node that comes gets all its labels; so it is any of them, unless what is asked for holds of
    a node without labels.
    """
    pairs = set((pod.spec.node_selector or {}).items())
    needs_label = bool(pairs)
    for selector in required_node_selectors(pod.spec):
        for term in selector.node_selector_terms:
            asked = term.match_expressions if term else None
            pairs |= {pair for each in asked or () for pair in _requirement_pairs(each)}
            if not needs_label and all(each.operator in _NEGATIVE for each in asked or ()):
                return None
    return frozenset(pairs)


def _requirement_pairs(requirement: NodeSelectorRequirement) -> Iterator[Pair]:
    values = requirement.values if requirement.operator == "In" else None
    return ((requirement.key, value) for value in values or (ANY_VALUE,))


def _pairs(selectors: Iterable[LabelSelector | None]) -> frozenset[Pair] | None:
    pairs: set[Pair] = set()
    for selector in selectors:
        needed = _pairs_of(selector)
        if needed is None:
            return None
        pairs |= needed
    return frozenset(pairs)


def _pairs_of(selector: LabelSelector | None) -> set[Pair] | None:
    """Labels of which whatever matches has one; None where nothing can be said."""
    if selector is None:
        return set()
    for key, value in (selector.match_labels or {}).items():
        return {(key, value)}
    for each in selector.match_expressions or ():
        if each.operator == "In":
            return {(each.key, value) for value in each.values or ()}
    return None
