"""The room that pods take on nodes, as waiting pods have to respect it, and the events of its change.

A placed pod takes room from everybody. Room is also kept on a node before a pod is there: for a
nominated pod and for the replacement of a moved pod, which only pods of at most their priority
respect, and for a pod of a split group. All of them are treated alike: whatever a filter reads of
the pod, and the priority up to which the room is kept, is an event when it changes.
"""

from collections.abc import Iterable, Mapping
from math import inf
from typing import NamedTuple

from msgspec.structs import replace

from service.engine.framework.events import Change, ClusterEvent, pod_events
from service.model.core.primitives import ObjectName
from service.model.pods.pod import Pod
from service.model.registry.manifests import PodManifest
from service.scheduler.replica.replica import Entry
from service.scheduler.replica.stored_kinds import GroupReservation, MoveReservation, StoredManifest

_TAKING_ROOM = frozenset({PodManifest.kind, GroupReservation.kind, MoveReservation.kind})
"""The kinds of objects that take room on nodes, or keep it."""


class Occupancy(NamedTuple):
    """The room that a pod takes on a node."""

    pod: Pod
    """The pod, with the node's name."""
    priority_max: float
    """The highest priority of the pods that respect it, or infinity for all pods."""


def occupancy_of(
    manifest: StoredManifest | None, reservation: GroupReservation | None = None
) -> Occupancy | None:
    """Return the room that an object takes, or None; `reservation` is the one of a pod's group."""
    if isinstance(manifest, MoveReservation):
        pod = manifest.pod.pod
        if manifest.came_to:
            return None
        return Occupancy(replace(pod, node_name=manifest.node_name), pod.priority)
    if not isinstance(manifest, PodManifest) or manifest.pod.finished:
        return None
    pod = manifest.pod
    if pod.node_name is not None:
        return Occupancy(pod, inf)
    if reservation is not None and reservation.pod_uid == pod.uid:
        return Occupancy(replace(pod, node_name=reservation.node_name), inf)
    if pod.nominated_node_name is not None and pod.wants_node:
        return Occupancy(replace(pod, node_name=pod.nominated_node_name), pod.priority)
    return None


def occupancy_events(before: Occupancy | None, after: Occupancy | None) -> list[ClusterEvent]:
    """Return the events of a change of room: what is given up, and who is really there now."""
    if before is None or after is None or before.pod.node_name != after.pod.node_name:
        events = [] if before is None else pod_events(before.pod, None)
        return [*events, *_arrival(after)]
    if after.priority_max < before.priority_max:
        return [*pod_events(before.pod, None), *_arrival(after)]
    events = pod_events(before.pod, after.pod)
    return events if after.priority_max == before.priority_max else [*events, *_arrival(after)]


def _placed(manifest: StoredManifest | None) -> Pod | None:
    """Return the pod if rules count it on its node, or None."""
    if not isinstance(manifest, PodManifest):
        return None
    pod = manifest.pod
    return None if pod.node_name is None or pod.finished else pod


def _arrival(after: Occupancy | None) -> list[ClusterEvent]:
    """Return the event for a pod that rules count; kept room never helps anybody."""
    if after is None or after.priority_max != inf:
        return []
    return [ClusterEvent(Change.POD_CAME, (after.pod,))]


class Occupancies:
    """Follows the room on the nodes of one cluster.

    Only the pods of split groups are remembered, because their room is an object of its own.
    """

    def __init__(self) -> None:
        self._reservations: dict[ObjectName, GroupReservation] = {}
        self._pods: dict[ObjectName, PodManifest] = {}
        """The pods of the reservations, if they exist."""

    def load(
        self,
        reservations: Mapping[ObjectName, GroupReservation],
        pods: Iterable[PodManifest],
    ) -> None:
        """Start from the reservations of a cluster and all its pods without a node."""
        self._reservations = dict(reservations)
        self._pods = {}
        for pod in pods if reservations else ():
            if (pod.namespace, pod.name) in reservations:
                self._pods[pod.namespace, pod.name] = pod

    def is_reserved(self, key: ObjectName) -> bool:
        """Return whether a node is reserved for a pod of this name, as part of a split group."""
        return key in self._reservations

    def follow(self, entry: Entry, waiting: Mapping[ObjectName, PodManifest]) -> list[ClusterEvent]:
        """Return the events of a change of a pod or of kept room; `waiting` are the queue's pods.

        Without waiting pods, no event is of any use, so nothing is returned. Reservations are
        remembered even then, because one is stored before its pod.
        """
        if entry.kind not in _TAKING_ROOM:
            return []
        before = entry.before.manifest if entry.before else None
        after = entry.after.manifest if entry.after else None
        if entry.kind == GroupReservation.kind:
            return self._follow_reservation(entry.key, before, after, waiting)
        if not (waiting or self._reservations):
            return []
        old, new = _placed(before), _placed(after)
        if (before is None or old is not None) and (after is None or new is not None):
            return pod_events(old, new)  # the most frequent case
        reservation = None
        if entry.kind == PodManifest.kind and self._reservations:
            reservation = self._reservations.get(entry.key)
            if reservation is not None:
                self._remember(entry.key, after)
        return occupancy_events(occupancy_of(before, reservation), occupancy_of(after, reservation))

    def _follow_reservation(
        self,
        key: ObjectName,
        before: StoredManifest | None,
        after: StoredManifest | None,
        waiting: Mapping[ObjectName, PodManifest],
    ) -> list[ClusterEvent]:
        old = before if isinstance(before, GroupReservation) else None
        new = after if isinstance(after, GroupReservation) else None
        pod = self._pods.get(key) if old is not None else waiting.get(key)
        if new is None:
            self._reservations.pop(key, None)
            self._pods.pop(key, None)
        else:
            self._reservations[key] = new
            self._remember(key, pod)
        return occupancy_events(occupancy_of(pod, old), occupancy_of(pod, new))

    def _remember(self, key: ObjectName, pod: StoredManifest | None) -> None:
        if isinstance(pod, PodManifest):
            self._pods[key] = pod
        else:
            self._pods.pop(key, None)
