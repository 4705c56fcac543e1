"""Determine why PostgreSQL refused a commit, and whether it certainly did."""

import re

import asyncpg

from service.model.core.errors import OutcomeUnknown
from service.model.log.commit import ReplicaMismatch

_KEY_TAKEN = "idempotency_pkey"
_OBJECT_EXISTS = "object_pkey"
_QUOTED = re.compile(rf'"((?:{_KEY_TAKEN}|{_OBJECT_EXISTS})[^"]*)"')
_MISMATCH = "MR002"
_MISTAKES = ("22", "23", "42", "MR")
"""Error classes of mistakes: bad values, broken constraints, missing tables, unequal arrays."""


class KeyTaken(Exception):  # noqa: N818 - a finding, not a failure
    """An idempotency key of the commit already has an answer; nothing was committed."""


def failed_commit(error: Exception) -> Exception:
    """Return the error for a failed commit: OutcomeUnknown, unless the server gave a reason."""
    return refusal_of(error) or OutcomeUnknown("The database failed during the commit.")


def refusal_of(error: Exception) -> Exception | None:
    """Return why the server refused a commit, or None if it did not."""
    if not isinstance(error, asyncpg.PostgresError):
        return None
    constraint = _constraint(error)
    if constraint.startswith(_KEY_TAKEN):
        return KeyTaken()
    if constraint.startswith(_OBJECT_EXISTS) or error.sqlstate == _MISMATCH:
        return ReplicaMismatch(str(error))
    return None


def _constraint(error: asyncpg.PostgresError) -> str:
    """Return the name of the violated constraint, with the number of a shard on another server.

    Citus forwards another server's message, but not the name as a field of its own, nor, where it
    copies rows there, the error code.
    """
    named: str | None = getattr(error, "constraint_name", None)
    quoted = None if named else _QUOTED.search(str(error))
    return named or (quoted[1] if quoted else "")


def is_mistake(error: Exception) -> bool:
    """Return whether the commit itself is invalid, so it was not made and never can be."""
    if not isinstance(error, asyncpg.PostgresError) or refusal_of(error) is not None:
        return False
    return (error.sqlstate or "").startswith(_MISTAKES)
