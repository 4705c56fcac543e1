"""Locks that end with the process that holds them: `flock` on files of the data folder.

A lock belongs to an open file description. Children that exec do not inherit it (close-on-exec),
and children that only fork drop it at once, so that a forked worker never outlives its parent as
the holder of a lock. One lock is inherited on purpose: see `FileLock.bequeath`.
"""

import contextlib
import fcntl
import os
import weakref
from pathlib import Path

from service.store.embedded.files import open_owned

_RECORD_BYTES_MAX = 64


class FileLock:
    """A lock file, opened at the first attempt, and closed when the lock is released."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor: int | None = None
        _all_locks.add(self)

    def try_exclusive(self) -> bool:
        """Take an exclusive lock, or return False at once; a shared lock held here is released."""
        return self._try(fcntl.LOCK_EX)

    def try_shared(self) -> bool:
        """Take a shared lock, or return False at once."""
        return self._try(fcntl.LOCK_SH)

    def release(self) -> None:
        """Release the lock, if it is held."""
        if self._descriptor is not None:
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)
            self.drop()

    def drop(self) -> None:
        """Close this process's descriptor; the lock survives only in children that inherited it."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def bequeath(self) -> int:
        """Return a descriptor for a child, which holds the lock until its last process ends."""
        assert self._descriptor is not None
        return self._descriptor

    def record(self, text: str) -> None:
        """Replace the file's content, which informs other processes without affecting the lock."""
        assert self._descriptor is not None
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, text.encode(), 0)

    def read(self) -> str:
        """Return the text that the last holder recorded, or "" if none."""
        with contextlib.suppress(FileNotFoundError), self.path.open("rb") as file:
            return file.read(_RECORD_BYTES_MAX).decode(errors="replace")
        return ""

    def _try(self, operation: int) -> bool:
        if self._descriptor is None:
            self._descriptor = open_owned(self.path, os.O_RDWR)
        try:
            fcntl.flock(self._descriptor, operation | fcntl.LOCK_NB)
        except BlockingIOError:
            self.drop()
            return False
        return True


_all_locks: weakref.WeakSet[FileLock] = weakref.WeakSet()


def _drop_all() -> None:
    for lock in list(_all_locks):
        lock.drop()


os.register_at_fork(after_in_child=_drop_all)
