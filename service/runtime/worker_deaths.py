"""Deaths of workers, counted by the pod that each was deciding.

Each worker has a slot, a small file in memory that names the pod being decided. If a worker dies
with a name in its slot, its supervisor counts the death against that pod. Workers read the counts:
a pod with one death is tried last and alone, and one with two is set aside.

A pod is identified by its cluster, its namespace, and a checksum of its spec. So all copies that a
controller makes share a count, and a changed pod starts at zero.
"""

import mmap
import os
import zlib
from contextlib import suppress
from pathlib import Path

import msgspec

KEPT_MAX = 256
"""The maximum number of pods that are remembered; the oldest are dropped first."""
KEPT_SECONDS = 24 * 3600.0
"""The age beyond which a starting server drops a recorded death."""
_SLOT_BYTES = 1024
_FILE = "suspects.json"
_SLOT_SUFFIX = ".deciding"


class Identity(msgspec.Struct, frozen=True, array_like=True):
    """The identity of a pod, which equal pods share."""

    cluster_id: int
    namespace: str
    checksum: int


class Suspect(msgspec.Struct, frozen=True, kw_only=True):
    """A pod that workers were deciding when they died."""

    identity: Identity
    name: str
    deaths: int
    at: float
    """The time of the last death, in seconds since 1970."""


class Suspects:
    """A worker's view of suspects: records the pod being decided, and reads the death counts."""

    def __init__(self, folder: Path | None) -> None:
        self._file = None if folder is None else folder / _FILE
        self._slot = None if folder is None else _slot_of(folder, os.getpid())
        self._first = 0
        """The first byte of the record; in the slot it is 0 while no pod is being decided."""
        self._read_at = -1
        self._deaths: dict[Identity, int] = {}
        self._spec = b""
        self._checksum = zlib.crc32(self._spec)
        """The checksum of the last spec: most consecutive pods have the same."""
        self.refresh()

    def refresh(self) -> int:
        """Read the supervisor's counts again; return a number that changes with them."""
        if self._file is None:
            return self._read_at
        with suppress(FileNotFoundError):
            changed_at = self._file.stat().st_mtime_ns
            if changed_at != self._read_at:
                self._deaths = {known.identity: known.deaths for known in _read(self._file)}
                self._read_at = changed_at
        return self._read_at

    def deaths(self, cluster_id: int, namespace: str, spec: bytes) -> int:
        """Return how many workers died while they were deciding a pod."""
        if not self._deaths:
            return 0
        return self._deaths.get(Identity(cluster_id, namespace, self._checksum_of(spec)), 0)

    def deciding(self, cluster_id: int, namespace: str, name: str, spec: bytes) -> int:
        """Record the pod that is now being decided; return how many workers died deciding it."""
        if self._slot is not None:
            record = f"{cluster_id}\n{self._checksum_of(spec)}\n{namespace}\n{name}\0".encode()
            self._slot[: len(record)] = record
            self._first = record[0]
        return self.deaths(cluster_id, namespace, spec) if self._deaths else 0

    def decided(self) -> None:
        """Record that no pod is being decided."""
        self._first = 0
        self.pause()

    def pause(self) -> None:
        """Record that the decision is interrupted by other work."""
        if self._slot is not None:
            self._slot[0] = 0

    def resume(self) -> None:
        """Record that the decision continues."""
        if self._slot is not None:
            self._slot[0] = self._first

    def close(self) -> None:
        """Remove the slot: this process decides no more pods."""
        if self._file is not None:
            (self._file.parent / f"{os.getpid()}{_SLOT_SUFFIX}").unlink(missing_ok=True)

    def _checksum_of(self, spec: bytes) -> int:
        if spec is not self._spec:
            self._spec, self._checksum = spec, zlib.crc32(spec)
        return self._checksum


class DeathCounts:
    """The supervisor's counts of deaths, by the pods that workers were deciding."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def count_left(self, now: float) -> list[Suspect]:
        """Count workers that died with an earlier server, and drop deaths that are too old."""
        self._write([suspect for suspect in self.known() if suspect.at > now - KEPT_SECONDS])
        pids = [int(slot.stem) for slot in self._folder.glob(f"*{_SLOT_SUFFIX}")]
        return [suspect for pid in pids if (suspect := self.count(pid, now)) is not None]

    def count(self, pid: int | None, now: float) -> Suspect | None:
        """Count the death of a worker; return the pod that it was deciding, or None.

        `now` is in seconds since 1970.
        """
        slot = self._folder / f"{pid}{_SLOT_SUFFIX}"
        try:
            content = slot.read_bytes()
        except FileNotFoundError:
            return None
        slot.unlink(missing_ok=True)
        decided = _decoded(content)
        return None if decided is None else self._add(*decided, now)

    def _add(self, identity: Identity, name: str, now: float) -> Suspect:
        known = {suspect.identity: suspect for suspect in self.known()}
        before = known.pop(identity, None)
        deaths = 1 if before is None else before.deaths + 1
        suspect = Suspect(identity=identity, name=name, deaths=deaths, at=now)
        self._write([*known.values(), suspect][-KEPT_MAX:])
        return suspect

    def known(self) -> list[Suspect]:
        """Return all pods with counted deaths."""
        return _read(self._folder / _FILE)

    def _write(self, kept: list[Suspect]) -> None:
        file = self._folder / _FILE
        written = file.with_suffix(".new")
        written.write_bytes(msgspec.json.encode(kept))
        written.replace(file)


def _slot_of(folder: Path, pid: int) -> mmap.mmap:
    with (folder / f"{pid}{_SLOT_SUFFIX}").open("w+b") as file:
        file.truncate(_SLOT_BYTES)
        return mmap.mmap(file.fileno(), _SLOT_BYTES)


def _decoded(content: bytes) -> tuple[Identity, str] | None:
    parts = content.partition(b"\0")[0].decode(errors="replace").split("\n")
    if len(parts) != len(Identity.__struct_fields__) + 1:
        return None
    cluster_id, checksum, namespace, name = parts
    return Identity(int(cluster_id), namespace, int(checksum)), name


def _read(file: Path) -> list[Suspect]:
    """Return the pods in a file, or none if it is missing or damaged."""
    with suppress(FileNotFoundError, msgspec.DecodeError):
        return msgspec.json.decode(file.read_bytes(), type=list[Suspect])
    return []
