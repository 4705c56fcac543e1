"""One task per cluster: inbox → decide → commit → answer.

While one batch is being committed, the next is decided on top of it (protocol rule P7). If the
commit fails, the loop undoes both batches, reads the log to its end, and decides their requests
again in the original order (P9). Only this task touches the replica. An answer is released only
once the state on which it rests is committed (P8).
"""

import asyncio
import logging
from collections import deque
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from service.model.core.errors import (
    MoorageError,
    NotFound,
    ObjectUnreadable,
    OutcomeUnknown,
    Overloaded,
    PluginMissing,
    StorageUnavailable,
)
from service.model.devices.cel_questions import Question
from service.model.log.commit import Head, IdempotencyRecord
from service.model.log.lease import ReplicaState
from service.model.log.results import (
    CommitResult,
    Committed,
    DuplicateKey,
    LeasesEnded,
    Lost,
    NotYet,
)
from service.model.registry.manifests import TemplateCache
from service.model.selection.object_filters import ObjectFilter
from service.scheduler.commit.committer import Announce, Committer
from service.scheduler.commit.decider import Decider
from service.scheduler.commit.event_recorder import Record
from service.scheduler.commit.locked import CommitUnderLock, NotCaughtUp
from service.scheduler.commit.metrics import Meter, measure
from service.scheduler.commit.request_batches import TIME_IS_UP, Batch, Ticket, leases_of
from service.scheduler.dispatch import is_advisory
from service.scheduler.protocol.expressions import ExpressionEvaluator, answer_until
from service.scheduler.protocol.intents import PlacePending
from service.scheduler.protocol.limits import Limits
from service.scheduler.protocol.ports import Clock, Ids, Store
from service.scheduler.protocol.suspects import SuspectRegistry
from service.scheduler.replica.follower import Follower, LoadObserver, Observer
from service.scheduler.replica.lag import Lag
from service.scheduler.replica.replica import Stored

_log = logging.getLogger(__name__)


class ClusterGone(Exception):  # noqa: N818 - a fact, not a failure
    """The cluster that a loop served was deleted; a new cluster may have the same name."""


class CommitInProgress(NamedTuple):
    """A batch whose commit is in progress."""

    batch: Batch
    task: asyncio.Task[CommitResult]
    begun: float
    """When the commit began, in the clock's monotonic seconds."""


class ClusterLoop:
    """Serves one cluster; `enqueue`, `on_head`, and `stop` may be called while `run` runs."""

    def __init__(  # noqa: PLR0913 - all that it needs of the world, by name
        self,
        cluster_id: int,
        *,
        store: Store,
        clock: Clock,
        ids: Ids,
        limits: Limits,
        templates: TemplateCache,
        announce: Announce,
        observers: Sequence[Observer],
        at_load: LoadObserver,
        meter: Meter,
        record: Record,
        expressions: ExpressionEvaluator | None = None,
        suspects: SuspectRegistry | None = None,
    ) -> None:
        self.cluster_id = cluster_id
        self.last_used = clock.monotonic()
        self.is_awake = False
        """Whether the cluster's regular work is done in every round."""
        self._clock = clock
        self._limits = limits
        self.follower = Follower(
            cluster_id,
            store=store,
            clock=clock,
            templates=templates,
            limits=limits,
            observers=observers,
            at_load=at_load,
        )
        """Holds the replica, if one is loaded. Only this loop's task may change the replica."""
        self._meter = meter
        self._record = record
        self._expressions = expressions
        set_aside = None if expressions is None else self._set_aside
        self._decider = Decider(
            *(clock, ids, limits, templates, meter, set_aside),
            cluster_id=cluster_id,
            suspects=suspects,
        )
        self._committer = Committer(cluster_id, store, clock, ids, limits, announce, meter)
        self._inbox: deque[Ticket] = deque()
        self._aside: dict[asyncio.Task[None], Ticket] = {}
        """Requests waiting for expressions to be evaluated."""
        self._asking: set[asyncio.Task[None]] = set()
        """Evaluations in progress for pending pods."""
        self._wake = asyncio.Event()
        self._open: Batch | None = None
        """The batch being decided; its commit has not begun."""
        self._publication: CommitInProgress | None = None
        self._behind = True
        """Whether the log has to be read before the next decision."""
        self._mistrust = ""
        """Why the replica has to be reloaded, or "" if the replica is usable."""
        self._unreadable: ObjectUnreadable | None = None
        """The object that could not be read when the replica was last loaded."""
        self._loads_again = float("-inf")
        """The earliest time to reload a replica with an unreadable object."""
        self._lag = Lag()
        self._outrun = False
        """Whether the log had grown too much to read to its end under the lock."""
        self._stopping = False
        self.ended = False
        """Whether the loop refuses new requests."""

    # Calls from outside

    def enqueue(self, ticket: Ticket) -> None:
        """Put a request into the inbox.

        Raises:
            ClusterGone: the loop has ended.
            Overloaded: too many requests are waiting.
        """
        if self.ended:
            raise ClusterGone
        if len(self._inbox) + len(self._aside) >= self._limits.inbox_requests_max:
            raise Overloaded("Too many requests of this cluster are waiting.")
        self.last_used = self._clock.monotonic()
        self._inbox.append(ticket)
        self._wake.set()

    def on_head(self, head: Head | None) -> bool:
        """Schedule a read of the log if `head` is new; return whether it is.

        `head` is None if the cluster was deleted. While requests are decided or committed, the
        result is False: the commit itself will notice that the log has grown.
        """
        replica = self.follower.replica
        if head is not None and replica is not None:
            self._lag.observe(head.revision, replica.committed_revision, self._clock.monotonic())
        known = head == self.follower.head and not self.follower.is_of_another_history
        if not self.idle or known:
            return False
        self._behind = True
        self._wake.set()
        return True

    async def committed(
        self, head: Head, kind: str, object_filter: ObjectFilter, namespace: str | None
    ) -> tuple[Head, Sequence[Stored]] | None:
        """Return the pods or nodes that may pass a filter, at `head` or a later one.

        Returns None if such a head is not loaded within a short time.
        """
        follower = self.follower
        if await self._head_from(head) is None:
            return None
        if follower.replica is not None:
            await follower.committed.group(follower.replica)
        known = self._known_from(head)
        if known is None or not follower.committed.are_grouped:
            return None
        return known, follower.committed.candidates(kind, object_filter, namespace)

    async def snapshot(self, head: Head) -> tuple[Head, dict[str, Sequence[Stored]]] | None:
        """Return all objects by kind, at `head` or a later one.

        Returns None if such a head is not loaded within a short time.
        """
        known, replica = await self._head_from(head), self.follower.replica
        if known is None or replica is None:
            return None
        assert replica.committed_revision == known.revision
        return known, replica.committed_objects()

    async def _head_from(self, head: Head) -> Head | None:
        """Wait briefly for the replica to reach `head`; return its head, or None."""
        if not self.follower.has_reached(head.revision):
            self.on_head(head)
        if not await self.follower.reach(head.revision, self._limits.list_wait_seconds):
            return None
        return self._known_from(head)

    def _known_from(self, head: Head) -> Head | None:
        """Return the replica's head if it is `head` or a later one, or None."""
        known = self.follower.head
        if known is None or known.revision < head.revision:
            return None
        return None if known.revision == head.revision and known.tip != head.tip else known

    def reload(self, reason: str) -> None:
        """Schedule a reload of an idle cluster's replica before the next decision."""
        assert self.idle
        self._mistrust = reason
        self._behind = True
        self._wake.set()

    def stop(self) -> None:
        """End the loop once every request is answered."""
        self._stopping = self.ended = True
        self._wake.set()

    @property
    def idle(self) -> bool:
        """Whether no requests are waiting and no batch is open or being committed."""
        return not self._inbox and self._open is None and self._publication is None

    @property
    def waiting(self) -> int:
        return len(self._inbox)

    @property
    def objects(self) -> int:
        """The number of objects in the replica; 0 if none is loaded."""
        replica = self.follower.replica
        return 0 if replica is None else replica.object_count

    def lag(self) -> tuple[int, float]:
        """Return how far the replica lags behind, in revisions and seconds; zeros if none is loaded."""
        replica = self.follower.replica
        if replica is None:
            return 0, 0.0
        revision = replica.committed_revision
        return self._lag.revisions(revision), self._lag.seconds(revision, self._clock.monotonic())

    @property
    def state(self) -> ReplicaState | None:
        """The replica's revision and digest; None without a replica or with tentative changes."""
        replica = self.follower.replica
        if replica is None or self._open is not None or self._publication is not None:
            return None
        return ReplicaState(replica.revision, replica.digest())

    # Task

    async def run(self) -> None:
        """Serve until stopped, or until the cluster is deleted."""
        reason: Exception = Overloaded("The server is shutting down.")
        try:
            while not (self._stopping and self.idle and not self._aside):
                await self._wake.wait()
                self._wake.clear()
                await self._work()
        except NotFound:
            reason = ClusterGone()
        finally:
            self.ended = True
            self._abandon(reason)

    def _abandon(self, error: Exception) -> None:
        published = self._publication.batch.tickets if self._publication else []
        for ticket in [*published, *self._take_open(), *self._inbox, *self._aside.values()]:
            ticket.answer(error)
        for task in (*self._aside, *self._asking):
            task.cancel()
        self._inbox.clear()

    async def _work(self) -> None:
        """Do all work that depends on neither a request nor a commit."""
        while True:
            publication = self._publication
            if publication is not None and publication.task.done():
                self._finish(publication)
            elif publication is None and self._open is not None:
                self.publish(self._open)
            elif publication is None and self._must_follow:
                await self._follow()
            elif publication is None and self._inbox and self._is_starving:
                await self._decide_locked()
            elif self._inbox and self.follower.replica is not None and not self._is_full:
                await self._decide_slice()
            else:
                return

    @property
    def _must_follow(self) -> bool:
        return self._behind or (bool(self._inbox) and self.follower.replica is None)

    @property
    def _is_full(self) -> bool:
        return self._open is not None and self._open.full(self._limits)

    @property
    def _is_starving(self) -> bool:
        """Whether the longest-waiting request has lost too many races (protocol rule P6).

        If most recent races were lost, one loss is enough: a commit without the lock would probably
        lose again and waste the work of deciding.

        No request in the inbox has more attempts than the first: batches take requests from the
        front, and put them back there. So every request is eventually committed under the lock,
        even if only a few fit into one round.
        """
        contended = self._committer.lost_share >= self._limits.contended_share
        patience = 1 if contended else self._limits.attempts_before_lock
        return self._inbox[0].attempts >= patience and not self._outrun

    # Following

    async def _follow(self) -> None:
        """Catch up with the log; after a failure, the next `on_head` retries."""
        self._behind = False
        if self._unreadable is not None and self._clock.monotonic() < self._loads_again:
            self._refuse_waiting(self._unreadable)
            return
        if self._mistrust:
            self.follower.drop(self._mistrust)
            self._mistrust = ""
        had_replica = self.follower.replica is not None
        try:
            await self.follower.catch_up()
            self._unreadable = None
        except StorageUnavailable as error:
            self._refuse_waiting(error)
        except NotFound:
            raise
        except PluginMissing as error:
            _log.error("The cluster cannot be served.", extra={"reason": str(error)})
            self.follower.drop("a plugin was missing")
            self._refuse_waiting(error)
        except ObjectUnreadable as error:
            self._stop_at(error)
        except Exception as error:  # noqa: BLE001 - whatever it was, a new replica may do
            _log.exception("The replica could not follow the log.")
            self.follower.drop("it could not follow the log")
            if had_replica:
                self._behind = True
            else:
                self._refuse_waiting(MoorageError(f"The cluster could not be loaded: {error}"))

    def _stop_at(self, unreadable: ObjectUnreadable) -> None:
        """Refuse all requests for a while, since none can be decided without this object."""
        # Without its traceback, which references everything that was loaded.
        error = ObjectUnreadable(unreadable.kind, unreadable.namespace, unreadable.name)
        if self._unreadable is None or self._unreadable.detail != error.detail:
            _log.error(
                "The cluster cannot be served.", extra={"reason": error.detail}, exc_info=unreadable
            )
        self._unreadable = error
        self._loads_again = self._clock.monotonic() + self._limits.unreadable_seconds
        self.follower.drop("an object could not be read")
        self._refuse_waiting(error)

    def _refuse_waiting(self, error: Exception) -> None:
        """Refuse the requests that need the database, and answer the others from the replica."""
        waiting, can_go_on = list(self._inbox), self.follower.replica is not None
        self._inbox.clear()
        for ticket in waiting:
            if can_go_on and is_advisory(ticket.intent):
                self._inbox.append(ticket)
            else:
                ticket.answer(error)

    def _drop_replica(self, reason: str) -> None:
        """Drop the replica, and requeue the open batch, which was decided on it (protocol rule P7)."""
        self.follower.drop(reason)
        self._behind = True
        self.requeue_open()

    # Deciding

    async def _decide_slice(self) -> None:
        """Decide requests until the slice ends, none is left, or the batch is full."""
        self._outrun = False
        end = self._clock.monotonic() + self._limits.slice_seconds
        while self._inbox and self.follower.replica is not None and not self._is_full:
            ticket = self._inbox.popleft()
            if not self._is_given_up(ticket):
                end = await self._decide(ticket, end)
            if self._clock.monotonic() >= end:
                break
        await self._clock.sleep(0)

    async def _decide(self, ticket: Ticket, end: float) -> float:
        replica = self.follower.replica
        assert replica is not None
        if self._open is None:
            self._open = self._decider.batch(replica)
        try:
            end = await self._decider.decide(
                replica, self._open, ticket, end, self._release_committed
            )
        except Exception as error:  # noqa: BLE001 - a bug must not end the loop
            self._fail(ticket, error)
        self._forget_empty()
        return end

    def _forget_empty(self) -> None:
        """Discard the open batch if its only decision was set aside or ended early."""
        if self._open is not None and not self._open.decided:
            self._open = None

    def _set_aside(self, ticket: Ticket, questions: list[Question]) -> None:
        """Decide a request again once its questions are answered, without blocking others."""
        task = asyncio.create_task(self._answer(ticket, questions))
        self._aside[task] = ticket
        task.add_done_callback(lambda done: self._aside.pop(done, None))

    async def _answer(self, ticket: Ticket, questions: list[Question]) -> None:
        assert self._expressions is not None
        asking = answer_until(ticket.deadline, self._clock, self._expressions, questions)
        try:
            if isinstance(ticket.intent, PlacePending):
                await self._wait_shortly(ticket, asyncio.create_task(asking))
            else:
                await asking
        except Overloaded as error:
            ticket.answer(error)
        except Exception as error:  # noqa: BLE001 - a bug must not leave the request unanswered
            _log.exception("Expressions could not be evaluated.")
            ticket.answer(error)
        if self._inbox and self._inbox[0].attempts > ticket.attempts:
            self._inbox.append(ticket)  # The first has the most attempts (P6).
        else:
            self._inbox.appendleft(ticket)
        self._wake.set()

    async def _wait_shortly(self, ticket: Ticket, asking: asyncio.Task[None]) -> None:
        """Wait for answers, but not long enough to hold up other pending pods."""
        self._asking.add(asking)
        asking.add_done_callback(self._end_asking)
        begun, most = self._clock.monotonic(), self._limits.pending_answers_seconds
        done, _ = await asyncio.wait({asking}, timeout=max(0.0, most - ticket.waited))
        ticket.waited += self._clock.monotonic() - begun
        ticket.has_waited = not done or ticket.waited >= most
        if done:
            await asking

    def _end_asking(self, asking: asyncio.Task[None]) -> None:
        self._asking.discard(asking)
        if not asking.cancelled():
            asking.exception()  # Those that still wait for it see the error; the others ask again.

    def _release_committed(self) -> None:
        """Release answers of a finished commit, so that a long decision cannot delay them."""
        publication = self._publication
        if publication is None or not publication.task.done() or publication.task.exception():
            return
        if isinstance(publication.task.result(), Committed):
            self._finish(publication)

    def _fail(self, ticket: Ticket, error: Exception) -> None:
        """Refuse a request that triggered a bug, and drop the replica, which may now be wrong."""
        context = {"request_id": ticket.caller.request_id, "operation": ticket.caller.operation}
        _log.error("A decision failed.", exc_info=error, extra=context)
        ticket.answer(error)
        self._drop_replica("a decision failed")

    def _is_given_up(self, ticket: Ticket) -> bool:
        """Return whether to skip a request because its caller is gone or its time is up."""
        late = self._clock.monotonic() >= ticket.deadline
        if late or ticket.attempts >= self._limits.attempts_max:
            ticket.answer(Overloaded(TIME_IS_UP))
        return ticket.future.done()  # no caller is waiting for an answer any more

    async def _decide_locked(self) -> None:
        """Decide and commit with the head locked, so that no race is possible (rule P6)."""
        locked = CommitUnderLock(self.follower, self._decider, self._committer, self._take)
        begun, task = self._clock.monotonic(), asyncio.create_task(locked.run())
        await asyncio.wait({task})
        if locked.batch is not None:
            self._finish(CommitInProgress(locked.batch, task, begun))
            return
        self._behind = True
        error = task.exception()
        if isinstance(error, StorageUnavailable):
            self._refuse_waiting(error)
        elif isinstance(error, NotFound):
            raise error
        elif isinstance(error, NotCaughtUp):
            self._outrun = True
        else:
            self._drop_replica("a commit under the lock failed")

    def _take(self) -> Ticket | None:
        while self._inbox:
            ticket = self._inbox.popleft()
            if not self._is_given_up(ticket):
                return ticket
        return None

    # Publishing

    def publish(self, batch: Batch) -> None:
        """Start committing a batch. The commit is never canceled, even with the loop."""
        head = self.follower.head
        assert head is not None
        task = asyncio.create_task(self._committer.publish(batch, head))
        task.add_done_callback(lambda _: self._wake.set())
        self._publication = CommitInProgress(batch, task, self._clock.monotonic())
        self._open = None

    def _finish(self, publication: CommitInProgress) -> None:
        """Answer or requeue the requests of a batch, depending on how its commit ended."""
        self._publication = None
        batch = publication.batch
        self._trace(publication)
        try:
            result = publication.task.result()
        except StorageUnavailable as error:
            self.withdraw(batch)
            self._answer_without_storage(batch, error)
        except OutcomeUnknown as error:
            self._drop_replica("the outcome of a commit is not known")
            batch.fail(error)
        except NotFound:
            self._requeue(batch.tickets)
            raise
        except Exception:  # noqa: BLE001 - a bug must not end the loop
            _log.exception("A commit failed.")
            self._drop_replica("a commit failed")
            self._requeue(batch.tickets)
        else:
            self.conclude(publication, result)

    def _trace(self, publication: CommitInProgress) -> None:
        """Record how long the traced requests of a batch waited for its commit."""
        task = publication.task
        outcome = type(task.exception() or task.result()).__name__
        for ticket, _ in publication.batch.decided:
            if ticket.span is not None:
                ended = self._clock.monotonic()
                ticket.span.part("commit", publication.begun, ended, outcome)

    def conclude(self, publication: CommitInProgress, result: CommitResult) -> None:
        """Answer a committed batch, or requeue one that was not committed (protocol rules P8 and P9)."""
        batch = publication.batch
        match result:
            case Committed(head):
                self.follower.settle(batch.end, head)
                batch.release()
                measure(self._meter, batch, self.follower.replica, self._clock.monotonic())
                self._record(self.cluster_id, batch.events)
            case DuplicateKey(records):
                self.withdraw(batch)
                self._requeue(_answer_from(records, batch.tickets, batch.start.revision))
            case LeasesEnded(holders):
                self.withdraw(batch)
                self._requeue(_refuse(holders, batch.tickets))
            case Lost() | NotYet():
                self.withdraw(batch)
                self._requeue(batch.tickets)
            case _:
                raise AssertionError(result)

    def withdraw(self, batch: Batch) -> None:
        """Undo a batch, after undoing any batch decided on top of it (protocol rule P7)."""
        self.requeue_open()
        self._behind = True
        replica = self.follower.replica
        if replica is None:
            return
        try:
            replica.undo(batch.start)
            replica.cluster.forget_uncommitted()
        except Exception:  # noqa: BLE001 - whatever it was, a new replica will do (P7)
            _log.exception("Undoing a batch failed.")
            self.follower.drop("undoing a batch failed")

    def _answer_without_storage(self, batch: Batch, error: StorageUnavailable) -> None:
        """Release advisory answers, which come from the replica, and refuse all other requests."""
        for ticket, outcome in batch.decided:
            is_known = is_advisory(ticket.intent) and not batch.changes
            ticket.answer(outcome if is_known else error)

    def requeue_open(self) -> None:
        """Requeue the open batch, because its base state is gone (protocol rule P7)."""
        self._requeue(self._take_open())

    def _take_open(self) -> list[Ticket]:
        tickets = self._open.tickets if self._open else []
        self._open = None
        return tickets

    def _requeue(self, tickets: Sequence[Ticket]) -> None:
        """Put requests back at the front of the inbox, in their original order."""
        self._inbox.extendleft(reversed(tickets))


def _refuse(holders: frozenset[str], tickets: Sequence[Ticket]) -> list[Ticket]:
    """Refuse the requests of holders whose leases have ended, and return the others."""
    rest = []
    for ticket in tickets:
        held = leases_of(ticket)
        if held is None or held.holder not in holders:
            rest.append(ticket)
        else:
            ticket.answer(Overloaded("The leases have ended on which this placement rests."))
    return rest


def _answer_from(
    records: Iterable[IdempotencyRecord], tickets: Sequence[Ticket], revision: int
) -> list[Ticket]:
    """Answer the requests whose keys already have an answer (P11), and return the others."""
    records_by_id = {record.id: record for record in records}
    rest = []
    for ticket in tickets:
        record = records_by_id.get(ticket.key) if ticket.key else None
        if record is None:
            rest.append(ticket)
        else:
            ticket.answer_from(record, revision)
    return rest
