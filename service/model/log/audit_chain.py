"""The audit log: writes and refusals with their callers, in hash-chained rows.

Each cluster has its own chain, extended by its commits. Rows about the server as a whole (created
and deleted clusters, and refusals) form the chain `SERVER_CHAIN`. `Verifier` detects rows that were
altered, removed, or inserted.
"""

import json
from collections.abc import Iterable
from datetime import datetime
from hashlib import sha256

import msgspec

from service.model.core.times import rfc3339

SERVER_CHAIN = 0

COMMITTED = 200
"""The status of every row that belongs to a commit."""


def told_at(at: datetime) -> str:
    """Format a time as in the audit log."""
    return rfc3339(at, "microseconds")


class AuditedCaller(msgspec.Struct, frozen=True):
    """The caller of a request, as recorded in the audit log."""

    principal: str
    address: str = ""
    operation: str = ""
    request_id: str = ""


ITSELF = AuditedCaller("moorage")
"""The caller recorded for work that the server does on its own."""


class AuditEntry(msgspec.Struct, frozen=True, kw_only=True):
    """An audit row to be written; the database adds its number and time."""

    caller: AuditedCaller
    cluster: str | None = None
    """The cluster's name, or None for the cluster to which the chain belongs."""
    revision: int | None = None
    """The last revision that the request made."""
    status: int = COMMITTED
    requests: int = 1
    """The number of requests that the row stands for; under many refusals per second, some are only
    counted."""


class AuditRow(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One row of the audit."""

    chain: int
    """The number of the cluster, 0 for what concerns the whole server."""
    number: int
    """Counts the rows of the chain from 1."""
    at: str
    """When it happened, by the database's clock, which does not run backwards within a chain."""
    principal: str
    """Who asked; `moorage` is the server itself."""
    address: str
    """Where the request came from."""
    operation: str
    """The operation of the API, by its id."""
    cluster_id: int | None
    """The cluster's number, which no other cluster ever has; null if the row is about no cluster, or is a refusal."""
    cluster: str
    """The name that the cluster had; empty if the row is about no cluster."""
    revision: int | None
    """The last revision that the request made."""
    request_id: str
    """The `X-Request-ID` of the request and its answer."""
    status: int
    """200 if the request was committed; the HTTP status of the answer if it was refused."""
    requests: int
    """How many requests the row stands for."""
    previous_hash: str
    """The hash of the row before it; empty in the first one."""
    hash: str
    """SHA-256 of all other fields: of their JSON array, the previous hash first."""

    def told(self) -> str:
        """Return the text to hash; PostgreSQL builds the same text with `json_build_array`."""
        fields = (
            self.previous_hash,
            self.chain,
            self.number,
            self.at,
            self.principal,
            self.address,
            self.operation,
            self.cluster_id,
            self.cluster,
            self.revision,
            self.request_id,
            self.status,
            self.requests,
        )
        return json.dumps(fields, ensure_ascii=False)

    def sealed(self) -> "AuditRow":
        """Return a copy of the row with its hash."""
        return msgspec.structs.replace(self, hash=sha256(self.told().encode()).hexdigest())


class Broken(msgspec.Struct, frozen=True):
    """The first row of a chain that was altered or does not follow the previous row."""

    chain: int
    number: int
    reason: str


class Verifier:
    """Verifies audit chains row by row; rows before a chain's oldest one may have been swept."""

    def __init__(self) -> None:
        self._last: AuditRow | None = None
        self.rows = 0
        """The number of valid rows so far."""

    def follow(self, rows: Iterable[AuditRow]) -> Broken | None:
        """Check further rows; return the first invalid one with the reason, or None."""
        for row in rows:
            reason = self._reason(row)
            if reason:
                return Broken(row.chain, row.number, reason)
            self._last = row
            self.rows += 1
        return None

    def _reason(self, row: AuditRow) -> str:
        last = self._last
        if row.sealed().hash != row.hash:
            return "its fields do not have its hash"
        if last is None or last.chain != row.chain:
            return ""
        if row.number != last.number + 1:
            return f"it follows number {last.number}"
        if row.previous_hash != last.hash:
            return "it does not have the hash of the row before it"
        return ""
