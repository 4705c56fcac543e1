"""Copies of pure functions of the server, which the client package cannot import."""

import ast
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]


class Copy(NamedTuple):
    """What is copied out of a module: these functions and classes, and all that they use there."""

    source: str
    summary: str
    names: Sequence[str]


COPIES: Mapping[str, Copy] = {
    "audit.py": Copy(
        "service/model/log/audit_chain.py",
        "The chain of hashes of the audit's rows, and its verifier.",
        ("Verifier",),
    ),
    "quantity.py": Copy(
        "service/model/core/quantity.py",
        "Kubernetes resource quantities as exact integers, in nanos.",
        ("ceil_milli", "ceil_whole", "parse_quantity"),
    ),
}
"""By the name of the module in the client package."""


def copied(copy: Copy) -> str:
    """Return the text of a copy, before it is formatted and loses the imports that it does not use."""
    text = (ROOT / copy.source).read_text(encoding="utf-8")
    lines = text.splitlines(keepends=True)
    parts = dict(_parts(ast.parse(text)))
    needed = _needed(parts, copy.names)
    imports = [
        node for node in ast.parse(text).body if isinstance(node, ast.Import | ast.ImportFrom)
    ]
    heading = f'"""{copy.summary}\n\n`make client` copies this from {copy.source}.\n"""\n'
    first = "".join(_lines(lines, [node]) for node in imports)
    rest = (_lines(lines, nodes) for name, nodes in parts.items() if name in needed)
    return "\n".join([heading, first, *rest])


def _parts(tree: ast.Module) -> Iterator[tuple[str, list[ast.stmt]]]:
    """Yield what a module defines, by name; a docstring of a constant is part of it."""
    name, nodes = "", list[ast.stmt]()
    for node in tree.body[1:]:
        if isinstance(node, ast.Expr) and name:
            nodes.append(node)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            name, nodes = node.name, [node]
            yield name, nodes
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name, nodes = node.targets[0].id, [node]
            yield name, nodes


def _needed(parts: Mapping[str, Sequence[ast.stmt]], names: Sequence[str]) -> set[str]:
    needed, waiting = set[str](), list(names)
    while waiting:
        name = waiting.pop()
        if name in parts and name not in needed:
            needed.add(name)
            nodes = (each for node in parts[name] for each in ast.walk(node))
            waiting += [each.id for each in nodes if isinstance(each, ast.Name)]
    return needed


def _lines(lines: Sequence[str], nodes: Sequence[ast.stmt]) -> str:
    """Return the source of statements that follow one another, with decorators."""
    decorators = getattr(nodes[0], "decorator_list", None) or [nodes[0]]
    return "".join(lines[decorators[0].lineno - 1 : nodes[-1].end_lineno])
