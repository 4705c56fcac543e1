"""The files of a certificate, watched for renewal."""

from collections.abc import Iterable, Sequence
from pathlib import Path


class CertificateFiles:
    """The files of a certificate, with their state at the last check."""

    def __init__(self, files: Iterable[Path]) -> None:
        self._files = tuple(files)
        self._known: Sequence[tuple[int, int, int]] = ()

    def have_changed(self) -> bool:
        """Return whether a file was written since the last check; always true at the first check.

        Raises:
            OSError: a file is missing or inaccessible.
        """
        stats = [file.stat() for file in self._files]
        states = [(stat.st_mtime_ns, stat.st_ino, stat.st_size) for stat in stats]
        before, self._known = self._known, states
        return states != before
