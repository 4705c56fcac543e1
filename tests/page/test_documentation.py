"""The documentation as a browser shows it, from the server: it loads nothing from elsewhere and can be searched."""

import re

import pytest
from playwright.sync_api import Browser, expect

from service.api.handlers.documentation import FOLDER, START
from tests.page.visiting import Visit, check

PAGES = ("index.html", "api-guide.html")


@pytest.fixture(autouse=True)
def built() -> None:
    if not (FOLDER / START).exists():
        pytest.skip("documentation: `make docs` has not built it")


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
    visit.page.keyboard.type("first pod of a service")
    visit.page.get_by_role("option", name=re.compile("The first pod of a service")).first.click()
    expect(visit.page).to_have_url(re.compile("/docs/semantics.html.*#the-first-pod-of-a-service"))


@pytest.mark.parametrize("size", [(1280, 800), (390, 844)], ids=["desk", "phone"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_its_pages_follow_the_rules_of_axe_and_fit(
    browser: Browser, server: str, size: tuple[int, int], scheme: str
) -> None:
    """Axe is a script of ours, which the policy of the pages would stop."""
    page = browser.new_page(
        viewport={"width": size[0], "height": size[1]}, color_scheme=scheme, bypass_csp=True
    )
    for name in PAGES:
        page.goto(f"{server}/docs/{name}")
        colours = "slate" if scheme == "dark" else "default"
        expect(page.locator("body")).to_have_attribute("data-md-color-scheme", colours)
        check(page, name)
    page.close()
