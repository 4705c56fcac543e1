"""Mistakes in decisions about objects, keys and groups."""

from functools import partial

from service.engine import GroupPlacement, Placement
from service.model.core.errors import RevisionConflict
from service.model.registry.manifests import PodManifest
from service.scheduler import dispatch as decide_module
from service.scheduler.commit import decider as deciding_module
from service.scheduler.commit.request_batches import Ticket
from service.scheduler.decide import object_writes
from service.scheduler.decide.placing import (
    gangs,
    group_placement,
    placement_request,
    pod_placement as one_pod,
)
from service.scheduler.decide.placing.pod_placement import Candidate
from service.scheduler.replica.replica import Replica
from service.scheduler.scheduler import Scheduler
from tests.concurrency.planted.registry import bug, made_with


@bug("P9, A2", "pod_placement.place")
def hint_kept_without_a_check(patch):
    """After a lost race a pod goes where it was to go before, whatever happened meanwhile."""
    place = one_pod.place

    def place_as_before(cluster, pod, hint=None, within=None, *, with_reasons=True):
        if hint is not None:
            return Placement(hint, 0)
        return place(cluster, pod, None, within, with_reasons=with_reasons)

    patch.setattr(one_pod, "place", place_as_before)


@bug("P10, A2", "group_placement.place_group_in_steps")
def group_kept_without_a_check(patch):
    """After a lost race a group goes where it was to go before."""
    place_group_in_steps = group_placement.place_group_in_steps

    def place_as_before(cluster, pods, hints, colocations=()):
        if pods and all(hints):
            return GroupPlacement(tuple(Placement(hint, 0) for hint in hints))
        return (yield from place_group_in_steps(cluster, pods, hints, colocations))

    patch.setattr(group_placement, "place_group_in_steps", place_as_before)


@bug("A20", "PodManifest.has_ended_with_its_node")
def ends_forgotten(patch):
    """Pods that ended with their node are written and placed again as if they had not."""
    never = property(lambda _: False)
    patch.setattr(PodManifest, "has_ended_with_its_node", never)


@bug("A9", "placement_request.place_as_group")
def groups_placed_one_by_one(patch):
    """AllOrNothing places those that it can."""
    patch.setattr(placement_request, "place_as_group", placement_request.place_one_by_one)


@bug("A9", "Gang.search")
def pod_group_starts_with_one(patch):
    """Of a pod group that is complete the first member that fits is placed, and others later."""
    search = gangs.Gang.search

    def first_that_fits(self, ready, need):
        for candidate in ready:
            found = yield from self.together([candidate])
            if isinstance(found, list):
                return found
        return (yield from search(self, ready, need))

    patch.setattr(gangs.Gang, "search", first_that_fits)


@bug("A9", "GroupAttempt.bind")
def last_member_left_out(patch):
    """The last member of a group is answered as placed, but not stored."""
    bind, put = group_placement.GroupAttempt.bind, Replica.put

    def bind_but_one(self, found):
        undoing = []

        def put_remembering(replica, manifest):
            undoing.append(partial(replica.undo, replica.mark()))
            return put(replica, manifest)

        patch.setattr(Replica, "put", put_remembering)
        yield from bind(self, found)
        patch.setattr(Replica, "put", put)
        if len(found) > 1:
            undoing[-1]()

    patch.setattr(group_placement.GroupAttempt, "bind", bind_but_one)


@bug("A7", "object_writes.same_object")
def nothing_new_makes_a_revision(patch):
    """A write that changes nothing makes a revision all the same."""
    patch.setattr(object_writes, "same_object", lambda one, other: False)


@bug("A12", "object_writes.check_preconditions")
def precondition_compared_with_at_least(patch):
    """A resourceVersion is accepted if the object is at least as new."""
    check = object_writes.check_preconditions

    def check_loosely(preconditions, stored):
        try:
            check(preconditions, stored)
        except RevisionConflict:
            wanted = preconditions.resource_version
            if wanted is None or stored is None or stored.revision < int(wanted):
                raise

    patch.setattr(object_writes, "check_preconditions", check_loosely)


@bug("A6", "Replica.in_namespace")
def namespace_leaves_its_pods(patch):
    """Deleting a namespace leaves what is in it."""
    patch.setattr(Replica, "in_namespace", lambda self, namespace: [])


@bug("A7", "placement_request.place_pods")
def dry_runs_are_stored(patch):
    """A dry run is answered as one, but committed."""
    place_pods = placement_request.place_pods

    def place_for_real(context, intent):
        answer = yield from place_pods(context, placement_request.replace(intent, dry_run=False))
        return placement_request.replace(answer, committed=False) if intent.dry_run else answer

    patch.setitem(decide_module.DECISIONS, placement_request.PlacePods, place_for_real)


@bug("A2", "Candidate.is_placed")
def placed_pods_are_placed_again(patch):
    """A pod that has a node is placed once more, perhaps elsewhere."""
    patch.setattr(Candidate, "is_placed", property(lambda self: False))


@bug("P11, A5", "Ticket.record")
def keys_not_recorded(patch):
    """Idempotency keys are accepted and ignored."""
    patch.setattr(Ticket, "record", lambda self, outcome: None)


@bug("A5", "Scheduler.recorded")
def other_request_answered_under_a_key(patch):
    """What a key was used for first is not compared."""
    recorded, made = Scheduler.recorded, made_with(patch, Scheduler)

    async def recorded_for_any(self, cluster, idempotency, key):
        cluster_id = (await self.loop_of(cluster)).cluster_id
        records = await made[self]["store"].log.find_answers(cluster_id, [key])
        same = records[0].request_hash if records else idempotency.request_hash
        forged = placement_request.replace(idempotency, request_hash=same)
        return await recorded(self, cluster, forged, key)

    patch.setattr(Scheduler, "recorded", recorded_for_any)


@bug("A3", "Replica.committed_revision")
def planned_on_tentative_ground(patch):
    """The log says that commits were planned at revisions which never were: it was so once."""
    patch.setattr(Replica, "committed_revision", property(lambda self: self.revision))


@bug("A6", "Decider.steps")
def refused_requests_leave_changes(patch):
    """What a refused request changed is not undone."""
    steps = deciding_module.Decider.steps

    def steps_without_undo(self, replica, batch, ticket):
        undo = Replica.undo
        Replica.undo = lambda replica, mark: None
        try:
            yield from steps(self, replica, batch, ticket)
        finally:
            Replica.undo = undo

    patch.setattr(deciding_module.Decider, "steps", steps_without_undo)
