"""Formatting of points in time."""

from datetime import UTC, datetime
from typing import Literal

Precision = Literal["auto", "seconds", "milliseconds", "microseconds"]


def rfc3339(at: datetime, precision: Precision = "auto") -> str:
    """Format a time as RFC 3339 in UTC, such as `2026-01-31T08:00:00Z`.

    `auto` writes microseconds, or whole seconds if they are zero; the other precisions truncate.
    `at` must have a time zone.
    """
    return at.astimezone(UTC).isoformat(timespec=precision).replace("+00:00", "Z")
