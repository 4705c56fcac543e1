"""Keeps webhooks in memory, by the contract of `service.store.webhooks`."""

from collections.abc import Sequence
from datetime import datetime, timedelta

import msgspec

from service.model.log.audit_chain import AuditedCaller, AuditEntry
from service.model.webhooks import Change, Settled, WebhookRow
from tests.support.memory_store.state import MemoryState


class MemoryWebhooks:
    """The webhooks of clusters."""

    def __init__(self, state: MemoryState) -> None:
        self.state = state
        self._webhooks: dict[tuple[int, str], WebhookRow] = {}

    async def list(self, cluster_id: int) -> Sequence[WebhookRow]:
        """All webhooks of a cluster, by name."""
        if cluster_id not in self.state.states:
            return []
        return [row for key, row in sorted(self._webhooks.items()) if key[0] == cluster_id]

    async def change(
        self,
        cluster_id: int,
        name: str,
        change: Change,
        *,
        caller: AuditedCaller | None = None,
        dry_run: bool = False,
    ) -> WebhookRow | None:
        """Make of a webhook what `change` says, and return that; who the caller is, is in the audit."""
        cluster, key = self.state.of(cluster_id), (cluster_id, name)
        others = sum(each[0] == cluster_id and each != key for each in self._webhooks)
        head, now = cluster.row().head.revision, self.state.clock()
        found = Settled(row=self._webhooks.get(key), now=now, head=head, others=others)
        after = change(found)
        if dry_run:
            return after
        self._webhooks.pop(key, None)
        if after is not None:
            self._webhooks[key] = after
        if caller is not None:
            self.state.note(AuditEntry(caller=caller, cluster=cluster.name))
        return after

    async def claim(self, holder: str, seconds: float, limit: int) -> Sequence[WebhookRow]:
        """Take webhooks that are behind their clusters and due, so that no other process delivers to them."""
        now, taken = self.state.clock(), list[WebhookRow]()
        for key, row in sorted(self._webhooks.items(), key=lambda each: each[1].attempt_at):
            cluster = self.state.states.get(key[0])
            if cluster is None or len(taken) == limit or not _is_due(row, now):
                continue
            if row.revision != cluster.row().head.revision:
                until = now + timedelta(seconds=seconds)
                held = msgspec.structs.replace(row, holder=holder, held_until=until)
                self._webhooks[key] = held
                taken.append(held)
        return taken


def _is_due(row: WebhookRow, now: datetime) -> bool:
    is_free = row.held_until is None or row.held_until < now
    return is_free and not row.disabled and not row.stopped and row.attempt_at <= now
