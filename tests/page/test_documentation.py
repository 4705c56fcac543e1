"""The documentation as a browser shows it, from the server: it loads nothing from elsewhere and can be searched."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from service.api.resources.server.docs import FOLDER, START
from tests.page.visiting import Visit, check


@pytest.fixture(autouse=True)
def built() -> None:
    if not (FOLDER / START).exists():
        pytest.skip("documentation: `make docs` has not built it")
    concepts = FOLDER / "concepts.html"
    if not concepts.exists() or "from moorage import Client" not in _text(concepts):
        pytest.fail("The documentation that is built is not that of docs/: make docs")


def _text(page: Path) -> str:
    """What a page says, without its markup: each word of code has an element of its own."""
    return re.sub("<[^>]+>", "", page.read_text())


def test_docs_leads_to_the_first_page_and_on(visit: Visit) -> None:
    visit.page.goto(f"{visit.server}/docs")
    expect(visit.page).to_have_title("Overview - Moorage")
    visit.page.locator("article").get_by_role("link", name="The API guide").click()
    expect(visit.page.get_by_role("heading", level=1)).to_contain_text("API guide")
    visit.page.get_by_role("navigation", name="Header").get_by_title("Moorage").first.click()
    expect(visit.page).to_have_url(re.compile("/docs/index.html$"))


def test_the_search_finds_a_page_and_opens_it(visit: Visit) -> None:
    visit.page.goto(f"{visit.server}/docs/{START}")
    visit.page.get_by_role("button", name="Search").first.click()
    visit.page.get_by_role("combobox", name="Search").fill("first pod of a service")
    visit.page.get_by_role("option", name=re.compile("The first pod of a service")).first.click()
    expect(visit.page).to_have_url(re.compile("/docs/semantics.html.*#the-first-pod-of-a-service"))


def test_one_tab_chosen_shows_its_code_everywhere_on_the_page(visit: Visit) -> None:
    visit.page.goto(f"{visit.server}/docs/concepts.html")
    code = visit.page.get_by_text("from moorage import Client")
    expect(code.last).not_to_be_visible()
    visit.page.locator("article").get_by_text("Python", exact=True).first.click()
    expect(code.last).to_be_visible()


@pytest.mark.parametrize(
    ("scheme", "size"),
    [
        pytest.param("light", (1280, 800), id="desk", marks=pytest.mark.exploration),
        pytest.param("dark", (390, 844), id="phone"),
    ],
)
def test_a_page_follows_the_rules_of_axe_and_fits(
    browser: Browser, server: str, size: tuple[int, int], scheme: str
) -> None:
    """Axe is a script of ours, which the policy of the pages would stop."""
    page = browser.new_page(
        viewport={"width": size[0], "height": size[1]}, color_scheme=scheme, bypass_csp=True
    )
    page.goto(f"{server}/docs/concepts.html")
    colours = "slate" if scheme == "dark" else "default"
    expect(page.locator("body")).to_have_attribute("data-md-color-scheme", colours)
    check(page, "concepts.html")
    page.close()
