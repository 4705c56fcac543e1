"""Keeps the audit of the store in memory: the chains that PostgreSQL keeps in rows."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from service.model.log.audit_chain import AuditEntry, AuditRow, told_at


class AuditChains:
    """Chains of rows, by their numbers; a chain that was swept empty goes on with the next row number."""

    def __init__(self) -> None:
        self._chains: dict[int, list[AuditRow]] = {}
        self._last: dict[int, AuditRow] = {}

    def add(
        self,
        chain: int,
        cluster_id: int | None,
        cluster: str,
        at: datetime,
        entries: Iterable[AuditEntry],
    ) -> None:
        """Add rows to a chain."""
        for entry in entries:
            last = self._last.get(chain)
            told = told_at(at)
            row = AuditRow(
                chain=chain,
                number=last.number + 1 if last else 1,
                at=max(told, last.at) if last else told,
                principal=entry.caller.principal,
                address=entry.caller.address,
                operation=entry.caller.operation,
                cluster_id=cluster_id,
                cluster=cluster if entry.cluster is None else entry.cluster,
                revision=entry.revision,
                request_id=entry.caller.request_id,
                status=entry.status,
                requests=entry.requests,
                previous_hash=last.hash if last else "",
                hash="",
            ).sealed()
            self._chains.setdefault(chain, []).append(row)
            self._last[chain] = row

    def rows(self, after: tuple[int, int]) -> Iterator[AuditRow]:
        """The rows that follow a key, ordered by chain and number."""
        for chain in sorted(self._chains):
            yield from (row for row in self._chains[chain] if (chain, row.number) > after)

    def sweep(self, before: datetime) -> int:
        """Delete rows that are older, and return how many."""
        return sum(self._swept(rows, before) for rows in self._chains.values())

    def _swept(self, rows: list[AuditRow], before: datetime) -> int:
        kept: Sequence[AuditRow] = [row for row in rows if datetime.fromisoformat(row.at) >= before]
        swept = len(rows) - len(kept)
        rows[:] = kept
        return swept
