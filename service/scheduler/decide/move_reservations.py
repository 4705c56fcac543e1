"""Room that is kept for what comes in place of pods that plans move.

From when a pod is evicted for a move until another one comes in its place, its plan keeps room on
the node that it has chosen: by an object of the cluster, so that no server needs to remember it,
and the pod itself may be gone meanwhile.
"""

from datetime import datetime

from msgspec.structs import replace

from service.engine.placing.nominations import replaced_by
from service.model.manifests.manifest import KeptManifest, PodManifest
from service.model.objects.pods_and_nodes import Pod
from service.scheduler.replica.replica import Replica
from service.scheduler.replica.stored_kinds import MoveReservation


def reservations_in(replica: Replica) -> list[MoveReservation]:
    """Return all reservations for moves, by namespace and name."""
    found = [each.manifest for each in replica.objects(MoveReservation.kind)]
    kept = [each for each in found if isinstance(each, MoveReservation)]
    return sorted(kept, key=lambda each: (each.namespace, each.name))


def reserve(
    replica: Replica, plan: KeptManifest, pod: PodManifest, node_name: str, since: datetime
) -> None:
    """Keep room on a node for what comes in place of a pod that is evicted now."""
    replica.put(
        MoveReservation(
            pod=pod, node_name=node_name, plan=plan.name, plan_uid=plan.uid, since=since
        )
    )


def note_arrival(replica: Replica, pod: Pod) -> None:
    """Note that a pod has come to its node; if it replaces one that is moved, no room is kept for that any more."""
    if not replica.cluster.reserved or pod.node_name is None or pod.terminating:
        return
    moved = replaced_by(replica.cluster, pod)
    stored = None if moved is None else replica.get(MoveReservation.kind, *moved)
    if stored is not None:
        assert isinstance(stored.manifest, MoveReservation)
        replica.put(replace(stored.manifest, came_to=pod.node_name))


def give_up(replica: Replica, reservation: MoveReservation) -> None:
    """Keep room for a move no longer."""
    replica.delete(reservation.kind, reservation.namespace, reservation.name)
