"""Mistakes to be found: see `registry`. Importing this package registers all of them."""

from tests.concurrency.planted import (
    committing,
    deciding,
    following,
    handing,
    placing,
    storing,
    watching,
)
from tests.concurrency.planted.registry import BUGS, Bug

__all__ = [
    "BUGS",
    "Bug",
    "committing",
    "deciding",
    "following",
    "handing",
    "placing",
    "storing",
    "watching",
]
