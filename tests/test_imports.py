"""Whatever the project's own modules import from one another is there, also where only campaigns and benchmarks run."""

import ast
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from tests.paths import ROOT

OWN = ("service", "migrations", "moorage", "tests", "bench", "tools")


@cache
def nodes_of(path: Path) -> list[ast.AST]:
    """Return all nodes of a module's source; none if it is only a folder."""
    return list(ast.walk(ast.parse(path.read_bytes()))) if path.is_file() else []


def imports(nodes: Iterable[ast.AST]) -> Iterator[tuple[str, str]]:
    """Yield each module of the project from which a source imports, with the name that it takes."""
    for node in nodes:
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
    for node in nodes_of(path):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names |= {each.asname or each.name for each in node.names}
    return frozenset(names)


def missing(nodes: Iterable[ast.AST]) -> list[str]:
    """Return the names that a source imports from modules of the project which do not have them."""
    found = []
    for module, name in imports(nodes):
        path = file_of(module)
        if path is None or not (name in defined(path) or file_of(f"{module}.{name}")):
            found.append(f"{module}.{name}")
    return found


def test_what_is_imported_is_there() -> None:
    wrong = {}
    for folder in OWN:
        for path in (ROOT / folder).rglob("*.py"):
            if "_compiled" not in path.parts and (found := missing(nodes_of(path))):
                wrong[path.relative_to(ROOT).as_posix()] = found
    assert wrong == {}


def test_what_is_not_there_is_found() -> None:
    def missing_in(source: str) -> list[str]:
        return missing(ast.walk(ast.parse(source)))

    assert missing_in("from service.nothing import anything") == ["service.nothing.anything"]
    assert missing_in("from tests.paths import ROOT, nothing") == ["tests.paths.nothing"]
