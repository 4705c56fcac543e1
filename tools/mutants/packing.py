"""Which mutants can be planted at the same time, so that one run of tests serves several of them.

No two mutants of a pack change the same file or name tests in the same file, and the tests of one
do not reach the file that the other changes. Then a failing test of one mutant cannot be caused by
another. A test file reaches all that it imports, directly or not, and the `conftest.py` files
around it that have a fixture which it uses. Two kinds of mutants are always alone, as imports do
not tell which code runs: those of files that are not Python, and those whose tests start processes.
"""

import ast
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path

from tools.mutants.catalogue import CLIENT, ROOT, Mutant

STARTERS = frozenset({"subprocess", "multiprocessing", "psutil", "service.server.local_server"})
"""Modules that start processes or look for them; tests that use processes import one of these."""


class Imports:
    """Knows which files import which in a tree of sources."""

    def __init__(self, root: Path = ROOT) -> None:
        self._root = root
        self._imported = cache(self._read)
        self.reached = cache(self._reached)

    def starts_processes(self, test_file: str) -> bool:
        """Whether a test file may start processes, which import other files."""
        return any(
            STARTERS & self._imported(path)[1]
            for path in self.reached(test_file)
            if path.startswith("tests/")
        )

    def _reached(self, test_file: str) -> frozenset[str]:
        seen: set[str] = set()
        ahead = [test_file, *self._conftests(test_file)]
        while ahead:
            path = ahead.pop()
            if path not in seen:
                seen.add(path)
                ahead += self._imported(path)[0]
        return frozenset(seen)

    def _conftests(self, test_file: str) -> Iterator[str]:
        """Yield the conftest files above a test file of which it uses fixtures, even indirectly."""
        used = _used(self._tree(test_file))
        for folder in Path(test_file).parents:
            path = (folder / "conftest.py").as_posix()
            if (self._root / path).exists():
                tree = self._tree(path)
                if used & _fixtures(tree):
                    used |= _used(tree)
                    yield path

    def _read(self, path: str) -> tuple[frozenset[str], frozenset[str]]:
        """Return the files of the tree that a file imports, and the names of all its imports."""
        names = frozenset(_imports(self._tree(path)))
        files = {file for name in names for file in self._files(name)}
        return frozenset(files), names

    def _files(self, name: str) -> Iterator[str]:
        """Yield the files of a module, and of the packages that it is in."""
        parts = name.split(".")
        for end in range(1, len(parts) + 1):
            stem = "/".join(parts[:end])
            named = (f"{stem}.py", f"{stem}/__init__.py")
            places = (*named, *(f"{CLIENT}/{path}" for path in named))
            yield from (path for path in places if (self._root / path).exists())

    def _tree(self, path: str) -> ast.Module:
        return ast.parse((self._root / path).read_text(encoding="utf-8"))


def _imports(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _used(tree: ast.Module) -> set[str]:
    """Return what may be names of fixtures: all parameters and strings.

    Strings may be arguments of `usefixtures`.
    """
    names = {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    strings = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant))
    return names | {each for each in strings if isinstance(each, str)}


def _fixtures(tree: ast.Module) -> set[str]:
    """Return the decorated functions of a conftest, which may be fixtures."""
    functions = [
        each for each in tree.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    return {each.name for each in functions if each.decorator_list}


def packs(mutants: Iterable[Mutant], imports: Imports, most: int = 8) -> list[list[Mutant]]:
    """Put each mutant into the first pack that takes it."""
    made: list[list[Mutant]] = []
    for mutant in mutants:
        open_packs = (
            pack
            for pack in made
            if len(pack) < most and all(independent(mutant, each, imports) for each in pack)
        )
        pack = next(open_packs, None)
        if pack is None:
            made.append([mutant])
        else:
            pack.append(mutant)
    return made


def independent(one: Mutant, other: Mutant, imports: Imports) -> bool:
    """Whether both can be planted at once, and no test of one can find the other."""
    return (
        one.file != other.file
        and not one.test_files & other.test_files
        and not _is_alone(one, imports)
        and not _is_alone(other, imports)
        and not _reaches(one, other.file, imports)
        and not _reaches(other, one.file, imports)
    )


def _is_alone(mutant: Mutant, imports: Imports) -> bool:
    return not mutant.file.endswith(".py") or any(
        imports.starts_processes(path) for path in mutant.test_files
    )


def _reaches(mutant: Mutant, file: str, imports: Imports) -> bool:
    return any(file in imports.reached(path) for path in mutant.test_files)


def count(made: Sequence[Sequence[Mutant]]) -> str:
    """Say how many mutants and runs there are."""
    return f"{sum(map(len, made))} mutants in {len(made)} runs"
