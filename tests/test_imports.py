"""Whatever the project's own modules import from one another is there, also where only campaigns and benchmarks run."""

import ast
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tests.paths import ROOT

OWN = ("service", "migrations", "moorage", "tests", "bench", "tools")


class Source(NamedTuple):
    """What a source says of names; its syntax tree, which is large, is not kept."""

    imported: list[tuple[str, str]]
    """Each module of the project from which it imports, with the name that it takes."""
    defined: frozenset[str]
    """The names that it defines or imports, anywhere in it."""


def read(text: bytes | str) -> Source:
    imported, names = [], set[str]()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Name):
            if isinstance(node.ctx, ast.Store):
                names.add(node.id)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names |= {each.asname or each.name for each in node.names}
            if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in OWN:
                assert node.module is not None
                imported += [(node.module, each.name) for each in node.names]
    return Source(imported, frozenset(names))


@cache
def source_of(path: Path) -> Source:
    """Return what a module says; nothing if it is only a folder."""
    return read(path.read_bytes()) if path.is_file() else Source([], frozenset())


@cache
def file_of(module: str) -> Path | None:
    """Return the file of a module; None if there is no such module."""
    path = ROOT.joinpath(*module.split("."))
    found = [each for each in (path.with_suffix(".py"), path / "__init__.py") if each.exists()]
    return found[0] if found else path if path.is_dir() else None


def missing(source: Source) -> list[str]:
    """Return the names that a source imports from modules of the project which do not have them."""
    found = []
    for module, name in source.imported:
        path = file_of(module)
        if path is None or not (name in source_of(path).defined or file_of(f"{module}.{name}")):
            found.append(f"{module}.{name}")
    return found


def test_what_is_imported_is_there() -> None:
    wrong = {}
    for folder in OWN:
        for path in (ROOT / folder).rglob("*.py"):
            if "_compiled" not in path.parts and (found := missing(source_of(path))):
                wrong[path.relative_to(ROOT).as_posix()] = found
    assert wrong == {}


def test_what_is_not_there_is_found() -> None:
    def missing_in(source: str) -> list[str]:
        return missing(read(source))

    assert missing_in("from service.nothing import anything") == ["service.nothing.anything"]
    assert missing_in("from tests.paths import ROOT, nothing") == ["tests.paths.nothing"]
