"""Growable NumPy columns, indexed by node slot or topology domain."""

from collections import Counter
from collections.abc import Hashable, Iterator
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

T_co = TypeVar("T_co", bound=np.generic, covariant=True)
Ints = npt.NDArray[np.int64]
Ids = npt.NDArray[np.int32]
Slots = npt.NDArray[np.intp]
Mask = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.intp] | slice
"""The slots to compute: an array of indices, or a slice over all slots."""

ALL = slice(None)


def at(values: npt.NDArray[T_co], rows: Rows) -> npt.NDArray[T_co]:
    """Return `values` at `rows`, shape (rows,), or a view of all values if `rows` is a slice.

    `take` is faster than fancy indexing.
    """
    return values if isinstance(rows, slice) else values.take(rows)


class Column:
    """One value per slot; `values` is a writable view of the used slots.

    `cells` is the same memory, including the unused slots, for access to single slots: it yields
    plain integers, which are several times faster than NumPy scalars.
    """

    __slots__ = ("_base", "_fill", "cells", "values")

    def __init__(self, dtype: type[np.generic], fill: int, size: int) -> None:
        self._fill = fill
        self._base: npt.NDArray[Any] = np.full(max(16, size), fill, dtype=dtype)
        self.values: npt.NDArray[Any] = self._base[:size]
        self.cells = self._base.data

    def resize(self, size: int) -> None:
        """Set the number of slots to `size`; new slots hold the fill value."""
        if size > len(self._base):
            grown = np.full(size + size // 2, self._fill, dtype=self._base.dtype)
            grown[: len(self._base)] = self._base
            self._base = grown
            self.cells = grown.data
        self.values = self._base[:size]


T = TypeVar("T", bound=Hashable)


class Interner(Generic[T]):
    """Assigns small integers to recurring values, and reuses the integers of released values."""

    __slots__ = ("_free", "ids", "values")

    def __init__(self) -> None:
        self.ids: dict[T, int] = {}
        self.values: list[T | None] = []
        self._free: list[int] = []

    def intern(self, value: T) -> int:
        known = self.ids.get(value)
        if known is not None:
            return known
        if self._free:
            new = self._free.pop()
            self.values[new] = value
        else:
            new = len(self.values)
            self.values.append(value)
        self.ids[value] = new
        return new

    def release(self, value: T) -> None:
        """Release a value that is no longer referenced, and free its integer."""
        old = self.ids.pop(value)
        self.values[old] = None
        self._free.append(old)

    def __len__(self) -> int:
        return len(self.values)

    def items(self) -> Iterator[tuple[T, int]]:
        return iter(self.ids.items())


class SharedInterner(Interner[T]):
    """Interns values that slots share, and releases each with its last user; the first one stays.

    The first value has the integer 0, which is the value of new slots.
    """

    __slots__ = ("_first", "_users")

    def __init__(self, first: T) -> None:
        super().__init__()
        self._first = first
        self._users: Counter[T] = Counter()
        self.intern(first)

    def hold(self, value: T) -> int:
        """Return the integer of a value, and add a user that `drop` removes."""
        self._users[value] += 1
        return self.intern(value)

    def drop(self, value: T) -> None:
        """Remove a user of a value."""
        self._users[value] -= 1
        if not self._users[value]:
            del self._users[value]
            if value != self._first:
                self.release(value)
