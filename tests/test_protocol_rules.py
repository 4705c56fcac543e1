"""`docs/reliability.md` names tests for every rule of the commit protocol, and they are there."""

import re

import pytest

from tests.paths import ROOT
from tests.test_requirements import docstrings

PAGE = ROOT / "docs" / "reliability.md"
RULES = [f"P{number}" for number in range(1, 21)]
ROW = re.compile(r"^\| (P\d+) \| (.+?) \| (.+) \|$", re.MULTILINE)
TEST = re.compile(r"`(tests/\S+\.py)::(test_\w+)`")


def rows() -> dict[str, list[tuple[str, str]]]:
    page = PAGE.read_text(encoding="utf-8")
    section = page.partition("## The rules and their tests\n")[2].partition("\n## ")[0]
    return {rule: TEST.findall(tests) for rule, _, tests in ROW.findall(section)}


def test_every_rule_is_on_the_page_in_order():
    assert list(rows()) == RULES


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_has_tests_that_name_it(rule):
    tests = rows()[rule]
    assert tests
    for path, name in tests:
        told = docstrings(path)[name]
        assert f"_{rule.lower()}_" in name or re.search(rf"\b{rule}\b", told), f"{path}::{name}"
