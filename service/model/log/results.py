"""The possible results of an attempt to commit."""

import msgspec

from service.model.log.commit import Head, IdempotencyRecord


class Committed(msgspec.Struct, frozen=True):
    """The log ends, or ended, with this commit: `head` is the one that it made."""

    head: Head


class Lost(msgspec.Struct, frozen=True):
    """Nothing was committed, and never will be by this attempt: the log ends elsewhere.

    Read the log from the expected revision and tip on, and decide again (P9). After a fence (P4)
    `head` may have the expected revision with another tip.
    """

    head: Head


class DuplicateKey(msgspec.Struct, frozen=True):
    """Nothing was committed: some idempotency keys have an answer already, which is in `records`.

    Answer these requests from their records, and decide the rest again (P11). `records` is empty if
    the record was swept at that very moment: then simply try again.
    """

    records: tuple[IdempotencyRecord, ...]


class NotYet(msgspec.Struct, frozen=True):
    """Nothing was committed: by the database's clock it is not yet `not_before` (P16)."""

    head: Head


class LeasesEnded(msgspec.Struct, frozen=True):
    """Nothing was committed: these holders no longer have all leases that the commit rests on.

    Refuse what they asked for, and decide the rest again.
    """

    holders: frozenset[str]


CommitResult = Committed | Lost | DuplicateKey | NotYet | LeasesEnded


class Behind(msgspec.Struct, frozen=True):
    """The worker is too far behind to decide under the lock: it has to catch up first (P6)."""

    head: Head
