"""The documentation site: what becomes of pages on their way to it, and that its links are followed."""

import re
import tomllib

import pytest

from tools.docs_site import (
    CONFIGURATION,
    DOCS,
    ROOT,
    leads,
    pages,
    places,
    prepared,
    section,
    tabbed,
    write_texts,
)
from tools.site_links import broken_links

KNOWN = {
    "docs/here.md": "here.md",
    "docs/decisions/README.md": "decisions/README.md",
    "bench/RESULTS.md": "results.md",
    "docs/map.png": "map.png",
}


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("[there](decisions/README.md)", "[there](decisions/README.md)"),
        ("[there](decisions/)", "[there](decisions/README.md)"),
        ("[figures](../bench/RESULTS.md#the-page)", "[figures](results.md#the-page)"),
        ("![The map](map.png)", "![The map](map.png)"),
        ("[`code`](../service/app.py) of it", "`code` of it"),
        ("[a\nfolder](../service/api)", "a\nfolder"),
        ("[gone](nothing.md)", "[gone](nothing.md)"),
        ("[below](#below)", "[below](#below)"),
        ("[web](https://example.com/a.md)", "[web](https://example.com/a.md)"),
        ("```\n[code](../service/app.py)\n```", "```\n[code](../service/app.py)\n```"),
        ("<!-- begin -->\n| a |", "\n\n| a |"),
    ],
)
def test_links_lead_to_the_places_of_the_site_and_to_nothing_else(written, shown):
    assert prepared(written, "docs/here.md", "here.md", KNOWN) == shown


@pytest.mark.parametrize("source", [place for place in places() if place.endswith(".md")])
def test_what_a_page_leads_to_is_in_the_repository(source):
    """Links out of the documentation become text in the site, so nobody follows them there."""
    page = ROOT / source
    led = set(leads(page.read_text("utf-8")))

    assert {target for target in led if not (page.parent / target).exists()} == set()


def test_a_page_from_elsewhere_links_from_its_new_place():
    written = "[here](../docs/here.md) and [decisions](../docs/decisions/)"
    shown = prepared(written, "bench/RESULTS.md", "project/results.md", KNOWN)

    assert shown == "[here](../here.md) and [decisions](../decisions/README.md)"


def test_labelled_blocks_of_code_that_follow_each_other_become_tabs():
    page = (
        "Ask:\n\n**HTTP**\n\n```sh\ncurl\n\nls\n```\n\n**Python**\n\n```python\nask()\n```\n\nSo.\n"
    )

    assert tabbed(page) == (
        'Ask:\n\n=== "HTTP"\n\n    ```sh\n    curl\n\n    ls\n    ```\n\n'
        '=== "Python"\n\n    ```python\n    ask()\n    ```\n\nSo.\n'
    )


def test_a_block_of_code_without_a_label_and_a_label_without_code_stay():
    page = "**Beware**\n\nof this:\n\n```sh\nls\n```\n"

    assert tabbed(page) == page


def test_a_section_becomes_a_page():
    page = "# All\n\n## One\n\nfirst\n\n### Part\n\n## Two\n\nsecond\n"

    assert section(page, "## One") == "# One\n\nfirst\n\n### Part\n\n"
    with pytest.raises(ValueError, match="Three"):
        section(page, "## Three")


def test_every_page_has_one_place_and_the_navigation_names_no_other():
    named = re.findall(r'"([^"]+\.md)"', (DOCS / CONFIGURATION).read_text("utf-8"))
    own = [place for place, _ in pages()]

    assert len(own) == len(set(own))
    assert len(named) == len(set(named))
    assert set(named) <= set(own)
    assert {place for place in own if not place.startswith(("decisions/", "api/"))} <= set(named)


def test_every_picture_is_shown_by_a_page():
    shown = {name for _, text in pages() for name in re.findall(r"\[[^\]]*\]\(([^)]+)\)", text)}
    pictures = {place for place in places().values() if place.endswith((".png", ".svg"))}
    settings = tomllib.loads((DOCS / CONFIGURATION).read_text("utf-8"))["project"]["theme"]

    used = {name.rsplit("/", 1)[-1] for name in shown} | {settings["logo"].rsplit("/", 1)[-1]}
    assert {place.rsplit("/", 1)[-1] for place in pictures} <= used


def test_language_models_find_the_text_of_every_page(tmp_path):
    write_texts(tmp_path)
    lines = (tmp_path / "llms.txt").read_text("utf-8").splitlines()
    listed = [re.match(r"- \[[^\]]+\]\(([^)]+)\): \S", line) for line in lines]
    places = [line[1] for line in listed if line]

    assert sorted(places) == sorted(place for place, _ in pages())
    assert all((tmp_path / place).read_text("utf-8").startswith("# ") for place in places)


@pytest.fixture
def site(tmp_path):
    """A site of two pages without a mistake."""
    (tmp_path / "deep").mkdir()
    (tmp_path / "style.css").write_text("")
    (tmp_path / "index.html").write_text(
        "<link rel=stylesheet href=style.css><a href='deep/page.html#part'>more</a>"
        "<a href='https://example.com'>elsewhere</a>"
    )
    (tmp_path / "deep" / "page.html").write_text("<h2 id=part>Part</h2><a href=../index.html></a>")
    return tmp_path


def test_a_site_whose_links_are_right_has_nothing_wrong(site):
    assert broken_links(site) == []


@pytest.mark.parametrize(
    ("added", "wrong"),
    [
        ("<a href=gone.html>", "deep/page.html: gone.html leads to no file"),
        ("<a href=../index.html#gone>", "deep/page.html: ../index.html#gone leads to no section"),
        ("<a href='#gone'>", "deep/page.html: #gone leads to no section"),
        ("<a href=..>", "deep/page.html: .. leads to no file"),
        ("<img src=gone.png>", "deep/page.html: gone.png leads to no file"),
        (
            "<script src=https://example.com/a.js>",
            "deep/page.html: https://example.com/a.js is loaded from elsewhere",
        ),
        (
            "<link rel=stylesheet href=//example.com/a.css>",
            "deep/page.html: //example.com/a.css is loaded from elsewhere",
        ),
    ],
)
def test_a_link_that_leads_nowhere_is_found(site, added, wrong):
    page = site / "deep" / "page.html"
    page.write_text(page.read_text() + added)

    assert broken_links(site) == [wrong]


def test_a_page_that_nobody_finds_is_found(site):
    (site / "lonely.html").write_text("")

    assert broken_links(site) == ["lonely.html: no page leads here"]
