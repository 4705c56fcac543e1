"""The page can be used by everybody: by axe's rules, at each size, in light and dark, by every policy of the server."""

from collections.abc import Iterator

import httpx
import pytest
from playwright.sync_api import Browser, BrowserContext, expect

from tests.page.looking import ask_to_drain
from tests.page.visiting import SAMPLE, WAIT_MILLISECONDS, Visit, check
from tests.seeds import EXPLORING

VIEWS: dict[str, tuple[str, ...]] = {
    "map": (),
    "why": ("data", "db-3"),
    "waiting": (),
    "what-if": (),
    "events": (),
    "health": (),
}
READY = {
    "map": ".panel .legend",
    "why": ".repairs li",
    "waiting": "section.card",
    "what-if": "textarea",
    "events": ".timeline li",
    "health": ".uses",
}
SIZES = {"desk": (1280, 800), "phone": (390, 844)}


@pytest.fixture(
    params=[("phone", "dark")]
    + ([("desk", "light"), ("desk", "dark"), ("phone", "light")] if EXPLORING else []),
    ids="-".join,
)
def context(request: pytest.FixtureRequest, browser: Browser) -> Iterator[BrowserContext]:
    """A browser of one size and colour scheme; axe is a script of ours, which the page's policy would stop."""
    size, scheme = request.param
    width, height = SIZES[size]
    context = browser.new_context(
        viewport={"width": width, "height": height}, color_scheme=scheme, bypass_csp=True
    )
    context.set_default_timeout(WAIT_MILLISECONDS)
    yield context
    context.close()


def test_every_view_follows_the_rules_of_axe_and_fits(visit: Visit) -> None:
    for view, rest in VIEWS.items():
        page = visit.open(view, SAMPLE, *rest)
        expect(page.locator(READY[view]).first).to_be_visible()
        check(page, view)


@pytest.mark.exploration
def test_what_is_opened_in_a_view_follows_the_rules_of_axe_and_fits(visit: Visit) -> None:
    page = visit.open("why", SAMPLE, "data", "db-3", refusal="InterPodAffinity@node-a1")
    expect(page.locator(".culprit").first).to_be_visible()
    check(page, "why with culprits")
    page = visit.open_map(SAMPLE, select="workload:shop/App/web")
    expect(page.locator(".spread").nth(1)).to_be_visible()
    check(page, "workload")
    page = visit.open("events", SAMPLE, revision="24")
    expect(page.locator(".past .legend")).to_be_visible()
    check(page, "the map as of a revision")
    page = visit.open("what-if", SAMPLE)
    page.get_by_role("button", name="Try it").click()
    expect(page.locator(".matrix")).to_be_visible()
    check(page, "what-if with an answer")
    page.get_by_role("button", name="Add the change").click()
    page.get_by_role("button", name="Plan it").click()
    expect(page.locator(".plan .verdict")).to_be_visible()
    check(page, "what-if with a plan")
    page.get_by_role("button", name="Leave out").click()
    ask_to_drain(page)
    expect(page.get_by_role("dialog")).to_be_visible()
    check(page, "what-if with the question before a drain")
    page.keyboard.press("Escape")
    page = visit.open("health", SAMPLE)
    page.get_by_text("All limits as they are set").click()
    check(page, "health with all limits")


def test_only_the_packages_own_files_may_run(client: httpx.Client) -> None:
    answer = client.get("/")
    policy = answer.headers["content-security-policy"].split("; ")
    assert "default-src 'none'" in policy
    assert "script-src 'self'" in policy
    assert "style-src 'self'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in answer.headers["content-security-policy"]
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert "<style" not in answer.text
    assert "style=" not in answer.text
