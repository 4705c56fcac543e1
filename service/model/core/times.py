"""The text form of instants."""

from datetime import UTC, datetime
from typing import Literal

Precision = Literal["auto", "seconds", "milliseconds", "microseconds"]


def rfc3339(at: datetime, precision: Precision = "auto") -> str:
    """Write an instant as RFC 3339 in UTC, such as `2026-01-31T08:00:00Z`.

    `auto` writes six digits of the second, or none if they are all zero; the others cut off what
    is finer. `at` has a time zone, any one.
    """
    return at.astimezone(UTC).isoformat(timespec=precision).replace("+00:00", "Z")
