"""Mistakes to be found: see `registry`. Importing this package registers all of them."""

from tests.concurrency.planted import (
    charging,
    committing,
    deciding,
    evicting,
    following,
    forwarding,
    placing,
    storing,
    watching,
)
from tests.concurrency.planted.registry import BUGS, Bug

__all__ = [
    "BUGS",
    "Bug",
    "charging",
    "committing",
    "deciding",
    "evicting",
    "following",
    "forwarding",
    "placing",
    "storing",
    "watching",
]
