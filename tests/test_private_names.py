"""Tests and tools reach nothing that the service keeps to itself, so that it can be renamed and moved.

Ruff sees `x._name` (SLF001). Here is found what it does not see: names in imports and in strings,
and what functions and classes that stand in for the service's own read of `self`. And whoever has
ruff keep silent may do so for names of others only.
"""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import pytest

ROOT = Path(__file__).parent.parent
FOLDERS = ("tests", "bench", "tools", "examples")
OWN = ("service", "moorage", *FOLDERS)
REPLACING = {"setattr", "delattr", "getattr", "hasattr", "setitem", "object"}
"""Functions, by their last names, that take a thing and the name of something of it."""
IN_A_STRING = re.compile(r"(?:service|tests|bench|tools)(?:\.\w+)*\._(?!_)\w+[.\w]*")

SILENT = re.compile(r"#\s*noqa:.*\bSLF001\b")

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
N = TypeVar("N", bound=ast.AST)


def is_private(name: object) -> bool:
    """Whether a name begins with one underscore, as what belongs to one module or class does."""
    return isinstance(name, str) and re.match(r"_[A-Za-z]", name) is not None


def is_own(module: str) -> bool:
    return module.partition(".")[0] in OWN


class Nodes:
    """The nodes of a source by what they are: one walk is most of what looking at it costs."""

    def __init__(self, source: str) -> None:
        self._by_kind: defaultdict[type[ast.AST], list[Any]] = defaultdict(list)
        for node in ast.walk(ast.parse(source)):
            self._by_kind[type(node)].append(node)

    def of(self, kind: type[N]) -> list[N]:
        return self._by_kind[kind]

    @property
    def functions(self) -> list[Function]:
        return [*self.of(ast.FunctionDef), *self.of(ast.AsyncFunctionDef)]


def reached(source: str) -> list[int]:
    """The lines that name what another module or class keeps to itself."""
    nodes = Nodes(source)
    lines = (
        *_imported(nodes),
        *_in_strings(nodes),
        *_by_name(nodes),
        *_of_self(nodes),
        *_in_spite_of_ruff(source, nodes),
    )
    return sorted(set(lines))


def _in_spite_of_ruff(source: str, nodes: Nodes) -> Iterator[int]:
    """`Thing._name  # noqa: SLF001`, unless the thing is of the standard library or of others."""
    silent = {n for n, line in enumerate(source.splitlines(), 1) if SILENT.search(line)}
    others = _imported_from_others(nodes) if silent else set()
    for node in nodes.of(ast.Attribute):
        if node.lineno in silent and is_private(node.attr) and _root(node) not in others:
            yield node.lineno


def _imported(nodes: Nodes) -> Iterator[int]:
    for node in nodes.of(ast.ImportFrom):
        names = ((node.module or "").split("."), (each.name for each in node.names))
        if is_own(node.module or "") and any(map(is_private, chain(*names))):
            yield node.lineno
    for node in nodes.of(ast.Import):
        if any(is_own(each.name) and "._" in each.name for each in node.names):
            yield node.lineno


def _in_strings(nodes: Nodes) -> Iterator[int]:
    for node in nodes.of(ast.Constant):
        if isinstance(node.value, str) and IN_A_STRING.fullmatch(node.value):
            yield node.lineno


def _by_name(nodes: Nodes) -> Iterator[int]:
    """`patch.setattr(Thing, "_name", …)`, and what a planted mistake says that it replaces."""
    others = _imported_from_others(nodes)
    for node in nodes.of(ast.Call):
        match node.args:
            case [thing, ast.Constant(value=name), *_]:
                called = _last(node.func)
                if called in REPLACING and is_private(name) and _root(thing) not in others:
                    yield node.lineno
                if called == "bug" and any(map(is_private, re.split(r"\W+", str(name)))):
                    yield node.lineno


def _imported_from_others(nodes: Nodes) -> set[str]:
    """What the names of the standard library and of other packages are called here."""
    plain = [each for node in nodes.of(ast.Import) for each in node.names if not is_own(each.name)]
    named = [
        each
        for node in nodes.of(ast.ImportFrom)
        for each in node.names
        if not is_own(node.module or "")
    ]
    return {(each.asname or each.name).split(".")[0] for each in (*plain, *named)}


def _last(function: ast.expr) -> str | None:
    match function:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
    return None


def _root(thing: ast.expr) -> str | None:
    while isinstance(thing, ast.Attribute | ast.Call | ast.Subscript):
        thing = thing.func if isinstance(thing, ast.Call) else thing.value
    return thing.id if isinstance(thing, ast.Name) else None


def _of_self(nodes: Nodes) -> Iterator[int]:
    """Private names of `self` in a function of no class, or that its class has from the service."""
    inheriting = _named_of_the_service(nodes)
    for each in nodes.of(ast.ClassDef):
        if any(_root(base) in inheriting for base in each.bases):
            yield from _of_its_own(each, besides=_names_of(each))
    for function in _standing_in(nodes):
        yield from _of_its_own(function, besides=set())


def _named_of_the_service(nodes: Nodes) -> set[str]:
    return {
        each.asname or each.name
        for node in nodes.of(ast.ImportFrom)
        if (node.module or "").split(".")[0] == "service"
        for each in node.names
    }


def _standing_in(nodes: Nodes) -> list[Function]:
    """Functions of no class that are made to be methods."""
    found = [
        function
        for function in nodes.functions
        if function.args.args and function.args.args[0].arg in {"self", "cls"}
    ]
    within = {node for each in nodes.of(ast.ClassDef) for node in ast.walk(each)} if found else ()
    return [function for function in found if function not in within]


def _names_of(made: ast.ClassDef) -> set[str]:
    """What a class defines or sets by itself."""
    names = set()
    for node in ast.walk(made):
        match node:
            case ast.Attribute(attr=name, ctx=ast.Store()) | ast.Name(id=name, ctx=ast.Store()):
                names.add(name)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                names.add(name)
    return names


def _of_its_own(tree: ast.AST, besides: set[str]) -> Iterator[int]:
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id="self" | "cls"), attr=name):
                if is_private(name) and name not in besides:
                    yield node.lineno


def test_nothing_reaches_what_the_service_keeps_to_itself():
    found = [
        f"{file.relative_to(ROOT)}:{line}"
        for folder in FOLDERS
        for file in sorted((ROOT / folder).rglob("*.py"))
        for line in reached(file.read_text(encoding="utf-8"))
    ]
    assert found == []


IMPORTED = "from service.store.postgres import PostgresStore\nimport asyncio\n"
REACHING = {
    "an import": "from service.engine.rules.violations import _unmet",
    "an import of a module": "import service._compiled",
    "a name to replace": 'patch.setattr(PostgresStore, "_commit", None)',
    "a name of what was made": 'patch.setattr(made(), "_commit", None)',
    "a name to read": 'getattr(PostgresStore, "_commit")',
    "a dotted name": 'patch("service.store.postgres._commit", None)',
    "a mistake's place": '@bug("A2", "PostgresStore._commit")\ndef planted(patch): pass',
    "a name in spite of ruff": "PostgresStore._commit  # noqa: SLF001",
    "a function put in place": "def commit(self, request): return self._clock()",
    "a function within one": "def plant():\n def commit(self): return self._clock()",
    "a class that inherits": "class Own(PostgresStore):\n def f(self): return self._clock",
}
KEEPING = {
    "a public name": 'patch.setattr(PostgresStore, "commit", None)',
    "a name of the standard library": 'patch.setattr(asyncio.Handle, "_run", None)',
    "a name of others in spite of ruff": "asyncio.Handle._run  # noqa: SLF001",
    "an import of others": "from asyncio import _get_running_loop",
    "a class's own": "class Own(PostgresStore):\n def f(self): self._a = 1; return self._a + self._f()\n"
    " def _f(self): return 1",
    "a class that inherits from others": "class Own(asyncio.Loop):\n def f(self): return self._ready",
    "words": 'told = "service and _what it keeps"',
    "a dunder": 'patch.setattr(PostgresStore, "__init__", None)',
}


@pytest.mark.parametrize("kind", REACHING)
def test_what_reaches_something_private(kind: str):
    assert reached(IMPORTED + REACHING[kind])


@pytest.mark.parametrize("kind", KEEPING)
def test_what_reaches_nothing_private(kind: str):
    assert not reached(IMPORTED + KEEPING[kind])
