"""Who wrote what, and who was refused: rows of an audit, each of which has the hash of the one before it.

A cluster has a chain of its own, which its commits extend; what concerns the whole server (clusters that are created and
deleted, refusals) is in the chain `SERVER_CHAIN`. What an altered, missing or inserted row breaks is found by `Verifier`.
"""

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from hashlib import sha256

import msgspec

SERVER_CHAIN = 0

COMMITTED = 200
"""The status of every row that came with a commit."""


def told_at(at: datetime) -> str:
    """A time as the audit tells it."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class AuditedCaller(msgspec.Struct, frozen=True):
    """Who made a request, as far as an audit tells it."""

    principal: str
    address: str = ""
    operation: str = ""
    request_id: str = ""


ITSELF = AuditedCaller("moorage")
"""Who asks for what nobody asked for from outside."""


class AuditEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One row that is to be written; the database numbers it, and says when."""

    caller: AuditedCaller
    cluster: str | None = None
    """The name of the cluster; None: the one whose chain it is."""
    revision: int | None = None
    """The last one that the request made."""
    status: int = COMMITTED
    requests: int = 1
    """How many requests it stands for: of refusals beyond some a second only the number is kept."""


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
    """The cluster's number, which no other one ever has; null where it is about none, or a refusal."""
    cluster: str
    """The name that the cluster had; empty where it is about none."""
    revision: int | None
    """The last revision that the request made."""
    request_id: str
    """The `X-Request-ID` of the request and its answer."""
    status: int
    """200 for what was committed; of a refusal its status."""
    requests: int
    """How many requests the row stands for."""
    previous_hash: str
    """The hash of the row before it; empty in the first one."""
    hash: str
    """SHA-256 of all other fields: of their JSON array, the previous hash first."""

    def told(self) -> str:
        """What is hashed. PostgreSQL writes the same text (`json_build_array`)."""
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
        """The row with its hash."""
        return msgspec.structs.replace(self, hash=sha256(self.told().encode()).hexdigest())


class Broken(msgspec.Struct, frozen=True):
    """The first row of a chain that is not what was written, or does not follow the one before it."""

    chain: int
    number: int
    reason: str


class Verifier:
    """Follows the chains, row by row in their order. The oldest row that is left of a chain is believed to follow those removed."""

    def __init__(self) -> None:
        self._last: AuditRow | None = None
        self.rows = 0
        """Rows that were found right."""

    def follow(self, rows: Iterable[AuditRow]) -> Broken | None:
        """Go through more rows; what is wrong with the first that is not right."""
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
