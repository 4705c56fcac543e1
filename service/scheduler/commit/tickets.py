"""One waiting request, and how it is answered."""

import asyncio
import weakref
from typing import Any

import msgspec

from service.model.errors import IdempotencyKeyReused
from service.model.log.audit import ITSELF, AuditedCaller
from service.model.log.commit_log import IdempotencyKey, IdempotencyRecord
from service.scheduler.commit.tracer import RequestSpan
from service.scheduler.decide.context import Hints
from service.scheduler.protocol.answers import Answer, RecordedAnswer
from service.scheduler.protocol.intents import Idempotency, Intent
from service.scheduler.replica.replica import Replica

AnswerOrError = Answer | Exception


class Ticket(msgspec.Struct, eq=False):
    """One request in a cluster's inbox; it may be decided several times before it is answered."""

    intent: Intent[Any]
    deadline: float
    """When the request is given up, in the clock's monotonic seconds."""
    idempotency: Idempotency[Any] | None
    future: asyncio.Future[Answer]
    asked: float = 0.0
    """When the request came, in the clock's monotonic seconds."""
    caller: AuditedCaller = ITSELF
    """The caller whom the audit names."""
    span: RequestSpan | None = None
    """Where the parts of the request are told; None if it is not traced."""
    attempts: int = 0
    planned_at: int | None = None
    """The committed revision on which the request was first decided (P9)."""
    ground: "weakref.ref[Replica] | None" = None
    """The replica that the request was last decided on, as long as that is in memory."""
    hints: Hints = {}

    def plan_on(self, replica: Replica) -> None:
        """Note that the request is decided on this replica.

        A decision on a replica that was dropped since does not count: the revision on which it
        stood may not be in the log (P3).
        """
        if self.ground is None or self.ground() is not replica:
            self.ground = weakref.ref(replica)
            self.planned_at = replica.committed_revision

    @property
    def key(self) -> IdempotencyKey | None:
        """The idempotency key, if there is one."""
        if self.idempotency is None:
            return None
        return IdempotencyKey(
            self.idempotency.operation, self.idempotency.key, self.idempotency.chunk
        )

    def answer(self, outcome: AnswerOrError) -> None:
        """Give the answer to the caller, or raise the error there, if the caller still waits."""
        if self.future.done():
            return
        if isinstance(outcome, Exception):
            self.future.set_exception(outcome)
        else:
            self.future.set_result(outcome)

    def answer_from(self, record: IdempotencyRecord, revision: int) -> None:
        """Give the answer that is stored for the key, or refuse a different request under this key."""
        assert self.idempotency is not None
        if record.request_hash == self.idempotency.request_hash:
            self.answer(RecordedAnswer(revision=revision, answer=record.answer))
        else:
            self.answer(key_reused(record.key))

    def record(self, outcome: AnswerOrError) -> IdempotencyRecord | None:
        """Return what is stored for the next request with this key: an answer, no error (P11)."""
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
    """Make the error of a request whose key was used for a different request before."""
    return IdempotencyKeyReused(f"The key {key} was used for another request.")
