"""One cluster's part in placing a split group: reserve nodes, then bind all pods or none.

Each step is one commit of one cluster. An object of the home cluster (`SplitGroup`) decides the
group's outcome, so repeated and late steps change nothing.
"""

from msgspec.structs import replace

from service.engine import Placement
from service.model.cluster.comparison import (
    GroupComparison,
    ReservationComparison,
)
from service.model.core.errors import Conflict
from service.model.pods.pod import Pod
from service.scheduler.decide.context import DecisionContext
from service.scheduler.decide.groups.group_membership import members_of
from service.scheduler.decide.groups.waiting_groups import leave_waiting
from service.scheduler.decide.move_reservations import note_arrival
from service.scheduler.decide.placing.pod_placement import RESERVED, RESERVED_REASON, Candidate
from service.scheduler.decide.status.pod_conditions import (
    record_scheduled,
    with_binding,
    with_waiting_condition,
)
from service.scheduler.protocol.intents import AdvanceGroup
from service.scheduler.protocol.split_groups import GroupAnswer, ReservationTerms
from service.scheduler.replica.pod_groups import group_of
from service.scheduler.replica.replica import Replica
from service.scheduler.replica.stored_kinds import GroupReservation, SplitGroup

BOUND_WITH_IT = (
    "its volumes or devices would have to be bound with it, which is done in one cluster at a time"
)
"""Why a pod cannot be part of a split group."""


def binds_more(pod: Pod) -> bool:
    """Return whether placing the pod binds volumes or devices, which is irrevocable."""
    return bool(pod.claims or pod.spec.volumes or pod.spec.resource_claims)


def begin(context: DecisionContext, reserving: ReservationTerms) -> None:
    """Record a split group in its home cluster, with the reservations of its own pods."""
    if reserving.clusters:
        context.replica.put(
            SplitGroup(name=reserving.group, clusters=reserving.clusters, until=reserving.until)
        )


def reserve(
    context: DecisionContext,
    candidate: Candidate,
    placement: Placement,
    reserving: ReservationTerms,
) -> str:
    """Store a new pod as pending with a reserved node, and return its uid."""
    uid = candidate.manifest.uid or context.ids.uid()
    manifest = candidate.manifest.with_identity(uid, candidate.manifest.created or context.now)
    manifest = manifest.with_nomination(placement.node_name)
    context.replica.put(
        GroupReservation(
            namespace=manifest.namespace,
            name=manifest.name,
            pod_uid=uid,
            node_name=placement.node_name,
            group=reserving.group,
            home=reserving.home,
            until=reserving.until,
        )
    )
    context.replica.put(with_waiting_condition(context, manifest, RESERVED_REASON, RESERVED))
    context.remember(manifest.namespace, manifest.name, placement.node_name)
    return uid


def advance_group(context: DecisionContext, intent: AdvanceGroup) -> GroupAnswer:
    """Take a step of a group in this cluster, unless it was already taken.

    Raises:
        Conflict: the step commits the group, but the group has been given up.
    """
    group = _group(context.replica, intent.group)
    match intent.step:
        case "Commit":
            group = _commit(context, group)
        case "Bind":
            for reservation in _reservations(context.replica, intent.group):
                _bind(context, reservation)
        case "Release":
            _release(context, intent.group, group)
        case "Forget":
            if group is not None and group.committed:
                context.replica.delete(group.kind, group.namespace, group.name)
    return GroupAnswer(
        revision=context.replica.revision,
        committed=group is not None and group.committed,
        clusters=() if group is None else group.clusters,
    )


def group_comparison(replica: Replica, candidate: Candidate) -> GroupComparison | None:
    """Return the state of a pod's group in this cluster, or None if the pod has no group."""
    group = group_of(candidate.manifest)
    if group is None:
        return None
    members = members_of(replica, group)
    return GroupComparison(
        name=f"{group.namespace}/{members.title}",
        min_member=members.min_member,
        placed=members.scheduled,
        may_be_split=members.missing is None and members.topology_key is None,
    )


def reservation_comparison(replica: Replica, candidate: Candidate) -> ReservationComparison | None:
    """Return the group that a pod's reserved node belongs to, or None."""
    reservation = replica.reservations.get(candidate.key)
    return (
        None
        if reservation is None
        else ReservationComparison(group=reservation.group, home=reservation.home)
    )


def _group(replica: Replica, name: str) -> SplitGroup | None:
    stored = replica.get(SplitGroup.kind, "", name)
    if stored is None:
        return None
    assert isinstance(stored.manifest, SplitGroup)
    return stored.manifest


def _reservations(replica: Replica, group: str) -> list[GroupReservation]:
    reservations = [
        reservation for reservation in replica.reservations.values() if reservation.group == group
    ]
    return sorted(reservations, key=lambda reservation: (reservation.namespace, reservation.name))


def _commit(context: DecisionContext, group: SplitGroup | None) -> SplitGroup:
    if group is None:
        raise Conflict("The group was given up meanwhile; ask again.")
    if group.committed:
        return group
    committed = replace(group, committed=True)
    context.replica.put(committed)
    for reservation in _reservations(context.replica, group.name):
        _bind(context, reservation)
    return committed


def _bind(context: DecisionContext, reservation: GroupReservation) -> None:
    """Bind a pod to its reserved node unconditionally, since it counts as bound already.

    A pod that is being deleted is bound, too, so that its node can confirm that it has stopped.
    """
    replica, node_name = context.replica, reservation.node_name
    replica.delete(reservation.kind, reservation.namespace, reservation.name)
    manifest = replica.pod(reservation.namespace, reservation.name)
    if manifest is None or manifest.uid != reservation.pod_uid:
        return
    if manifest.pod.node_name is not None or manifest.pod.finished:
        return
    placed = with_binding(context, manifest, node_name, manifest.uid)
    replica.put(placed)
    note_arrival(replica, placed.pod)
    record_scheduled(context, manifest, node_name, manifest.uid)


def _release(context: DecisionContext, name: str, group: SplitGroup | None) -> None:
    """Give up an uncommitted group, deleting its pods, which were never placed."""
    replica = context.replica
    if group is not None and group.committed:
        return
    if group is not None:
        replica.delete(group.kind, group.namespace, group.name)
    for reservation in _reservations(replica, name):
        replica.delete(reservation.kind, reservation.namespace, reservation.name)
        manifest = replica.pod(reservation.namespace, reservation.name)
        if (
            manifest is None
            or manifest.uid != reservation.pod_uid
            or manifest.pod.node_name is not None
        ):
            continue
        leave_waiting(replica, (reservation.namespace, reservation.name))
        replica.delete(manifest.kind, manifest.namespace, manifest.name)
