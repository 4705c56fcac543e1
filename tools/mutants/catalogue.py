"""The list of mutants: what each changes, and which tests have to find it."""

import ast
import tomllib
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Literal

import msgspec

ROOT = Path(__file__).parents[2]
CLIENT = "clients/python"
"""The folder in which the client package is found."""
FOLDER = ROOT / "tests" / "mutants"

Layer = Literal[
    "api", "store", "sql", "connections", "supervisor",
    "scheduler", "engine", "model", "cli", "watch",
]  # fmt: skip
LAYERS: tuple[Layer, ...] = Layer.__args__  # type: ignore[attr-defined]


class Mutant(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A mistake that somebody could make in one file."""

    name: str
    title: str
    """A sentence that says what goes wrong."""
    layer: Layer
    file: str
    old: str
    """The text to replace, which must occur exactly once in the file."""
    new: str
    tests: tuple[str, ...]
    """Tests which must all fail with the mistake."""
    was: Literal["missed"] | None = None
    """`missed` if no test found the mistake when it was first planted."""

    @property
    def test_files(self) -> frozenset[str]:
        return frozenset(test.partition("::")[0] for test in self.tests)

    def mutated(self, source: str) -> str:
        """Return the source with the mistake in it.

        Raises:
            ValueError: the text to replace is not there, or is there more than once.
        """
        if source.count(self.old) != 1:
            raise ValueError(f"what is replaced stands {source.count(self.old)} times")
        return source.replace(self.old, self.new)


class _File(msgspec.Struct, forbid_unknown_fields=True):
    mutant: list[Mutant]


def read(folder: Path = FOLDER) -> list[Mutant]:
    """Read all mutants of all files, in their order.

    Raises:
        msgspec.ValidationError: an entry has the wrong fields or types.
    """
    found: list[Mutant] = []
    for path in sorted(folder.glob("*.toml")):
        content = tomllib.loads(path.read_text(encoding="utf-8"))
        found += msgspec.convert(content, _File).mutant
    return found


def chosen(
    mutants: Iterable[Mutant], patterns: Sequence[str] = (), layers: Sequence[str] = ()
) -> list[Mutant]:
    """Return the mutants with one of these names (wildcards are allowed) in one of these layers.

    An empty list of names or layers allows all.
    """
    return [
        each
        for each in mutants
        if (not layers or each.layer in layers)
        and (not patterns or any(fnmatchcase(each.name, pattern) for pattern in patterns))
    ]


def problems(mutants: Sequence[Mutant], root: Path = ROOT) -> list[str]:
    """Return what is wrong with the list itself: such entries could prove nothing."""
    names = [each.name for each in mutants]
    found = [
        f"{name}: the name is taken" for name in sorted({n for n in names if names.count(n) > 1})
    ]
    for each in mutants:
        found += _problems_of(each, root)
    return found


def _problems_of(mutant: Mutant, root: Path) -> list[str]:
    found = []
    try:
        source = (root / mutant.file).read_text(encoding="utf-8")
        changed = mutant.mutated(source)
        if changed == source:
            found.append(f"{mutant.name}: nothing is changed")
        if mutant.file.endswith(".py"):
            compile(changed, mutant.file, "exec", dont_inherit=True)
    except (OSError, ValueError, SyntaxError) as error:
        found.append(f"{mutant.name}: {error}")
    if not mutant.tests:
        found.append(f"{mutant.name}: it names no test")
    found += [f"{mutant.name}: no test {test}" for test in mutant.tests if not _exists(test, root)]
    return found


def _exists(test: str, root: Path) -> bool:
    path, _, name = test.partition("::")
    return name.partition("[")[0] in _tests_of(root / path)


@cache
def _tests_of(path: Path) -> frozenset[str]:
    """Return the names of a file's tests; those in classes are `Class::test`."""
    if not path.exists():
        return frozenset()
    return frozenset(_names(ast.parse(path.read_text(encoding="utf-8")).body))


def _names(body: Sequence[ast.stmt], prefix: str = "") -> Iterable[str]:
    for statement in body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            yield prefix + statement.name
        elif isinstance(statement, ast.ClassDef):
            yield from _names(statement.body, f"{prefix}{statement.name}::")
        elif isinstance(statement, ast.Assign):  # such as a state machine's `TestCase`
            yield from (
                prefix + each.id for each in statement.targets if isinstance(each, ast.Name)
            )
