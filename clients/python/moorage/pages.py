"""Pages of lists."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Page(Generic[T]):
    """One page of a list."""

    items: Sequence[T]
    revision: int
    """The revision of the list's first page; a watch from there misses no change."""
