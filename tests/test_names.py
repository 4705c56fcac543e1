"""Names are handles: a module has one or two words, a class is a noun, and no value is called `each`.

`docs/decisions/rooms.md` has the reasons.
"""

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.paths import CLIENT, ROOT
from tests.test_imports import file_of

PACKAGES = (ROOT / "service", CLIENT / "moorage")
WRITTEN_FROM_OTHERS = {"_compiled", "synchronous"}
DECIDING = (ROOT / "service" / "engine", ROOT / "service" / "scheduler")
"""Who reads of a decision reads of both, so that a name means one class in them."""
GLOSSARY = ROOT / "docs" / "architecture.md"

WORDS_MAX = 2
LONGER = {
    "inter_pod_affinity": "Kubernetes' name of the plugin",
    "node_declared_features": "Kubernetes' name of the plugin",
    "node_resources_fit": "Kubernetes' name of the plugin",
    "node_volume_limits": "Kubernetes' name of the plugin",
    "pod_topology_spread": "Kubernetes' name of the plugin",
    "server_side_apply": "Kubernetes' name of the operation",
}
"""Modules with names of three words, and why."""
NOUNS = (
    "Binding",
    "Finding",
    "Missing",
    "Pending",
    "Ping",
    "Scheduling",
    "Violating",
    "Warning",
)
"""Endings of class names that are nouns or adjectives, though they look like verbs."""
NO_VALUES = ("each", "told", "found")
"""They say nothing of what they are: a value is named by its noun."""


def modules() -> Iterator[Path]:
    for package in PACKAGES:
        for path in sorted(package.rglob("*.py")):
            if is_ours(path):
                yield path


def is_ours(path: Path) -> bool:
    return not WRITTEN_FROM_OTHERS.intersection(path.parts)


def named(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def words(name: str) -> list[str]:
    return [] if name.startswith("__") else [word for word in name.split("_") if word]


def long_modules() -> set[str]:
    return {
        named(path)
        for path in modules()
        if len(words(path.stem)) > WORDS_MAX and path.stem not in LONGER
    }


def classes_that_are_no_nouns() -> set[str]:
    return {
        f"{named(path)}: {node.name}"
        for path in modules()
        for node in tree_of(path).body
        if isinstance(node, ast.ClassDef)
        and not node.name.startswith("_")
        and node.name.endswith("ing")
        and not node.name.endswith(NOUNS)
    }


def modules_of_one_name() -> set[str]:
    """Return the modules of which one file imports two with the same name."""
    found = set()
    for path in modules():
        by_name = defaultdict(set)
        for module in imported(tree_of(path)):
            by_name[module.stem].add(named(module))
        found |= {" and ".join(sorted(same)) for same in by_name.values() if len(same) > 1}
    return found


def imported(tree: ast.Module) -> Iterator[Path]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                file = file_of(f"{node.module}.{alias.name}") or file_of(node.module)
                if file is not None and file.stem != "__init__" and is_ours(file):
                    yield file


def values_without_a_noun() -> Counter[str]:
    counts = Counter[str]()
    for path in modules():
        for node in ast.walk(tree_of(path)):
            name = node.id if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) else ""
            name = node.arg if isinstance(node, ast.arg) else name
            if name in NO_VALUES:
                counts[name] += 1
    return counts


LAWS = {
    "modules": long_modules,
    "classes": classes_that_are_no_nouns,
    "same_names": modules_of_one_name,
}


@pytest.mark.parametrize("law", LAWS)
def test_a_law_of_names_has_no_offender(law: str) -> None:
    assert LAWS[law]() == set()


def test_every_value_has_a_noun_for_a_name() -> None:
    assert values_without_a_noun() == Counter()


def test_a_longer_name_that_is_allowed_is_in_use() -> None:
    assert LONGER.keys() <= {path.stem for path in modules()}


def test_each_word_is_explained_once() -> None:
    table = GLOSSARY.read_text(encoding="utf-8").partition("\n## Words\n")[2]
    rows = re.findall(r"^\| ([a-z ]+) \|", table, re.MULTILINE)

    assert rows[0] == "word"
    assert rows[1:] == sorted(set(rows[1:]))


def test_a_public_class_of_scheduler_and_engine_has_a_name_of_its_own() -> None:
    defined = defaultdict(list)
    for path in (path for package in DECIDING for path in sorted(package.rglob("*.py"))):
        for node in tree_of(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                defined[node.name].append(named(path))

    assert {name: paths for name, paths in defined.items() if len(paths) > 1} == {}
