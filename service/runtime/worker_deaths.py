"""Pods that may have killed a worker: noted by workers before they decide, counted by their supervisor.

Each worker has a slot, a small file in memory that names the pod being decided. If a worker dies
with a name in its slot, its supervisor counts the death for that pod. Workers read these counts: a
pod with one death is tried last and alone, and one with two is set aside.

A pod is known by its cluster, its namespace, and a checksum of its spec, so that copies of it that a
controller makes share its fate, and a changed pod begins anew.
"""

import mmap
import os
import zlib
from contextlib import suppress
from pathlib import Path

import msgspec

KEPT_MAX = 256
"""How many pods are remembered; the oldest are forgotten first."""
KEPT_SECONDS = 24 * 3600.0
"""A death is forgotten at the first start of a server after so long."""
_SLOT_BYTES = 1024
_FILE = "suspects.json"
_SLOT_SUFFIX = ".deciding"


class Identity(msgspec.Struct, frozen=True, array_like=True):
    """What equal pods have in common."""

    cluster_id: int
    namespace: str
    checksum: int


class Suspect(msgspec.Struct, frozen=True, kw_only=True):
    """A pod during whose decisions workers died."""

    identity: Identity
    name: str
    deaths: int
    at: float
    """When the last one died, in seconds since 1970."""


class Suspects:
    """The pods that may have killed a worker of this server, as a worker knows them."""

    def __init__(self, folder: Path | None) -> None:
        self._file = None if folder is None else folder / _FILE
        self._slot = None if folder is None else _slot_of(folder, os.getpid())
        self._first = 0
        """The first byte of what is noted; it is 0 in the slot while nothing is decided."""
        self._read_at = -1
        self._deaths: dict[Identity, int] = {}
        self._spec = b""
        self._checksum = zlib.crc32(self._spec)
        """That of the last spec: most pods that are decided in a row have the same."""
        self.refresh()

    def refresh(self) -> int:
        """Read again what the supervisor has counted; return a number that changes with it."""
        if self._file is None:
            return self._read_at
        with suppress(FileNotFoundError):
            changed_at = self._file.stat().st_mtime_ns
            if changed_at != self._read_at:
                self._deaths = {each.identity: each.deaths for each in _read(self._file)}
                self._read_at = changed_at
        return self._read_at

    def deaths(self, cluster_id: int, namespace: str, spec: bytes) -> int:
        """Return how many workers have died of a pod."""
        if not self._deaths:
            return 0
        return self._deaths.get(Identity(cluster_id, namespace, self._of(spec)), 0)

    def deciding(self, cluster_id: int, namespace: str, name: str, spec: bytes) -> int:
        """Note the pod that is decided from now on; return how many workers have died of it."""
        if self._slot is not None:
            noted = f"{cluster_id}\n{self._of(spec)}\n{namespace}\n{name}\0".encode()
            self._slot[: len(noted)] = noted
            self._first = noted[0]
        return self.deaths(cluster_id, namespace, spec) if self._deaths else 0

    def decided(self) -> None:
        """Note that no pod is being decided."""
        self._first = 0
        self.pause()

    def pause(self) -> None:
        """Note that other work is done before the decision goes on."""
        if self._slot is not None:
            self._slot[0] = 0

    def resume(self) -> None:
        """Note that the decision goes on."""
        if self._slot is not None:
            self._slot[0] = self._first

    def close(self) -> None:
        """End in good order: this process decides nothing any more."""
        if self._file is not None:
            (self._file.parent / f"{os.getpid()}{_SLOT_SUFFIX}").unlink(missing_ok=True)

    def _of(self, spec: bytes) -> int:
        if spec is not self._spec:
            self._spec, self._checksum = spec, zlib.crc32(spec)
        return self._checksum


class DeathCounts:
    """Counts the deaths of workers by the pods that they were deciding; the supervisor has it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def count_left(self, now: float) -> list[Suspect]:
        """Count the workers of an earlier server that was killed with them; forget what is too old."""
        self._write([each for each in self.known() if each.at > now - KEPT_SECONDS])
        pids = [int(each.stem) for each in self._folder.glob(f"*{_SLOT_SUFFIX}")]
        return [found for pid in pids if (found := self.count(pid, now)) is not None]

    def count(self, pid: int | None, now: float) -> Suspect | None:
        """Count the death of a worker; return the pod that it was deciding, if there is one.

        `now` is in seconds since 1970.
        """
        slot = self._folder / f"{pid}{_SLOT_SUFFIX}"
        try:
            content = slot.read_bytes()
        except FileNotFoundError:
            return None
        slot.unlink(missing_ok=True)
        told = _told(content)
        return None if told is None else self._add(*told, now)

    def _add(self, identity: Identity, name: str, now: float) -> Suspect:
        known = {each.identity: each for each in self.known()}
        before = known.pop(identity, None)
        deaths = 1 if before is None else before.deaths + 1
        found = Suspect(identity=identity, name=name, deaths=deaths, at=now)
        self._write([*known.values(), found][-KEPT_MAX:])
        return found

    def known(self) -> list[Suspect]:
        """Return all pods that are remembered."""
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


def _told(content: bytes) -> tuple[Identity, str] | None:
    parts = content.partition(b"\0")[0].decode(errors="replace").split("\n")
    if len(parts) != len(Identity.__struct_fields__) + 1:
        return None
    cluster_id, checksum, namespace, name = parts
    return Identity(int(cluster_id), namespace, int(checksum)), name


def _read(file: Path) -> list[Suspect]:
    """Return the pods that a file names; one that is absent or damaged names none."""
    with suppress(FileNotFoundError, msgspec.DecodeError):
        return msgspec.json.decode(file.read_bytes(), type=list[Suspect])
    return []
