"""Pages are wrapped, so that a terminal shows them whole, and their links lead to sections."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.paths import ROOT
from tools.conformance.comparison import render_report

PAGES = [
    *(ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")),
    ROOT / "bench" / "RESULTS.md",
    ROOT / "examples" / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]
COLUMNS_MAX = 100
FENCE = re.compile(r"\s*```")
TABLE_OR_HTML = re.compile(r"\s*[|<]")
UNBREAKABLE = re.compile(r"`[^`]*`|\]\([^)]*\)")
"""Code and the target of a link, whose white space is no place to break a line at."""
LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)#([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
MODULE = re.compile(r"`([\w/]+\.py)(?:::[^`]*)?`")
"""A file of the project, as pages name it: by its path from the root, or by the end of it."""
MARKER = re.compile(r"\s*([-*+]|\d+\.)?\s*")


def wide_lines(page: str) -> list[str]:
    """The lines of prose that are too wide and have a place to break them at."""
    return [line for line in _prose(page) if len(line) > COLUMNS_MAX and _can_be_broken(line)]


def _prose(page: str) -> Iterator[str]:
    """The lines of a page that are neither in a block of code nor of a table or HTML."""
    in_code = False
    for line in page.splitlines():
        if FENCE.match(line):
            in_code = not in_code
        elif not in_code and not TABLE_OR_HTML.match(line):
            yield line


def _can_be_broken(line: str) -> bool:
    text = UNBREAKABLE.sub("x", line[MARKER.match(line).end() :])
    return " " in text.strip()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_to_sections_lead_to_one(page):
    links = LINK.findall(page.read_text(encoding="utf-8"))
    told = {(page.parent / other if other else page, section) for other, section in links}
    assert {section for other, section in told if section not in _sections(other)} == set()


def _sections(page: Path) -> set[str]:
    """The names by which links lead to the sections of a page, as GitHub makes them."""
    headings = HEADING.findall(page.read_text(encoding="utf-8"))
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.fixture(scope="module")
def modules():
    folders = ("clients/python", "service", "migrations", "tests", "tools", "bench", "examples")
    paths = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    return ["/" + str(path.relative_to(ROOT)) for path in [*paths, *ROOT.glob("*.py")]]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_files_that_a_page_names_are_there(page, modules):
    named = set(MODULE.findall(page.read_text(encoding="utf-8")))

    missing = {name for name in named if not any(path.endswith(f"/{name}") for path in modules)}
    assert missing == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_prose_is_wrapped(page):
    assert wide_lines(page.read_text(encoding="utf-8")) == []


def test_the_page_that_the_conformance_check_writes_is_wrapped():
    files = [f"vectors_of_group_{number}.jsonl.gz" for number in range(10)]
    origin = "They were compared at 1234abcd on 2026-12-31."
    assert wide_lines(render_report({}, files, {"daemonNamespaces: []": 60}, origin)) == []


WORDS = "word " * 19 + "words"
LONG = "a" * COLUMNS_MAX


@pytest.mark.parametrize(
    "line",
    [
        f"{WORDS}!",
        f"- {WORDS}",
        f"  {WORDS}",
        f"# {WORDS}",
        f"see `{LONG}`",
        f"[see this]({LONG})",
        f"```\ncode\n```\n{WORDS}!",
    ],
)
def test_a_line_that_could_be_wrapped_is_found(line):
    assert wide_lines(f"{line}\n") == [line.splitlines()[-1]]


@pytest.mark.parametrize(
    "page",
    [
        WORDS,
        f"```\n{WORDS}!\n```",
        f"- item\n  ```sh\n  {WORDS}\n  ```",
        f"| {WORDS} |",
        f"<!-- {WORDS} -->",
        f"- `{LONG} {LONG}`",
        f"1. [this]({LONG})",
        f"https://{LONG}",
    ],
)
def test_a_line_that_has_no_place_to_break_it_is_left_alone(page):
    assert wide_lines(page) == []
