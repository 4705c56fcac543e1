"""Expose the metrics of several processes as one, by summing the files that they write."""

import fcntl
from itertools import count
from pathlib import Path
from typing import IO

from prometheus_client import CollectorRegistry, values
from prometheus_client.exposition import generate_latest
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.values import MultiProcessValue, MutexValue

CONTENT_TYPE = "text/plain; version=0.0.4"
"""The content type, without the charset, which Litestar adds."""
DIRECTORY_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
"""The environment variable in which the client library looks for the shared folder."""

_slots: dict[str, IO[bytes]] = {}
"""Maps folders to files whose locks reserve slots for this process until it ends."""


def registry_of(directory: str | None) -> CollectorRegistry:
    """Return a registry for this process; with a folder, other processes can read its metrics."""
    values.ValueClass = MutexValue if directory is None else _shared_value(Path(directory))
    return CollectorRegistry()


def exposition(registry: CollectorRegistry, directory: str | None) -> bytes:
    """Return the metrics of this process, or of all that share a folder, in Prometheus' format."""
    return generate_latest(registry) if directory is None else exposition_of(directory)


def exposition_of(directory: str) -> bytes:
    """Return all metrics of the processes that share a folder; any process may call this."""
    everyone = CollectorRegistry()
    MultiProcessCollector(everyone, path=directory)  # type: ignore[no-untyped-call]
    return generate_latest(everyone)


def _shared_value(directory: Path) -> type:
    """Return a class of metric values, stored in files of the folder that only this process writes.

    Files are named after slots rather than process ids: a worker that replaces a dead one continues
    its files, so that counters never fall and there are no more files than workers.
    """
    slot = _claim_slot(directory)
    for file in directory.glob(f"gauge_*_{slot}.db"):
        file.unlink()  # the state of a dead process
    return MultiProcessValue(lambda: slot)  # type: ignore[no-any-return, no-untyped-call]


def _claim_slot(directory: Path) -> int:
    """Reserve the first slot that no running process holds."""
    for slot in count():
        file = (directory / f"slot-{slot}.lock").open("ab")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            continue
        _slots[str(directory)] = file
        return slot
    raise AssertionError
