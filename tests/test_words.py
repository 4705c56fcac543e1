"""Names of files and classes are made of words that are explained, or that need no explanation."""

import ast
import re
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

from tests.paths import ROOT

PACKAGES = (ROOT / "service", ROOT / "moorage")
WRITTEN_FROM_OTHERS = {"_compiled", "synchronous", "types.py"}
PAGE = ROOT / "docs" / "architecture.md"
PLAIN = ROOT / "tests" / "plain_words.txt"

SHORT = 3
"""So short a word is no plural."""
ENDINGS_IN_ES = [(ending + "es", ending) for ending in ("ss", "sh", "ch", "x", "o")]

_IN_CLASS = re.compile(r"[A-Z][a-z0-9]+|[A-Z]+(?![a-z])")


def modules() -> list[Path]:
    """All modules by their paths in the project, but what was made of others."""
    found = (each.relative_to(ROOT) for package in PACKAGES for each in package.rglob("*.py"))
    return sorted(each for each in found if each.parts[1] not in WRITTEN_FROM_OTHERS)


def words_of_paths(paths):
    return {word for path in paths for part in path.with_suffix("").parts for word in words(part)}


def words_of_classes(source):
    classes = (each for each in ast.walk(ast.parse(source)) if isinstance(each, ast.ClassDef))
    public = (each.name for each in classes if not each.name.startswith("_"))
    return {word.lower() for name in public for word in _IN_CLASS.findall(name)}


def words(name):
    return [] if name.startswith("__") else [word for word in name.split("_") if word]


@cache
def used():
    sources = ((ROOT / path).read_text(encoding="utf-8") for path in modules())
    within = (path.relative_to(path.parts[0]) for path in modules())
    return words_of_paths(within).union(*(words_of_classes(source) for source in sources))


def explained():
    """The words of the first column of the table of words."""
    table = PAGE.read_text(encoding="utf-8").partition("\n## Words\n")[2]
    rows = re.findall(r"^\| ([a-z ]+) \|", table, re.MULTILINE)
    return {word for row in rows for word in row.split()}


def plain():
    return set(PLAIN.read_text(encoding="utf-8").split())


def singular(word):
    if len(word) <= SHORT or word.endswith(("ss", "us", "is", "postgres")):
        return word
    for ending, instead in (("ies", "y"), *ENDINGS_IN_ES, ("s", "")):
        if word.endswith(ending):
            return word.removesuffix(ending) + instead
    return word


def singulars(found):
    return {singular(word) for word in found}


def test_a_word_of_a_name_is_explained_or_needs_no_explanation():
    unknown = singulars(used()) - singulars(explained()) - singulars(plain())

    assert sorted(unknown) == [], "explain them in docs/architecture.md, or find the field's term"


def test_what_needs_no_explanation_is_in_use_and_not_explained():
    assert sorted(plain() - singulars(used())) == []
    assert sorted(plain() & singulars(explained())) == []


def test_each_word_is_explained_once():
    table = PAGE.read_text(encoding="utf-8").partition("\n## Words\n")[2]
    rows = re.findall(r"^\| ([a-z ]+) \|", table, re.MULTILINE)

    assert rows[0] == "word"
    assert rows[1:] == sorted(set(rows[1:]))


DECIDING = (ROOT / "service" / "engine", ROOT / "service" / "scheduler")
"""Who reads of a decision reads of both, so that a name means one class in them."""


def test_a_public_class_of_scheduler_and_engine_has_a_name_of_its_own():
    defined = defaultdict(list)
    for path in (each for package in DECIDING for each in sorted(package.rglob("*.py"))):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                defined[node.name].append(path.relative_to(ROOT).as_posix())

    assert {name: paths for name, paths in defined.items() if len(paths) > 1} == {}


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("class EquivalenceClass: ...", {"equivalence", "class"}),
        ("class OIDCToken: ...", {"oidc", "token"}),
        ("class _Private: ...", set()),
        ("def function(): ...", set()),
    ],
)
def test_a_class_is_taken_apart_at_its_capitals(source, found):
    assert words_of_classes(source) == found


def test_a_path_is_taken_apart_at_its_underscores():
    assert words_of_paths([Path("ranking/best_node_tree.py"), Path("__init__.py")]) == {
        "ranking",
        "best",
        "node",
        "tree",
    }
