"""Recognizes errors that mean that the database is unavailable, and converts them.

A mistake in the service (bad SQL, a value of the wrong type) is not one of them.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

import asyncpg

from service.model.core.errors import OutcomeUnknown, StorageUnavailable, Unavailable

_UNAVAILABLE_CLASSES = (
    "08",  # connection exception
    "25",  # transaction state: read-only, idle for too long
    "28",  # access denied
    "3D",  # no such database
    "40",  # rolled back: deadlock, serialization
    "53",  # out of disk, memory, connections
    "55",  # lock not available
    "57",  # shut down, cancelled
    "58",  # system error
    "XX",  # internal error, corruption
)


def is_unavailable(error: BaseException) -> bool:
    """Return whether an error means that the database is unavailable, not a wrong statement.

    Half of the errors after a terminated backend are asyncpg's InternalClientError, which is
    neither a PostgresError nor an InterfaceError.
    """
    if type(error).__module__.startswith("sqlalchemy."):
        return _sqlalchemy_is_unavailable(error)
    if isinstance(error, asyncpg.PostgresError):
        return (error.sqlstate or "08").startswith(_UNAVAILABLE_CLASSES)
    return isinstance(
        error,
        OSError  # also ConnectionError and TimeoutError
        | EOFError
        | asyncpg.InterfaceError
        | asyncpg.InternalClientError,
    )


def _sqlalchemy_is_unavailable(error: BaseException) -> bool:
    """Return whether SQLAlchemy, which only migrations use, wrapped such an error (twice)."""
    from sqlalchemy.exc import DBAPIError  # noqa: PLC0415 - it is loaded by now, or not needed

    if not isinstance(error, DBAPIError):
        return False
    original = error.orig
    cause = original.__cause__ if original is not None else None
    return error.connection_invalidated or (cause is not None and is_unavailable(cause))


def unavailable_on_failure() -> AbstractContextManager[None]:
    """Convert database failures to StorageUnavailable: nothing was, or will be, committed."""
    return _raised_as(StorageUnavailable, "The database cannot be reached.")


def unknown_on_failure() -> AbstractContextManager[None]:
    """Convert failures at a COMMIT to OutcomeUnknown, since the commit may have been applied."""
    return _raised_as(OutcomeUnknown, "The database failed during the commit.")


@contextmanager
def _raised_as(unavailable: type[Unavailable], detail: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        if not is_unavailable(error):
            raise
        raise unavailable(detail) from error
