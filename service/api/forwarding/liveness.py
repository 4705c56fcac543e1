"""Detect which workers of a server are running: each holds a lock until its process ends."""

import fcntl
from pathlib import Path

from service.api.forwarding.peer_names import id_in


class Liveness:
    """This worker's lock, and checks of other workers' locks, in their private folder."""

    def __init__(self, folder: Path, own: str) -> None:
        self._folder = folder
        self._file = _file_of(folder, own).open("ab")
        fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def lives(self, worker: str) -> bool:
        """Return whether a worker of this server is running, or has only just ended."""
        try:
            file = _file_of(self._folder, worker).open("rb")
        except FileNotFoundError:
            return False
        with file:
            try:
                # A shared lock, so that two processes that check do not mistake each other for the
                # worker.
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
        return False

    def end(self) -> None:
        """Release the lock, so that this worker counts as dead."""
        Path(self._file.name).unlink(missing_ok=True)
        self._file.close()


def _file_of(folder: Path, worker: str) -> Path:
    return folder / f"{id_in(worker)}.lock"
