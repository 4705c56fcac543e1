"""Tells why PostgreSQL refused a commit, and whether it is certain that it was refused."""

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
    """An idempotency key of the commit has an answer already; nothing was committed."""


def failed_commit(error: Exception) -> Exception:
    """The error to raise for a failed commit: OutcomeUnknown, unless the server says why it refused."""
    return refusal_of(error) or OutcomeUnknown("The database failed during the commit.")


def refusal_of(error: Exception) -> Exception | None:
    """The reason for which the server refused a commit; None if the error says something else."""
    if not isinstance(error, asyncpg.PostgresError):
        return None
    constraint = _constraint(error)
    if constraint.startswith(_KEY_TAKEN):
        return KeyTaken()
    if constraint.startswith(_OBJECT_EXISTS) or error.sqlstate == _MISMATCH:
        return ReplicaMismatch(str(error))
    return None


def _constraint(error: asyncpg.PostgresError) -> str:
    """The name of the broken constraint, followed by the shard's number if that is on another server.

    Citus passes on what another server says, but not the name as a field of its own, and where it
    copies rows there, not the code of the error either.
    """
    named: str | None = getattr(error, "constraint_name", None)
    found = None if named else _QUOTED.search(str(error))
    return named or (found[1] if found else "")


def is_mistake(error: Exception) -> bool:
    """Whether the commit itself was wrong, so that it was not made and never can be."""
    if not isinstance(error, asyncpg.PostgresError) or refusal_of(error) is not None:
        return False
    return (error.sqlstate or "").startswith(_MISTAKES)
