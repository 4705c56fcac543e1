"""Helpers for reading rows: the head, and the error for a missing cluster."""

import asyncpg

from service.model.core.errors import NotFound
from service.model.log.commit import Head


def head_of(row: asyncpg.Record) -> Head:
    """Return the head, from the columns `head_revision`, `head_tip`, and `head_at`."""
    return Head(row["head_revision"], row["head_tip"], row["head_at"])


def gone() -> NotFound:
    """Return the error to raise when a cluster that was there has been deleted.

    It does not tell the cluster's number, which callers never see.
    """
    return NotFound("The cluster has been deleted.")
