"""Writes the parts of the client package that follow from others.

These are its types, its table of kinds, copies of pure functions, and the synchronous client.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import unasync

from tools.client import kinds, types
from tools.client.copies import COPIES, copied

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "clients" / "python" / "moorage"
DOCUMENT = ROOT / "openapi" / "openapi.json"

ASYNCHRONOUS, SYNCHRONOUS = "asynchronous", "synchronous"
SAME = {
    "AbstractAsyncContextManager": "AbstractContextManager",
    "AsyncBaseTransport": "BaseTransport",
    "AsyncCache": "Cache",
    "AsyncCalls": "Calls",
    "AsyncClient": "Client",
    "AsyncConnection": "Connection",
    "AsyncObjects": "Objects",
    "AsyncPodCalls": "PodCalls",
    "AsyncRetrying": "Retrying",
    "AsyncSleep": "Sleep",
    "aclose": "close",
    "aclosing": "closing",
    "aiter_bytes": "iter_bytes",
    "aread": "read",
    "asynchronous": "synchronous",
    "asyncio": "time",
}
"""What is called otherwise in the synchronous client."""


def written() -> dict[str, str]:
    """The text of each file that follows from others, by its path in the package."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        document = json.loads(DOCUMENT.read_text(encoding="utf-8"))
        modules = {
            "kept_kinds.py": kinds.module(),
            "types.py": types.module(document),
            **{name: copied(copy) for name, copy in COPIES.items()},
        }
        for name, text in modules.items():
            (folder / name).write_text(text, encoding="utf-8")
        _unasync(folder)
        _format(folder)
        found = [*(folder / name for name in modules), *sorted((folder / SYNCHRONOUS).glob("*.py"))]
        return {str(file.relative_to(folder)): file.read_text(encoding="utf-8") for file in found}


def _unasync(folder: Path) -> None:
    source = folder / ASYNCHRONOUS
    source.mkdir()
    for file in (PACKAGE / ASYNCHRONOUS).glob("*.py"):
        (source / file.name).write_text(file.read_text(encoding="utf-8"), encoding="utf-8")
    rule = unasync.Rule(f"/{ASYNCHRONOUS}/", f"/{SYNCHRONOUS}/", SAME)
    unasync.unasync_files([str(file) for file in source.glob("*.py")], [rule])
    told = '"""The synchronous client, which `make client` makes from the asynchronous one."""\n'
    (folder / SYNCHRONOUS / "__init__.py").write_text(told, encoding="utf-8")


def _format(folder: Path) -> None:
    config = ["--config", str(ROOT / "pyproject.toml"), "--no-cache", "--quiet"]
    for command in (["check", "--select", "F401,I", "--fix-only"], ["format"]):
        ruff = [sys.executable, "-m", "ruff", *command, *config, str(folder)]
        subprocess.run(ruff, check=True)
