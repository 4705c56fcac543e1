"""The compiled engine, imported instead of its sources if exactly these sources were compiled.

`tools/compile_engine.py` (part of `make setup` and of building a wheel) has mypyc compile the
engine into a folder named after the digest of its sources. A source that differs by one byte has
another digest, and so no folder: the running code is never older than its source.
"""

import os
import sys
from collections.abc import Iterator, Sequence
from functools import cached_property
from hashlib import blake2b
from importlib.abc import MetaPathFinder
from importlib.machinery import EXTENSION_SUFFIXES, ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType

from typing_extensions import override

LIBRARY = "moorage_engine"
"""The name of mypyc's group: all modules are compiled into one library, named after it."""
FOLDERS = ("engine", "model")
"""The compiled folder, and the one that it imports: mypyc needs the types of both."""
VARIABLE = "MOORAGE_ENGINE"
INTERPRETED = "interpreted"

_SERVICE = Path(__file__).parents[1]
_NAMES = (f"service.{FOLDERS[0]}.", LIBRARY)


def sources(*folders: str) -> Iterator[Path]:
    """Yield the source files in these folders, in a fixed order."""
    for name in folders:
        yield from sorted((_SERVICE / name).rglob("*.py"))


def folder() -> Path:
    """Return the folder for code compiled from the current sources, whether or not it exists."""
    digest = blake2b(digest_size=10)
    for path in sources(*FOLDERS):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(_SERVICE).as_posix()} {len(content)} ".encode() + content)
    return _SERVICE / "_compiled" / digest.hexdigest()


class Finder(MetaPathFinder):
    """The finder of the engine's compiled modules."""

    @cached_property
    def modules(self) -> dict[str, Path]:
        """The compiled modules by name; none if these sources are not compiled for this Python."""
        root, suffix = folder(), EXTENSION_SUFFIXES[0]
        return {
            ".".join(path.relative_to(root).parts).removesuffix(suffix): path
            for path in root.rglob(f"*{suffix}")
        }

    @override
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not fullname.startswith(_NAMES) or fullname not in self.modules:
            return None
        return spec_from_file_location(fullname, self.modules[fullname])


def install() -> None:
    """Import compiled modules instead of their sources from now on."""
    if os.environ.get(VARIABLE) != INTERPRETED:  # noqa: TID251 - modules come before settings
        sys.meta_path.insert(0, Finder())


def is_in_use() -> bool:
    """Return whether this process runs the compiled engine."""
    return any(isinstance(finder, Finder) and finder.modules for finder in sys.meta_path)


def engine_kind() -> str:
    """Return `compiled` or `interpreted`."""
    return "compiled" if is_in_use() else "interpreted"
