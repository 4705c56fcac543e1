"""Mistakes in the loop, in committing and in settling what is unknown."""

from service.model.core.errors import OutcomeUnknown, StorageUnavailable
from service.model.log.commit import Head
from service.model.log.results import Committed, Lost
from service.scheduler.commit.cluster_loop import ClusterLoop
from service.scheduler.commit.committer import Committer
from service.scheduler.commit.locked import CommitUnderLock
from service.scheduler.commit.request_batches import Batch
from service.scheduler.dispatch import is_advisory
from tests.concurrency.planted.registry import bug, made_with


@bug("P8, A6", "ClusterLoop.publish")
def answered_before_the_commit(patch):
    """Answers are given out when a batch is sent, not when it is committed."""
    publish = ClusterLoop.publish

    def publish_and_answer(self, batch):
        publish(self, batch)
        batch.release()

    patch.setattr(ClusterLoop, "publish", publish_and_answer)


@bug("P8", "Batch.add")
def refusals_answered_at_once(patch):
    """A refusal does not wait until the state that it rests on is committed."""
    add = Batch.add

    def add_and_refuse(self, ticket, outcome, entries):
        add(self, ticket, outcome, entries)
        if isinstance(outcome, Exception):
            ticket.answer(outcome)

    patch.setattr(Batch, "add", add_and_refuse)


@bug("P8", "Batch.add")
def questions_answered_at_once(patch):
    """What only tells is told from the tentative state."""
    add = Batch.add

    def add_and_tell(self, ticket, outcome, entries):
        add(self, ticket, outcome, entries)
        if is_advisory(ticket.intent):
            ticket.answer(outcome)

    patch.setattr(Batch, "add", add_and_tell)


@bug("P8, A12", "Committer.publish")
def no_look_at_the_head(patch):
    """Answers without changes are not confirmed by a look at the head."""
    publish = Committer.publish

    async def publish_blindly(self, batch, head):
        if batch.changes or batch.records:
            return await publish(self, batch, head)
        return Committed(head)

    patch.setattr(Committer, "publish", publish_blindly)


@bug("P4, A7", "Committer.settle")
def unknown_taken_for_refused(patch):
    """A lost answer is told as if nothing had been committed."""

    async def settle(self, request, cause):
        raise StorageUnavailable("No.")

    patch.setattr(Committer, "settle", settle)


@bug("P4, A6", "Committer.settle")
def unknown_taken_for_committed(patch):
    """A lost answer is told as if all had gone well."""
    made = made_with(patch, Committer)

    async def settle(self, request, cause):
        now = made[self]["clock"].now()
        return Committed(Head(request.last_revision, request.commit_id, now))

    patch.setattr(Committer, "settle", settle)


@bug("P4, A7", "Committer.settle")
def unknown_taken_for_lost(patch):
    """After a lost answer all is decided again, without asking what became of the attempt."""
    made = made_with(patch, Committer)

    async def settle(self, request, cause):
        return Lost(await made[self]["store"].log.head(made[self]["cluster_id"]))

    patch.setattr(Committer, "settle", settle)


@bug("P4, A7", "Committer.settle")
def unknown_tried_again(patch):
    """After a lost answer the same is committed once more, and the second answer believed."""
    made = made_with(patch, Committer)

    async def settle(self, request, cause):
        return await made[self]["store"].log.commit(made[self]["cluster_id"], request)

    patch.setattr(Committer, "settle", settle)


@bug("A7", "Batch.fail")
def unsettled_told_as_refused(patch):
    """What could not be settled is told as definitely not done."""
    fail = Batch.fail

    def fail_definitely(self, error):
        known = StorageUnavailable("No.") if isinstance(error, OutcomeUnknown) else error
        fail(self, known)

    patch.setattr(Batch, "fail", fail_definitely)


@bug("P7", "ClusterLoop.withdraw")
def next_batch_survives_a_lost_one(patch):
    """After a lost race only that batch is undone, not the one decided on top of it."""
    withdraw, requeue_open = ClusterLoop.withdraw, ClusterLoop.requeue_open

    def withdraw_it_alone(self, batch):
        patch.setattr(ClusterLoop, "requeue_open", lambda self: None)
        withdraw(self, batch)
        patch.setattr(ClusterLoop, "requeue_open", requeue_open)

    patch.setattr(ClusterLoop, "withdraw", withdraw_it_alone)


@bug("P9", "ClusterLoop.conclude")
def lost_race_answered_as_decided(patch):
    """After a lost race the answers are given out all the same."""
    conclude = ClusterLoop.conclude

    def conclude_well(self, publication, result):
        if isinstance(result, Lost):
            publication.batch.release()
        conclude(self, publication, result)

    patch.setattr(ClusterLoop, "conclude", conclude_well)


@bug("P11", "Committer.publish")
def keyed_refusals_not_recorded(patch):
    """Keyed answers that changed nothing are not recorded."""
    publish = Committer.publish

    async def publish_unrecorded(self, batch, head):
        if not batch.changes:
            batch.records.clear()
        return await publish(self, batch, head)

    patch.setattr(Committer, "publish", publish_unrecorded)


@bug("P11", "CommitUnderLock.run")
def locked_refusals_not_recorded(patch):
    """The same, but only under the lock: it was so until the simulation found it."""
    run, made = CommitUnderLock.run, made_with(patch, CommitUnderLock)

    async def run_unrecorded(self):
        committer = made[self]["committer"]
        publish = committer.publish
        committer.publish = lambda batch, head: _committed(head)
        try:
            return await run(self)
        finally:
            committer.publish = publish

    async def _committed(head):
        return Committed(head)

    patch.setattr(CommitUnderLock, "run", run_unrecorded)
