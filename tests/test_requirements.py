"""`docs/requirements.md` has every row of the requirements, and its claims are true."""

import ast
import re
from collections import Counter
from functools import cache
from typing import NamedTuple

import pytest

from tests.paths import ROOT

PAGE = ROOT / "docs" / "requirements.md"
ROWS = {
    "A": 18, "B": 5, "C": 3, "D": 10, "E": 9, "F": 11, "G": 9, "H": 18, "I": 4,
    "J": 10, "K": 13, "L": 4, "M": 11, "N": 8, "O": 8, "P": 5, "Q": 4, "R": 9,
}  # fmt: skip
"""How many rows each group of the requirements has; they are numbered from 01."""
IDS = [f"{group}{number:02}" for group, count in ROWS.items() for number in range(1, count + 1)]
ROW = re.compile(
    r"^- \*\*(?P<id>[A-Z]\d\d)\*\* (?P<holds>\w+):\n(?P<rest>(?:  .*\n)*)", re.MULTILINE
)
TEST = re.compile(r"^  `(?P<path>tests/\S+\.py)::(?P<name>test_\w+)`$", re.MULTILINE)
REASON = re.compile(r"^  \*Why:\* \S", re.MULTILINE)


class Row(NamedTuple):
    id: str
    holds: str
    tests: list[tuple[str, str]]
    has_reason: bool
    meaning: str
    """`by setting` if the document's meaning is a setting, `as Kubernetes` if it does not apply."""


def rows() -> list[Row]:
    page = PAGE.read_text(encoding="utf-8")
    return [
        Row(
            row["id"],
            row["holds"],
            TEST.findall(row["rest"]),
            bool(REASON.search(row["rest"])),
            _meaning(row["rest"]),
        )
        for row in ROW.finditer(page)
    ]


def _meaning(text: str) -> str:
    if "Kubernetes' meaning applies, without a setting" in text:
        return "as Kubernetes"
    return "by setting" if "or, by setting," in text else ""


def test_the_rows_in_which_documents_and_kubernetes_differ_are_named():
    page = PAGE.read_text(encoding="utf-8").replace("\n", " ")
    for column in ("by setting", "as Kubernetes"):
        [named] = re.findall(rf"column \*{column}\*: ([^)]+)\)", page)
        assert named.split(", ") == [row.id for row in rows() if row.meaning == column]


@cache
def docstrings(path: str) -> dict[str, str]:
    """Name to docstring of the test functions of a file."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return {
        function.name: ast.get_docstring(function) or ""
        for function in tree.body
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
    }


def test_every_row_is_on_the_page_once_and_in_order():
    """Q03: nothing that the documents ask for is left out."""
    assert len(IDS) == 159
    assert [row.id for row in rows()] == IDS


@pytest.mark.parametrize("row", rows(), ids=lambda row: row.id)
def test_a_row_is_proved_or_says_why_not(row):
    """Q03: whatever holds has a test, and the test names the row."""
    assert row.holds in {"yes", "partly", "open"}
    assert bool(row.tests) == (row.holds != "open")
    assert row.has_reason == (row.holds != "yes")
    for path, name in row.tests:
        assert row.id in docstrings(path)[name], f"{path}::{name} does not name {row.id}"


def test_the_table_adds_up():
    page = PAGE.read_text(encoding="utf-8")
    lines = re.findall(r"^\| (\w+)\S* .*?" + r"\| (\d+) " * 5 + r"\|$", page, re.MULTILINE)
    told = {group: tuple(map(int, counts)) for group, *counts in lines}
    counted = Counter((row.id[0], row.holds) for row in rows())
    counted.update((row.id[0], row.meaning) for row in rows())
    columns = ("yes", "partly", "open", "by setting", "as Kubernetes")
    expected = {group: tuple(counted[group, each] for each in columns) for group in ROWS}
    assert told == expected | {"all": tuple(map(sum, zip(*expected.values(), strict=True)))}
