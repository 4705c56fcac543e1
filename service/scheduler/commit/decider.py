"""Decides requests one on top of another, in slices that keep the event loop responsive."""

from collections.abc import Callable, Generator
from datetime import UTC

from service.model.core.errors import Denied, MoorageError, Overloaded
from service.model.devices.cel_questions import Question
from service.model.registry.manifests import TemplateCache
from service.scheduler.commit.metrics import Meter, PluginTimer
from service.scheduler.commit.request_batches import (
    TIME_IS_UP,
    AnswerOrError,
    Batch,
    LongDryRun,
    Ticket,
)
from service.scheduler.commit.suffixes import RepeatableIds
from service.scheduler.decide.context import Decision, DecisionContext, count_kept_nodes
from service.scheduler.dispatch import DECISIONS
from service.scheduler.protocol.expressions import Unanswered, until_unanswered
from service.scheduler.protocol.intents import A
from service.scheduler.protocol.limits import Limits
from service.scheduler.protocol.ports import Clock, Ids
from service.scheduler.protocol.suspects import NoSuspects, SuspectRegistry
from service.scheduler.replica.replica import Mark, Replica, grown_by

_LOCKED_STEPS = 8
"""How many steps a decision under the lock takes between two checks of the clock."""

SetAside = Callable[[Ticket, list[Question]], None]
"""Requests the answers to questions, then puts the request back into the inbox."""
TakeTicket = Callable[[], Ticket | None]
"""Takes the next request out of the inbox, or returns None."""


class Decider:
    """Decides tickets on a replica without waiting for I/O; pauses only between slices."""

    def __init__(  # noqa: PLR0913 - all that decisions need, by name
        self,
        clock: Clock,
        ids: Ids,
        limits: Limits,
        templates: TemplateCache,
        meter: Meter,
        set_aside: SetAside | None = None,
        *,
        cluster_id: int = 0,
        suspects: SuspectRegistry | None = None,
    ) -> None:
        """Create a decider; without `set_aside`, decisions evaluate expressions themselves."""
        self._clock = clock
        self._set_aside = set_aside
        self._cluster_id = cluster_id
        self._suspects = suspects or NoSuspects()
        self._meter = meter
        self._timer = PluginTimer(meter, clock)
        self._templates = templates
        self._ids = ids
        self._limits = limits

    def batch(self, replica: Replica) -> Batch:
        """Begin a batch on the replica's current tentative state."""
        now = self._clock.now().astimezone(UTC)
        return Batch(replica.mark(), now.strftime("%Y-%m-%dT%H:%M:%SZ"))

    async def decide(
        self,
        replica: Replica,
        batch: Batch,
        ticket: Ticket,
        end: float,
        between: Callable[[], None],
    ) -> float:
        """Decide one request, letting other tasks run once it outlasts the slice's `end`.

        `between` is called after each such pause; the callback may conclude the preceding batch.
        After a pause the decision ends if its time is up or its client has disconnected. Returns
        the end of the slice in which the decision finished. If this raises an error, the replica is
        unusable.
        """
        for _ in self.steps(replica, batch, ticket):
            if self._clock.monotonic() >= end:
                self._suspects.pause()
                await self._clock.sleep(0)
                self._suspects.resume()
                between()
                now = self._clock.monotonic()
                ticket.check(now)
                end = now + self._limits.slice_seconds
        return end

    def decide_locked(self, replica: Replica, batch: Batch, take: TakeTicket) -> None:
        """Decide at least one request without letting other tasks run; raise what `decide` raises.

        A request that would outlast the database's transaction timeout is refused.
        """
        begun = self._clock.monotonic()
        end = begun + self._limits.locked_slice_seconds
        latest = begun + self._limits.locked_seconds_max
        while not batch.full(self._limits) and (ticket := take()) is not None:
            try:
                for count, _ in enumerate(self.steps(replica, batch, ticket), 1):
                    if count % _LOCKED_STEPS == 0 and self._clock.monotonic() >= min(
                        latest, ticket.deadline
                    ):
                        ticket.unwanted = Overloaded(TIME_IS_UP)
            except Exception as error:
                ticket.answer(error)
                raise
            if self._clock.monotonic() >= end:
                break

    def _refuse_growth(self, replica: Replica, start: Mark) -> None:
        """Refuse a decision that would push the cluster past its object limit.

        `start` is the replica's mark before the decision.
        """
        most = self._limits.objects_max
        if replica.object_count > most and grown_by(replica.since(start)) > 0:
            raise Denied(
                "TooManyObjects",
                f"The cluster would have {replica.object_count} objects, over the limit (objects_max) of {most}.",
            )

    def _deadline(self) -> Callable[[], bool]:
        end = self._clock.monotonic() + self._limits.pending_slice_seconds
        return lambda: self._clock.monotonic() >= end

    def steps(self, replica: Replica, batch: Batch, ticket: Ticket) -> Generator[None, None, None]:
        """Decide one request step by step; if it is refused, undo its changes to the replica.

        A request that is no longer wanted is answered at once and left out of the batch.
        """
        ticket.attempts += 1
        is_late = self._deadline()
        ticket.plan_on(replica)
        context = DecisionContext(
            replica=replica,
            now=ticket.now or batch.now,
            templates=self._templates,
            ids=self._ids if ticket.ids is None else ticket.ids.again(),
            limits=self._limits,
            attempts=ticket.attempts,
            hints=ticket.hints if ticket.keeps_nodes else {},
            cluster_id=self._cluster_id,
            suspects=self._suspects,
            has_waited=ticket.has_waited,
            is_late=is_late,
        )
        begun = self._clock.monotonic() if ticket.span is not None else 0.0
        start, hints = batch.end, dict(ticket.hints)
        questions = replica.cluster.devices.questions
        questions.begin(are_deferred=self._set_aside is not None)
        outcome: AnswerOrError
        try:
            steps = DECISIONS[type(ticket.intent)](context, ticket.intent)
            outcome = yield from _while_wanted(until_unanswered(steps, questions), ticket)
            self._refuse_growth(replica, start)
        except Unanswered:
            ticket.hints = hints
            yield from self._postpone(replica, batch, ticket, start)
            return
        except (MoorageError, LongDryRun) as error:
            is_unwanted = ticket.unwanted is not None
            yield from replica.undoing(start)
            context.events.clear()
            # The traceback's frames would keep the whole request and this error in memory.
            outcome = error.with_traceback(None)
            if is_unwanted:
                ticket.answer(outcome)
                yield from self._forget(replica)
                return
        if ticket.attempts > 1:
            self._meter.decided_again(len(hints), count_kept_nodes(hints, ticket.hints))
        entries, batch.end = replica.since(start), replica.mark()
        batch.add(ticket, outcome, entries)
        if context.not_before is not None:
            batch.hold_until(context.not_before)
        batch.events += context.events
        if ticket.span is not None:
            kind = type(outcome).__name__
            ticket.span.part("decide", begun, self._clock.monotonic(), kind)
        if self._clock.monotonic() >= self._timer.due:
            self._timer.sample(replica, outcome)
        yield from self._forget(replica)

    def _postpone(
        self, replica: Replica, batch: Batch, ticket: Ticket, start: Mark
    ) -> Generator[None, None, None]:
        """Undo a decision that needs unevaluated expressions, and schedule it again.

        The engine's caches keep what the decision added, since the repetition needs the same
        entries and the same facts about nodes.
        """
        questions = replica.questions.take()
        yield from replica.undoing(start)
        batch.end = replica.mark()
        ticket.attempts -= 1
        ticket.began = None
        ticket.now = ticket.now or batch.now
        ticket.ids = ticket.ids or RepeatableIds(self._ids)
        self._suspects.decided()
        assert self._set_aside is not None
        self._set_aside(ticket, questions)

    def _forget(self, replica: Replica) -> Generator[None, None, None]:
        """Clear the engine's per-decision cache entries and the record of the pod being decided."""
        self._suspects.decided()
        yield from replica.cluster.forget_in_steps()


def _while_wanted(decision: Decision[A], ticket: Ticket) -> Decision[A]:
    """Run a decision until it ends or is no longer wanted.

    Raises:
        Overloaded, LongDryRun: the decision is no longer wanted; the caller must undo its changes.
    """
    while True:
        try:
            next(decision)
        except StopIteration as stop:
            answer: A = stop.value
            return answer
        yield
        if ticket.unwanted is not None:
            decision.close()
            raise ticket.unwanted
