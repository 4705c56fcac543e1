"""One waiting request, and how it is answered."""

import asyncio
import weakref
from collections.abc import Callable
from typing import Any

from service.model.audit import ITSELF, AuditedCaller
from service.model.errors import IdempotencyKeyReused
from service.model.log import IdempotencyKey, IdempotencyRecord
from service.scheduler.decide.context import Hints
from service.scheduler.protocol.answers import Answer, RecordedAnswer
from service.scheduler.protocol.intents import Idempotency, Intent
from service.scheduler.replica.replica import Replica

Outcome = Answer | Exception


class Ticket:
    """One request in a cluster's inbox; it may be decided several times before it is answered."""

    __slots__ = (
        "_ground",
        "asked",
        "attempts",
        "caller",
        "deadline",
        "future",
        "hints",
        "idempotency",
        "intent",
        "planned_at",
    )

    def __init__(
        self,
        intent: Intent[Any],
        deadline: float,
        idempotency: Idempotency[Any] | None,
        future: asyncio.Future[Answer],
        *,
        asked: float = 0.0,
        caller: AuditedCaller = ITSELF,
    ) -> None:
        self.intent = intent
        self.deadline = deadline
        """In the clock's monotonic seconds."""
        self.asked = asked
        """When the request came, likewise."""
        self.idempotency = idempotency
        self.caller = caller
        """Whom the audit names."""
        self.future = future
        self.attempts = 0
        self.planned_at: int | None = None
        """The committed revision on which it was first decided (P9)."""
        self._ground: Callable[[], Replica | None] = lambda: None
        """The replica that has this revision, as long as it is kept."""
        self.hints: Hints = {}

    def plan_on(self, replica: Replica) -> None:
        """It is decided on this replica.

        What was planned on one that was dropped does not count: the log may not have the revision
        on which it stood (P3).
        """
        if self._ground() is not replica:
            self._ground = weakref.ref(replica)
            self.planned_at = replica.committed_revision

    @property
    def abandoned(self) -> bool:
        """Nobody waits for the answer any more, so an undecided request need not be done."""
        return self.future.done()

    @property
    def key(self) -> IdempotencyKey | None:
        """The idempotency key, if there is one."""
        if self.idempotency is None:
            return None
        return IdempotencyKey(
            self.idempotency.operation, self.idempotency.key, self.idempotency.chunk
        )

    def answer(self, outcome: Outcome) -> None:
        """Give the answer, or raise the error, where the caller still waits."""
        if self.future.done():
            return
        if isinstance(outcome, Exception):
            self.future.set_exception(outcome)
        else:
            self.future.set_result(outcome)

    def answer_from(self, record: IdempotencyRecord, revision: int) -> None:
        """Give the answer that the key was given before, or refuse another request under it."""
        assert self.idempotency is not None
        if record.request_hash == self.idempotency.request_hash:
            self.answer(RecordedAnswer(revision=revision, answer=record.answer))
        else:
            self.answer(key_reused(record.key))

    def record(self, outcome: Outcome) -> IdempotencyRecord | None:
        """What to keep for the next request with the same key: an answer, never an error (P11)."""
        if self.idempotency is None or isinstance(outcome, Exception | RecordedAnswer):
            return None
        if getattr(self.intent, "dry_run", False):
            return None
        return IdempotencyRecord(
            operation=self.idempotency.operation,
            key=self.idempotency.key,
            chunk=self.idempotency.chunk,
            request_hash=self.idempotency.request_hash,
            answer=self.idempotency.encode(outcome),
        )


def key_reused(key: str) -> IdempotencyKeyReused:
    """The error of a request under a key that names another one."""
    return IdempotencyKeyReused(f"The key {key} was used for another request.")
