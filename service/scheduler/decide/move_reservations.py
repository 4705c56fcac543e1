"""Room reserved for the replacements of pods that plans move.

From the eviction of a moved pod until the placement of its replacement, the plan reserves room on
the chosen node. The reservation is an object of the cluster, so no server has to keep it in memory,
and the evicted pod may be deleted in the meantime.
"""

from datetime import datetime

from msgspec.structs import replace

from service.engine.placing.nominations import replaced_by
from service.model.pods.pod import Pod
from service.model.registry.manifests import DeclaredManifest, PodManifest
from service.scheduler.replica.replica import Replica
from service.scheduler.replica.stored_kinds import MoveReservation


def reservations_in(replica: Replica) -> list[MoveReservation]:
    """Return all move reservations, by namespace and name."""
    manifests = [stored.manifest for stored in replica.objects(MoveReservation.kind)]
    reservations = [manifest for manifest in manifests if isinstance(manifest, MoveReservation)]
    return sorted(reservations, key=lambda reservation: (reservation.namespace, reservation.name))


def reserve(
    replica: Replica, plan: DeclaredManifest, pod: PodManifest, node_name: str, since: datetime
) -> None:
    """Reserve room on a node for the replacement of a pod that is being evicted."""
    replica.put(
        MoveReservation(
            pod=pod, node_name=node_name, plan=plan.name, plan_uid=plan.uid, since=since
        )
    )


def note_arrival(replica: Replica, pod: Pod) -> None:
    """Record a placed pod; if it replaces a moved one, drop that pod's reservation."""
    if not replica.cluster.reserved or pod.node_name is None or pod.terminating:
        return
    moved = replaced_by(replica.cluster, pod)
    stored = None if moved is None else replica.get(MoveReservation.kind, *moved)
    if stored is not None:
        assert isinstance(stored.manifest, MoveReservation)
        replica.put(replace(stored.manifest, came_to=pod.node_name))


def give_up(replica: Replica, reservation: MoveReservation) -> None:
    """Drop the reservation of a move."""
    replica.delete(reservation.kind, reservation.namespace, reservation.name)
