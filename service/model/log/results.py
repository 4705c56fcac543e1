"""The possible outcomes of an attempt to commit."""

import msgspec

from service.model.log.commit import Head, IdempotencyRecord


class Committed(msgspec.Struct, frozen=True):
    """The commit is in the log; `head` is the log's head that it created."""

    head: Head


class Lost(msgspec.Struct, frozen=True):
    """Nothing was committed, nor will be by this attempt, because the log has another head.

    Read the log after the expected revision and tip, and decide again (P9). After a fence (P4),
    `head` may have the expected revision with another tip.
    """

    head: Head


class DuplicateKey(msgspec.Struct, frozen=True):
    """Nothing was committed, because some idempotency keys already have answers, in `records`.

    Answer these requests from their records, and decide the others again (P11). `records` is empty
    if the record was swept in the meantime; then try again.
    """

    records: tuple[IdempotencyRecord, ...]


class NotYet(msgspec.Struct, frozen=True):
    """Nothing was committed: by the database's clock, `not_before` is still in the future (P16)."""

    head: Head


class LeasesEnded(msgspec.Struct, frozen=True):
    """Nothing was committed: these holders lost leases that the commit depends on.

    Refuse the requests of these holders, and decide the others again.
    """

    holders: frozenset[str]


CommitResult = Committed | Lost | DuplicateKey | NotYet | LeasesEnded


class Behind(msgspec.Struct, frozen=True):
    """The worker lags too far behind to decide under the lock, and must catch up first (P6)."""

    head: Head
