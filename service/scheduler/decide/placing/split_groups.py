"""The part of one cluster in placing a group in several: nodes are reserved, then all pods bound or none.

Each step is one commit of one cluster. What becomes of the group is decided by one object of its home
cluster (`SplitGroup`), so whoever takes a step twice, or too late, changes nothing by it.
"""

from msgspec.structs import replace

from service.engine import Placement
from service.model.errors import Conflict
from service.model.multi_cluster.multi_cluster_criteria import (
    GroupComparison,
    ReservationComparison,
)
from service.model.objects.pods_and_nodes import Pod
from service.scheduler.decide.context import DecisionContext
from service.scheduler.decide.groups.group_membership import members_of
from service.scheduler.decide.groups.waiting_groups import leave_waiting
from service.scheduler.decide.move_reservations import note_arrival
from service.scheduler.decide.placing.pod_placement import RESERVED, RESERVED_REASON, Candidate
from service.scheduler.decide.status.pod_conditions import (
    bound,
    tell_scheduled,
    waiting,
)
from service.scheduler.protocol.intents import AdvanceGroup
from service.scheduler.protocol.split_groups import GroupAnswer, ReservationTerms
from service.scheduler.replica.pod_groups import group_of
from service.scheduler.replica.replica import Replica
from service.scheduler.replica.stored_kinds import GroupReservation, SplitGroup

BOUND_WITH_IT = (
    "its volumes or devices would have to be bound with it, which is done in one cluster at a time"
)
"""Why a pod is no part of a group that is placed in several clusters."""


def binds_more(pod: Pod) -> bool:
    """Whether more is bound with a pod than the pod, so that it cannot be reserved and given up."""
    return bool(pod.claims or pod.spec.volumes or pod.spec.resource_claims)


def begin(context: DecisionContext, reserving: ReservationTerms) -> None:
    """Have the home cluster know of a group, with the reservations of its own pods."""
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
    """Store a new pod as a pending one whose node is reserved, and return its uid."""
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
    context.replica.put(waiting(context, manifest, RESERVED_REASON, RESERVED))
    context.remember(manifest.namespace, manifest.name, placement.node_name)
    return uid


def advance_group(context: DecisionContext, intent: AdvanceGroup) -> GroupAnswer:
    """Take a step of a group in this cluster, if it has not been taken.

    Raises:
        Conflict: the group is to be committed, but somebody has given it up.
    """
    group = _group(context.replica, intent.group)
    match intent.step:
        case "Commit":
            group = _commit(context, group)
        case "Bind":
            for each in _reservations(context.replica, intent.group):
                _bind(context, each)
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
    """Tell of the pod group that a pod is in how it stands with it in this cluster."""
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
    """Tell of a pod to which group the node belongs that is reserved for it, if one is."""
    found = replica.reservations.get(candidate.key)
    return None if found is None else ReservationComparison(group=found.group, home=found.home)


def _group(replica: Replica, name: str) -> SplitGroup | None:
    stored = replica.get(SplitGroup.kind, "", name)
    if stored is None:
        return None
    assert isinstance(stored.manifest, SplitGroup)
    return stored.manifest


def _reservations(replica: Replica, group: str) -> list[GroupReservation]:
    found = [each for each in replica.reservations.values() if each.group == group]
    return sorted(found, key=lambda each: (each.namespace, each.name))


def _commit(context: DecisionContext, group: SplitGroup | None) -> SplitGroup:
    if group is None:
        raise Conflict("The group was given up meanwhile; ask again.")
    if group.committed:
        return group
    committed = replace(group, committed=True)
    context.replica.put(committed)
    for each in _reservations(context.replica, group.name):
        _bind(context, each)
    return committed


def _bind(context: DecisionContext, reservation: GroupReservation) -> None:
    """Bind a pod to its node; whatever befell it meanwhile, it befell a pod that was as good as bound.

    A pod that is being deleted is bound too, so that whoever confirms that the pods of this node have
    stopped sees it.
    """
    replica, node_name = context.replica, reservation.node_name
    replica.delete(reservation.kind, reservation.namespace, reservation.name)
    manifest = replica.pod(reservation.namespace, reservation.name)
    if manifest is None or manifest.uid != reservation.pod_uid:
        return
    if manifest.pod.node_name is not None or manifest.pod.finished:
        return
    placed = bound(context, manifest, node_name, manifest.uid)
    replica.put(placed)
    note_arrival(replica, placed.pod)
    tell_scheduled(context, manifest, node_name, manifest.uid)


def _release(context: DecisionContext, name: str, group: SplitGroup | None) -> None:
    """Give a group up, unless it is committed: it was never placed, and nobody asks for its pods."""
    replica = context.replica
    if group is not None and group.committed:
        return
    if group is not None:
        replica.delete(group.kind, group.namespace, group.name)
    for each in _reservations(replica, name):
        replica.delete(each.kind, each.namespace, each.name)
        manifest = replica.pod(each.namespace, each.name)
        if manifest is None or manifest.uid != each.pod_uid or manifest.pod.node_name is not None:
            continue
        leave_waiting(replica, (each.namespace, each.name))
        replica.delete(manifest.kind, manifest.namespace, manifest.name)
