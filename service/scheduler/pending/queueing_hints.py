"""Which changes can help a waiting pod: kube-scheduler's queueing hints.

A refusal names, for every node, the first plugin that rejects the pod there. A node can become
feasible only through a change that alters one of these verdicts, so the pod is tried again after
such changes and after no others. When in doubt, a hint says yes, since a needless attempt costs
little, but a missed one would leave a pod waiting.

Each plugin has its hints in its own module (`service.engine.framework.plugin`); this module turns
changes into events. Source: `pkg/scheduler/framework/plugins/*`, `EventsToRegister` and
`isSchedulableAfter…`, v1.35.
"""

from collections.abc import Collection, Mapping

from service.engine.framework.events import (
    Change,
    ClusterEvent,
    Pair,
    node_events,
    object_events,
)
from service.engine.profiles.registry import hinted_plugins, known_plugins
from service.model.nodes.namespaces import NamespaceManifest
from service.model.nodes.node import Node
from service.model.pods.pod import Pod
from service.model.registry.manifests import (
    DeclaredManifest,
    NodeManifest,
    PodGroupManifest,
    PodManifest,
)
from service.scheduler.replica.replica import Entry
from service.scheduler.replica.stored_kinds import (
    GroupReservation,
    MoveReservation,
    NodeState,
    WaitingGroup,
)

ADMISSION = "Admission"
"""Replaces the plugin if the pod itself is refused, regardless of room on nodes."""
MEMBERS = "Members"
"""Replaces the plugin if the pod's group has too few members, so only more members help."""
NO_NODES = ""
"""Replaces the plugin if the cluster has no nodes."""

_BESIDES_PLUGINS: Mapping[Change, frozenset[str]] = {
    Change.NODE_ADDED: frozenset({NO_NODES}),
    Change.ADMISSION: frozenset({ADMISSION}),
    # A rule about anti-affinity to all namespaces reads which namespaces there are.
    Change.NAMESPACE_RELABELLED: frozenset({ADMISSION}),
}
"""The events that may change refusals other than those of plugins."""

EVERYTHING = ClusterEvent(None)


def plugins_turned_by(event: ClusterEvent) -> frozenset[str] | None:
    """Return the plugins whose rejections an event can change, or None for all."""
    if event.change is None:
        return None
    return hinted_plugins(event.change) | _BESIDES_PLUGINS.get(event.change, frozenset())


def identity_of(event: ClusterEvent) -> object:
    """Return a value that is equal for events that help the same pods."""
    node = event.node and tuple(map(_node_identity, event.node))
    pods = tuple(map(_identity, event.pods))
    objects = tuple(map(id, event.objects))
    return event.change, event.freed, event.relabelled, pods, node, objects


def events_of(entry: Entry) -> list[ClusterEvent]:
    """Return the events of a change for pending pods, besides those of the room on nodes."""
    before = entry.before.manifest if entry.before else None
    after = entry.after.manifest if entry.after else None
    manifest = after or before
    match manifest:
        case PodManifest() | MoveReservation():
            return []  # `Occupancies` tells what their room means to other pods.
        case GroupReservation():
            return [ClusterEvent(Change.ADMISSION)]  # The pod itself may be tried again.
        case NodeManifest():
            old = before.node if isinstance(before, NodeManifest) else None
            new = after.node if isinstance(after, NodeManifest) else None
            return node_events(old, new)
        case NamespaceManifest():
            changed = before is None or after is None or before.labels != after.labels
            return [ClusterEvent(Change.NAMESPACE_RELABELLED)] if changed else []
        case DeclaredManifest():
            previous = before.kept if isinstance(before, DeclaredManifest) else None
            return object_events(
                previous, after.kept if isinstance(after, DeclaredManifest) else None
            )
        case PodGroupManifest() | WaitingGroup():
            return []  # The queue itself tracks which pods wait for each other.
        case NodeState():
            return []  # The node's own change carries everything that matters to pods.
        case _:
            return [EVERYTHING if entry.kind == "Cluster" else ClusterEvent(Change.ADMISSION)]


def topics(plugin: str, pod: Pod, reasons: Collection[str]) -> frozenset[Pair] | None:
    """Return labels such that each event that can help has one of them, or None for any event."""
    known = known_plugins().get(plugin)
    return None if known is None else known.topics(pod, reasons)


def labels_of(plugin: str, event: ClusterEvent) -> frozenset[Pair] | None:
    """Return the labels to compare with `topics`, or None if an event concerns all pods."""
    known = known_plugins().get(plugin)
    return None if known is None else known.labels_of(event)


def helps(event: ClusterEvent, plugin: str, pod: Pod, reasons: Collection[str]) -> bool:
    """Return whether an event can change this plugin's verdict on a pod."""
    if event.change is None:
        return True
    if plugin not in hinted_plugins(event.change):
        return plugin in _BESIDES_PLUGINS.get(event.change, ())
    return known_plugins()[plugin].helps(event, pod, reasons)


def _identity(pod: Pod) -> object:
    labels = frozenset(pod.labels.items())
    return pod.namespace, id(pod.spec), pod.terminating, labels, pod.claims, pod.controller


def _node_identity(node: Node | None) -> object:
    return node and (node.name, frozenset(node.labels.items()))
