"""Names are handles: a module has one or two words, a class is a noun, and no value is called `each`.

`tests/name_offenders.toml` lists what broke these laws when they were made. It can only get shorter:
a new offender fails here, and so does an entry that offends no more. `docs/decisions/rooms.md` has
the reasons.
"""

import ast
import re
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.paths import CLIENT, ROOT
from tests.test_imports import file_of

PACKAGES = (ROOT / "service", CLIENT / "moorage")
WRITTEN_FROM_OTHERS = {"_compiled", "synchronous"}
DECIDING = (ROOT / "service" / "engine", ROOT / "service" / "scheduler")
"""Who reads of a decision reads of both, so that a name means one class in them."""
GLOSSARY = ROOT / "docs" / "architecture.md"
OFFENDERS = ROOT / "tests" / "name_offenders.toml"

WORDS_MAX = 2
LONGER = {
    "inter_pod_affinity": "Kubernetes' name of the plugin",
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
SLACK = 50
"""By how much fewer such values there may be than the file says, before it has to be corrected."""


@cache
def offenders() -> dict[str, Any]:
    return tomllib.loads(OFFENDERS.read_text(encoding="utf-8"))


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
    counts = Counter(dict.fromkeys(NO_VALUES, 0))
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
def test_a_law_of_names_has_no_new_offender_and_none_that_offends_no_more(law: str) -> None:
    assert LAWS[law]() == set(offenders()[law]), f"correct [{law}] if there are fewer"


def test_ever_fewer_values_have_no_noun_for_a_name() -> None:
    counts, most = values_without_a_noun(), offenders()["values"]

    assert counts.keys() == most.keys() == set(NO_VALUES)
    assert {name: counts[name] for name in most if counts[name] > most[name]} == {}
    assert {name: counts[name] for name in most if counts[name] < most[name] - SLACK} == {}


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


def write_offenders() -> None:
    """Write the file anew; the laws then see who is new in it: `git diff`."""
    lines = ["# What breaks a law of `test_names.py`; these lists only get shorter.", ""]
    for law, breaking in LAWS.items():
        lines += [f"{law} = [", *(f'    "{name}",' for name in sorted(breaking())), "]", ""]
    counts = values_without_a_noun()
    lines += ["[values]", *(f"{name} = {counts[name]}" for name in NO_VALUES)]
    OFFENDERS.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write_offenders()
