"""Reads PostgreSQL's log, for errors and the progress of a recovery, and bounds its size."""

import contextlib
import os
import re
import shutil
import tempfile
from pathlib import Path

from service.store.embedded.files import open_owned
from service.store.embedded.layout import DataFolder

BYTES_MAX = 10_000_000
"""The size beyond which the log is copied to a second file and truncated."""
_TAIL_BYTES = 8_000
_TAIL_LINES = 12
_VARYING = re.compile(r"^.*FATAL:.*$|elapsed time: [\d.]+ s|^\S+ \S+ \S+ \[\d+\] ", re.MULTILINE)


def open_to_append(folder: DataFolder) -> int:
    """Open the log for the server's output, and return the descriptor."""
    return open_owned(folder.log, os.O_WRONLY | os.O_APPEND)


def tail(folder: DataFolder) -> str:
    """Return the last lines of the log."""
    return "\n".join(_end(folder).splitlines()[-_TAIL_LINES:])


def progress(folder: DataFolder) -> str:
    """Return the end of the log, without text that changes even if a recovery makes no progress.

    Such text includes elapsed times, and refusals (FATAL) of premature probes.
    """
    return _VARYING.sub("", _end(folder))


def limit(folder: DataFolder) -> None:
    """Bound the log to two files of about 10 MB each, apart from what is written between calls.

    The server appends to an open file, so it is copied and truncated rather than renamed.
    """
    with contextlib.suppress(OSError):  # a full disk must not end the supervision
        if folder.log.stat().st_size > BYTES_MAX:
            descriptor, draft = tempfile.mkstemp(prefix=f"{folder.log.name}.", dir=folder.root)
            os.close(descriptor)
            shutil.copyfile(folder.log, draft)
            Path(draft).replace(folder.log.with_name(f"{folder.log.name}.1"))
            os.truncate(folder.log, 0)


def _end(folder: DataFolder) -> str:
    try:
        with folder.log.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL_BYTES))
            return file.read().decode(errors="replace")
    except FileNotFoundError:
        return ""
