"""Rename modules, classes, and functions everywhere: `python -m tools.rename` applies `tools/renames.txt`.

A row `service/a/b.py -> service/c/d.py` moves a module: the file, its imports, and its path in code,
tests, configuration, and documentation. A row `service/c/d.py: old -> new` renames what that module
defines. Rows that are applied already change nothing; the table stays as the map from old names.
`--check` only reports what still has an old name.
"""

import argparse
import ast
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
TABLE = "tools/renames.txt"
NOT_RENAMED = re.compile(
    r"CHANGELOG\.md|bench/RESULTS\.md|uv\.lock|docs/campaigns\.json|tools/renames\.txt|tests/tools/test_rename\.py"
    r"|tests/store/schemas/|tests/public/|openapi/|docs/.*\.svg"
)
"""Files that speak of the past, or of no code."""
PACKAGE = "/__init__"
CLIENT = "clients/python/"
"""A folder that modules are found in; it is no part of their names."""
_MOVE = re.compile(r"(\S+)\.py -> (\S+)\.py")
_NAME = re.compile(r"(\S+\.py): (\w+) -> (\w+)")
_TEXT = {
    ".py",
    ".md",
    ".toml",
    ".json",
    ".txt",
    ".yml",
    ".yaml",
    ".ini",
    ".cfg",
    ".svg",
    ".mmd",
    "",
}


class Move(NamedTuple):
    """A module that gets another path; both without `.py`."""

    old: str
    new: str


class Name(NamedTuple):
    """A class, function, or constant of a module that gets another name."""

    module: str
    old: str
    new: str


@dataclass(frozen=True)
class Table:
    """The rows of the table, in order."""

    moves: tuple[Move, ...]
    names: tuple[Name, ...]

    @classmethod
    def read(cls, text: str) -> "Table":
        """Read the table.

        Raises:
            ValueError: a line is no row, no comment, and not empty.
        """
        moves, names = list[Move](), list[Name]()
        for line in text.splitlines():
            row = line.partition("#")[0].strip()
            if found := _MOVE.fullmatch(row):
                moves.append(Move(found[1], found[2]))
            elif found := _NAME.fullmatch(row):
                names.append(Name(found[1], found[2], found[3]))
            elif row:
                raise ValueError(f"no row of the table: {line!r}")
        return cls(tuple(moves), tuple(names))


class Tree:
    """The tracked text files of a repository."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def files(self) -> Iterator[Path]:
        """Yield all files in which names may stand."""
        listed = subprocess.run(
            ["git", "ls-files", "-z"], cwd=self.root, capture_output=True, check=True, text=True
        )
        for name in listed.stdout.split("\0"):
            path = self.root / name
            if name and path.suffix in _TEXT and path.is_file() and not NOT_RENAMED.match(name):
                yield path

    def move(self, moves: Iterable[Move]) -> None:
        """Move the files that are still at their old places.

        Raises:
            FileExistsError: something else is at the new place.
        """
        for old, new in moves:
            source, target = self.root / f"{old}.py", self.root / f"{new}.py"
            if not source.exists():
                continue
            if target.exists():
                raise FileExistsError(f"{new}.py is there already")
            target.parent.mkdir(parents=True, exist_ok=True)
            subprocess.run(["git", "mv", str(source), str(target)], cwd=self.root, check=True)

    def rewrite(self, table: Table) -> int:
        """Write the new names into all files; return how many files that changed."""
        moved, named = Modules(table.moves), Names(table.names)
        changed = 0
        for path in list(self.files()):
            before = path.read_text(encoding="utf-8")
            text = moved.imported(before) if path.suffix == ".py" else before
            text = named.renamed(moved.renamed(text), path)
            if text != before:
                path.write_text(text, encoding="utf-8")
                changed += 1
        return changed

    def leftovers(self, table: Table) -> list[str]:
        """Return a line for each place where an old name still stands."""
        moved, named = Modules(table.moves), Names(table.names)
        found = [f"{old}.py still exists" for old, _ in table.moves if self.has_module(old)]
        for path in self.files():
            text = path.read_text(encoding="utf-8")
            names = (*moved.found(text), *named.found(text, path))
            found.extend(f"{path.relative_to(self.root)}: {name}" for name in names)
        return found

    def has_module(self, module: str) -> bool:
        """Return whether there is a file for a module."""
        return (self.root / f"{module}.py").exists()


class Modules:
    """Modules by their old paths and dotted names."""

    def __init__(self, moves: Iterable[Move]) -> None:
        self._new: dict[str, str] = {}
        for old, new in moves:
            for before, after in _spellings(old, new):
                if before != after:
                    self._new[before] = after
        self._any = _any_of(self._new, before=r"(?:(?<![\w./-])|(?<=\.\./))", after=r"(?![\w-])")

    def renamed(self, text: str) -> str:
        """Return a text with the new paths and dotted names."""
        return self._any.sub(lambda each: self._new[each[0]], text)

    def found(self, text: str) -> list[str]:
        """Return the old names in a text."""
        return sorted(set(self._any.findall(text)))

    def imported(self, source: str) -> str:
        """Return Python with `from package import module` of a moved module kept under its old name."""
        lines = source.splitlines(keepends=True)
        for node in reversed(list(_imports(source))):
            rows = list(self._rows(node))
            if rows:
                indent = " " * node.col_offset
                lines[node.lineno - 1 : node.end_lineno] = [f"{indent}{row}\n" for row in rows]
        return "".join(lines)

    def _rows(self, node: ast.ImportFrom) -> Iterator[str]:
        places = {each: self._new.get(f"{node.module}.{each.name}") for each in node.names}
        if not any(places.values()):
            return
        for each, new in places.items():
            name = each.asname or each.name
            package, _, module = (new or f"{node.module}.{each.name}").rpartition(".")
            yield f"from {package} import {module}" + (f" as {name}" if name != module else "")


class Names:
    """What modules define, by old names that nothing else in the repository has."""

    def __init__(self, names: Iterable[Name]) -> None:
        self._new = {name.old: name.new for name in names}
        self._any = _any_of(self._new, before=r"(?<!\w)", after=r"(?!\w)")

    def renamed(self, text: str, path: Path) -> str:
        """Return a text with the new names; prose only has those that stand as code."""
        if not self._new:
            return text
        if path.suffix == ".md":
            return re.sub(r"`[^`\n]+`", lambda code: self._in_code(code[0]), text)
        return self._in_code(text)

    def found(self, text: str, path: Path) -> list[str]:
        """Return the old names in a text."""
        if not self._new:
            return []
        code = "\n".join(re.findall(r"`[^`\n]+`", text)) if path.suffix == ".md" else text
        return sorted(set(self._any.findall(code)))

    def _in_code(self, text: str) -> str:
        return self._any.sub(lambda each: self._new[each[0]], text)


def doubly_defined(sources: Mapping[str, str], names: Iterable[Name]) -> list[str]:
    """Return a line for each old name that more than one module defines, or its own does not."""
    defining: dict[str, set[str]] = {}
    for path, source in sources.items():
        for name in _defined(source):
            defining.setdefault(name, set()).add(path)
    return [
        f"{old}: defined in {', '.join(sorted(defining[old]))}"
        for module, old, _ in names
        if defining.get(old, set()) - {module}
    ]


def _defined(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg


def _imports(source: str) -> Iterator[ast.ImportFrom]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node


def _spellings(old: str, new: str) -> Iterator[tuple[str, str]]:
    """Yield how a module is written: dotted, as a path, and as a path within `service`.

    A package is its `__init__.py`, and is written as the folder.
    """
    suffix = "" if old.endswith(PACKAGE) else ".py"
    old, new = old.removesuffix(PACKAGE), new.removesuffix(PACKAGE)
    yield _dotted(old), _dotted(new)
    yield old + suffix, new + suffix
    within = old.removeprefix("service/")
    if within != old and "/" in within:
        yield within + suffix, new.removeprefix("service/") + suffix


def _dotted(path: str) -> str:
    return path.removeprefix(CLIENT).replace("/", ".")


def _any_of(names: Iterable[str], *, before: str, after: str) -> re.Pattern[str]:
    longest_first = sorted(names, key=len, reverse=True)
    return re.compile(f"{before}(?:{'|'.join(map(re.escape, longest_first)) or '(?!)'}){after}")


def main(arguments: list[str] | None = None, root: Path = ROOT) -> int:
    """Apply the table, or only check it; return 1 if something has an old name."""
    parser = argparse.ArgumentParser(prog="python -m tools.rename", description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing")
    options = parser.parse_args(arguments)
    table, tree = Table.read((root / TABLE).read_text(encoding="utf-8")), Tree(root)
    if not options.check:
        sources = {
            path.relative_to(root).as_posix(): path.read_text(encoding="utf-8")
            for path in tree.files()
            if path.suffix == ".py"
        }
        if twice := doubly_defined(sources, table.names):
            print("Names that stand for more than one thing:", *twice, sep="\n", file=sys.stderr)
            return 1
        tree.move(table.moves)
        print(f"{tree.rewrite(table)} files changed")
    leftovers = tree.leftovers(table)
    print(*leftovers, sep="\n", end="\n" if leftovers else "", file=sys.stderr)
    return int(bool(leftovers))


if __name__ == "__main__":
    sys.exit(main())
