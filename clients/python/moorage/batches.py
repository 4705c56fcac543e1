"""Divides long work into batches."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

T = TypeVar("T")


def batched(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Yield the items in batches of at most `size`, consuming the input lazily."""
    rest = iter(items)
    while batch := list(islice(rest, size)):
        yield batch
