"""Files of the data folder, written safely where others may have prepared the folder for us.

Links are never followed, and what root makes belongs to the owner of the folder that it is in.
"""

import os
import tempfile
from pathlib import Path

from service.store.embedded.account import ROOT


def open_owned(path: Path, flags: int) -> int:
    """A close-on-exec descriptor of `path`, which is made for its owner alone if it is absent."""
    descriptor = os.open(path, flags | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    _give_to_owner(descriptor, path.parent)
    return descriptor


def replace_text(path: Path, text: str) -> None:
    """Write a file that all may read, whole or not at all."""
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
