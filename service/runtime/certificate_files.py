"""Notices that the files of a certificate were written anew, as those who renew certificates do."""

from collections.abc import Iterable, Sequence
from pathlib import Path


class CertificateFiles:
    """The files of a certificate, with what was known of them at the last look."""

    def __init__(self, files: Iterable[Path]) -> None:
        self._files = tuple(files)
        self._known: Sequence[tuple[int, int, int]] = ()

    def were_written(self) -> bool:
        """Whether a file was written since the last look; the first look finds that all were.

        Raises:
            OSError: a file is missing, or cannot be looked at.
        """
        states = [each.stat() for each in self._files]
        found = [(each.st_mtime_ns, each.st_ino, each.st_size) for each in states]
        before, self._known = self._known, found
        return found != before
