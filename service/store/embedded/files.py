"""Writes files in the data folder safely, even if another user prepared the folder.

Links are never followed, and files that root creates belong to the owner of their folder.
"""

import os
import tempfile
from pathlib import Path

from service.store.embedded.os_account import ROOT


def open_owned(path: Path, flags: int) -> int:
    """Open `path` close-on-exec; create it if absent, accessible only to its owner."""
    descriptor = os.open(path, flags | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    _give_to_owner(descriptor, path.parent)
    return descriptor


def replace_text(path: Path, text: str) -> None:
    """Replace a world-readable file atomically."""
    descriptor, draft = tempfile.mkstemp(prefix=f"{path.name}.", dir=path.parent)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
        os.fchmod(descriptor, 0o644)
        _give_to_owner(descriptor, path.parent)
    Path(draft).replace(path)


def _give_to_owner(descriptor: int, folder: Path) -> None:
    if os.geteuid() == ROOT:
        status = folder.stat()
        os.fchown(descriptor, status.st_uid, status.st_gid)
