"""Keeps the audit in memory."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from service.model.log.audit_chain import SERVER_CHAIN, AuditEntry, AuditRow
from tests.support.memory_store.state import MemoryState


class MemoryAudit:
    """The audit."""

    def __init__(self, state: MemoryState) -> None:
        self.state = state

    @property
    def enabled(self) -> bool:
        """Whether the audit is kept at this moment."""
        return self.state.policy.enabled

    def begin(self) -> None:
        """Keep the audit from now on, if the settings allow it, as callers can be told apart now."""
        self.state.policy.begin()

    async def add_refusals(self, entries: Sequence[AuditEntry]) -> None:
        """Add rows to the chain of the server; they are refusals, which come with no commit."""
        self.state.chains.add(SERVER_CHAIN, None, "", self.state.clock(), entries)

    async def list(
        self,
        *,
        after: tuple[int, int] | None = None,
        cluster: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int,
    ) -> Sequence[AuditRow]:
        """At most `limit` rows that follow the key `after`, ordered by chain and number."""
        found = [
            row
            for row in self.state.chains.rows(after or (SERVER_CHAIN, 0))
            if (cluster is None or row.cluster == cluster)
            and (since is None or datetime.fromisoformat(row.at) >= since)
            and (until is None or datetime.fromisoformat(row.at) < until)
        ]
        return found[:limit]

    async def sweep(self, *, keep_seconds: float) -> int:
        """Delete rows that are older, and return how many."""
        return self.state.chains.sweep(self.state.clock() - timedelta(seconds=keep_seconds))
