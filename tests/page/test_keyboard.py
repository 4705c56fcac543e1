"""Everything on the page is reached and used with the keyboard alone, and one sees where one is."""

import httpx
import pytest
from playwright.sync_api import Page, expect

from tests.page.visiting import SAMPLE, Visit

STOPS_MAX = 90
"""More stops than any of these views has; whoever needs more is caught somewhere."""
STOP = """() => {
    const at = document.activeElement, style = getComputedStyle(at), box = at.getBoundingClientRect();
    const seen = box.bottom > 0 && box.right > 0 && box.top < innerHeight && box.left < innerWidth;
    const ring = style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) > 0;
    return [at.className === 'skip', seen && ring, at.outerHTML.slice(0, 80)];
}"""


def stops(page: Page) -> list[str]:
    """All elements that Tab leads to, from the first one round to it again; each shows that it has the focus."""
    page.locator(".skip").focus()
    found = []
    for _ in range(STOPS_MAX):
        page.keyboard.press("Tab")
        is_first, is_seen, html = page.evaluate(STOP)
        if is_first:
            return found
        if not html.startswith("<body"):
            assert is_seen, html
            found.append(html)
    pytest.fail(f"Tab does not lead round: {found[-5:]}")


def test_tab_leads_through_each_view_and_round(visit: Visit) -> None:
    for view in ("map", "waiting", "what-if", "health"):
        page = visit.open(view, SAMPLE)
        expect(page.locator("h1, .scroller, .tile").first).to_be_visible()
        found = stops(page)
        expect(
            page.locator("main :is(a, button, input, select, textarea, summary)").first
        ).to_be_attached()
        assert len(found) > 8, (view, found)


def test_a_waiting_pod_is_asked_about_and_repaired_by_keys(
    visit: Visit, client: httpx.Client
) -> None:
    page = visit.open("waiting", SAMPLE)
    page.keyboard.press("Tab")
    expect(page.locator(".skip")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
    link = page.get_by_role("link", name="lab/training-3")
    while not link.evaluate("each => each === document.activeElement"):
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text("lab/training-3")
    trial = page.locator(".repairs").get_by_role("link", name="Try it").first
    trial.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="1 pod would be placed")).to_be_visible()
