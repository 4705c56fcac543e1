"""Whatever the project's own modules import from one another is there, also where only campaigns and benchmarks run."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.paths import ROOT

OWN = ("service", "migrations", "moorage", "tests", "bench", "tools")


def imports(source: str) -> Iterator[tuple[str, str]]:
    """Yield each module of the project from which a source imports, with the name that it takes."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in OWN:
            assert node.module is not None
            yield from ((node.module, each.name) for each in node.names)


@cache
def file_of(module: str) -> Path | None:
    """Return the file of a module; None if there is no such module."""
    path = ROOT.joinpath(*module.split("."))
    found = [each for each in (path.with_suffix(".py"), path / "__init__.py") if each.exists()]
    return found[0] if found else path if path.is_dir() else None


@cache
def defined(path: Path) -> frozenset[str]:
    """Return the names that a module defines or imports, anywhere in it."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_bytes() if path.is_file() else b"")):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names |= {each.asname or each.name for each in node.names}
    return frozenset(names)


def missing(source: str) -> list[str]:
    found = []
    for module, name in imports(source):
        path = file_of(module)
        if path is None or not (name in defined(path) or file_of(f"{module}.{name}")):
            found.append(f"{module}.{name}")
    return found


def test_what_is_imported_is_there() -> None:
    wrong = {}
    for folder in OWN:
        for path in (ROOT / folder).rglob("*.py"):
            if "_compiled" not in path.parts and (found := missing(path.read_text("utf-8"))):
                wrong[path.relative_to(ROOT).as_posix()] = found
    assert wrong == {}


def test_what_is_not_there_is_found() -> None:
    assert missing("from service.nothing import anything") == ["service.nothing.anything"]
    assert missing("from tests.paths import ROOT, nothing") == ["tests.paths.nothing"]
