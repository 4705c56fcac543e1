"""Metrics of several processes as one: each keeps its numbers in files, whoever is scraped adds up."""

import fcntl
from itertools import count
from pathlib import Path
from typing import IO

from prometheus_client import CollectorRegistry, values
from prometheus_client.exposition import generate_latest
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.values import MultiProcessValue, MutexValue

CONTENT_TYPE = "text/plain; version=0.0.4"
"""Litestar adds the charset."""
DIRECTORY_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
"""Where the client library looks for the shared folder."""

_slots: dict[str, IO[bytes]] = {}
"""By folder, the lock that makes a number ours; held until this process ends, however it does."""


def registry_of(directory: str | None) -> CollectorRegistry:
    """Where new families of this process go, to be seen by the others that share the folder."""
    values.ValueClass = MutexValue if directory is None else _shared_value(Path(directory))
    return CollectorRegistry()


def exposition(registry: CollectorRegistry, directory: str | None) -> bytes:
    """Everything in Prometheus' text format: of this process, or of all that share a folder."""
    return generate_latest(registry) if directory is None else exposition_of(directory)


def exposition_of(directory: str) -> bytes:
    """The same, of all processes that share a folder; whoever asks need not be one of them."""
    everyone = CollectorRegistry()
    MultiProcessCollector(everyone, path=directory)  # type: ignore[no-untyped-call]
    return generate_latest(everyone)


def _shared_value(directory: Path) -> type:
    """A kind of number that lives in the folder, in files that only this process writes.

    Files are numbered by slots rather than process ids: who takes a dead worker's place goes on
    with its files, so that counters never fall and there are no more files than workers.
    """
    slot = _claim_slot(directory)
    for file in directory.glob(f"gauge_*_{slot}.db"):
        file.unlink()  # the state of one who is dead
    return MultiProcessValue(lambda: slot)  # type: ignore[no-any-return, no-untyped-call]


def _claim_slot(directory: Path) -> int:
    """The first number that no living process has."""
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
