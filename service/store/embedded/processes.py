"""Recognizes the processes of a folder's server, since ids are reused and files may name any id."""

import contextlib
import os
import re
import signal
import subprocess
from pathlib import Path

_PROC = Path("/proc")
_PROGRAM_NAMES = ("postgres", "postmaster")


def is_postmaster(pid: int, pgdata: Path) -> bool:
    """Return whether a process is the server of the database in `pgdata`, not a child of it."""
    arguments = _command_line(pid)
    if not arguments or Path(arguments[0]).name not in _PROGRAM_NAMES:
        return False  # the children have titles such as `postgres: checkpointer`
    with contextlib.suppress(OSError):
        return (_PROC / str(pid) / "cwd").samefile(pgdata)
    return str(pgdata) in arguments  # we may not look into another user's process


def find_postmaster(pgdata: Path) -> int | None:
    """Return the process id of the server of the database in `pgdata`, or None if none is found.

    A child that was forked a moment ago still looks like the server, but has the server as its
    parent.
    """
    alike = {pid for pid in _all_pids() if is_postmaster(pid, pgdata)}
    return next((pid for pid in alike if _parent(pid) not in alike), None)


def exists(pid: int) -> bool:
    """Return whether any process has this id."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


def kill_orphans(pgdata: Path) -> int:
    """Kill the children that a killed server left behind; return how many.

    They end by themselves once they notice, but one that computes may not notice for hours. No
    committed data is lost: the rest was lost already when the server was killed.
    """
    orphans = [pid for pid in _all_pids() if _is_child_of_a_server(pid, pgdata)]
    for pid in orphans:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return len(orphans)


def _is_child_of_a_server(pid: int, pgdata: Path) -> bool:
    if not read(_PROC / str(pid) / "cmdline").startswith("postgres: "):
        return False
    with contextlib.suppress(OSError):
        return (_PROC / str(pid) / "cwd").samefile(pgdata)
    return False


def _parent(pid: int) -> int | None:
    match = re.search(r"^PPid:\t(\d+)$", read(_PROC / str(pid) / "status"), re.MULTILINE)
    return int(match[1]) if match else None


def _all_pids() -> list[int]:
    with contextlib.suppress(OSError):
        return [int(entry.name) for entry in _PROC.iterdir() if entry.name.isdigit()]
    return []


def _command_line(pid: int) -> list[str]:
    if (_PROC / "self").exists():
        return read(_PROC / str(pid) / "cmdline").split("\0")[:-1]
    command = ["ps", "-ww", "-o", "command=", "-p", str(pid)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    return result.stdout.split()


def read(path: Path) -> str:
    """Return the text of a file, or "" if it cannot be read."""
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""
