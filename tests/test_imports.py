"""Whatever the project's own modules import from one another is there, also where only campaigns and benchmarks run."""

import ast
import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tests.paths import CLIENT, ROOT

WITHOUT = {"tests/test_imports.py", "tests/test_private_names.py", "tests/tools/test_rename.py"}
"""Their strings import what is not there, to show that it is found."""
IN_A_STRING = re.compile(
    r"\bfrom ((?:service|moorage\.cli)(?:\.\w+)*) import (\w+(?: as \w+)?(?:, \w+(?: as \w+)?)*)"
)
OWN = ("service", "migrations", "moorage", "tests", "bench", "tools")
FOLDERS = [CLIENT if name == "moorage" else ROOT / name for name in OWN]


class Source(NamedTuple):
    """What a source says of names; its syntax tree, which is large, is not kept."""

    imported: list[tuple[str, str]]
    """Each module of the project from which it imports, with the name that it takes."""
    in_strings: list[tuple[str, str]]
    """What is imported by source that it holds in strings, for other processes to run."""
    defined: frozenset[str]
    """The names that it defines or imports, anywhere in it."""


def read(text: bytes | str) -> Source:
    imported, in_strings, names = [], [], set[str]()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Name):
            if isinstance(node.ctx, ast.Store):
                names.add(node.id)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            in_strings += _imported_in(node.value)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names |= {each.asname or each.name for each in node.names}
            if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in OWN:
                assert node.module is not None
                imported += [(node.module, each.name) for each in node.names]
    return Source(imported, in_strings, frozenset(names))


def _imported_in(text: str) -> list[tuple[str, str]]:
    return [
        (module, name.split()[0])
        for module, names in IN_A_STRING.findall(text)
        for name in names.split(", ")
    ]


@cache
def source_of(path: Path) -> Source:
    """Return what a module says; nothing if it is only a folder."""
    return read(path.read_bytes()) if path.is_file() else Source([], [], frozenset())


@cache
def file_of(module: str) -> Path | None:
    """Return the file of a module; None if there is no such module."""
    root = CLIENT if module.partition(".")[0] == "moorage" else ROOT
    path = root.joinpath(*module.split("."))
    found = [each for each in (path.with_suffix(".py"), path / "__init__.py") if each.exists()]
    return found[0] if found else path if path.is_dir() else None


def missing(imported: list[tuple[str, str]]) -> list[str]:
    """Return the names that are imported from modules of the project which do not have them."""
    found = []
    for module, name in imported:
        path = file_of(module)
        if path is None or not (name in source_of(path).defined or file_of(f"{module}.{name}")):
            found.append(f"{module}.{name}")
    return found


def test_what_is_imported_is_there() -> None:
    wrong = {}
    for folder in FOLDERS:
        for path in folder.rglob("*.py"):
            if "_compiled" not in path.parts and (found := missing(source_of(path).imported)):
                wrong[path.relative_to(ROOT).as_posix()] = found
    assert wrong == {}


def test_what_strings_import_is_there() -> None:
    wrong = {}
    for folder in FOLDERS:
        for path in folder.rglob("*.py"):
            name = path.relative_to(ROOT).as_posix()
            if "_compiled" not in path.parts and name not in WITHOUT:
                wrong[name] = missing(source_of(path).in_strings)
    assert {name: found for name, found in wrong.items() if found} == {}


def test_what_is_not_there_is_found() -> None:
    def missing_in(source: str) -> list[str]:
        said = read(source)
        return missing(said.imported + said.in_strings)

    assert missing_in("from service.nothing import anything") == ["service.nothing.anything"]
    assert missing_in("from tests.paths import ROOT, nothing") == ["tests.paths.nothing"]
    assert missing_in("RUN = 'x; from service import nothing as n'") == ["service.nothing"]
