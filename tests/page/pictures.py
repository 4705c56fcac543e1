"""Takes the pictures of the page that the documents show: `python -m tests.page.pictures`.

They are of the sample cluster, of the cut of a real one that the tests use, and of what pages of the
documents make. The server is one of its own, and the folder of the pictures is `docs`.
"""

import sys
from collections.abc import Callable
from pathlib import Path

import httpx
from playwright.sync_api import Browser, Page, expect, sync_playwright

from service.server.local_server import LocalServer, temporary_folder
from tests.examples.following import TUTORIAL, blocks, equip, follow
from tests.page.conftest import CHROMIUM, OPTIONS, load_real, load_sample
from tests.page.visiting import REAL, SAMPLE, Visit
from tests.paths import ROOT
from tests.processes import PLAIN_HTTP

DOCS = ROOT / "docs"
CARD = "alibabacloud.com/gpu-card-model"
WIDE = {"width": 1280, "height": 720}
ZONE_LOST = DOCS / "how-to" / "release-while-a-zone-is-lost.md"
REBALANCE = DOCS / "how-to" / "rebalance.md"
MOMENTS = {"release-begun": 2, "release-waiting": 3, "release-ended": 5}
"""After how many blocks of that page its pictures are taken; so are clusters called, and pictures."""
LOW = {"width": 1280, "height": 440}
PHONE = {"width": 390, "height": 720}


def main() -> None:
    if CHROMIUM is None:
        sys.exit("There is no Chromium: make browser")
    with temporary_folder() as folder, LocalServer(folder / "data", quiet=True) as server:
        with httpx.Client(base_url=server.url, **PLAIN_HTTP) as client:
            load_sample(client)
            load_real(client)
        # Up to where each page looks at the map.
        make(TUTORIAL, -1, server.url, folder / "tutorial")
        for name, count in MOMENTS.items():
            make(ZONE_LOST, count, server.url, folder / name, cluster=name)
        make(
            REBALANCE, 3, server.url, folder / "rebalance"
        )  # the plan is kept, nobody has followed
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(OPTIONS))
            take_all(browser, server.url)
            browser.close()


def make(page: Path, count: int, server: str, checkout: Path, cluster: str | None = None) -> None:
    """Do what the first blocks of a page say, in the page's cluster or another one."""
    checkout.mkdir()
    equip(checkout)
    commands = blocks(page)[:count]
    if cluster:
        commands = [each.replace("zones\n", f"{cluster}\n") for each in commands]
        commands = [each.replace("clusters/zones", f"clusters/{cluster}") for each in commands]
    ended = follow(commands, server, checkout)
    assert ended.returncode == 0, ended.stderr


def take_all(browser: Browser, server: str) -> None:
    take(browser, server, "page-map", "map", SAMPLE, parameters={"colour": "owner"})
    take(browser, server, "page-why", "why", SAMPLE, "shop", "web-0", ready=".matrix .chosen")
    take(browser, server, "page-repairs", "why", SAMPLE, "lab", "training-3", ready=".repairs li")
    take(browser, server, "page-health", "health", SAMPLE, ready=".uses", act=look_at_limits)
    take(browser, server, "page-real", "map", REAL, parameters={"key": CARD}, scheme="dark")
    selected = {"select": "workload:shop/App/web", "colour": "owner"}
    take(browser, server, "page-workload", "map", SAMPLE, parameters=selected, ready=".spread")
    take(browser, server, "page-waiting", "waiting", REAL, ready="section.card")
    past = {"revision": "26", "colour": "owner"}
    take(browser, server, "page-past", "events", SAMPLE, parameters=past, ready=".past .legend")
    mine = {"select": "workload:shop/StatefulSet/web", "colour": "owner"}
    take(browser, server, "tutorial", "map", "tutorial", parameters=mine, ready=".spread")
    take(browser, server, "page-plan", "what-if", SAMPLE, ready=".planned-map", act=plan_a_loss)
    asked = {"ready": "dialog.confirm", "act": ask_to_drain}
    take(browser, server, "page-drain", "what-if", SAMPLE, **asked)
    take_release(browser, server)
    take_moves(browser, server)
    take(browser, server, "page-phone", "map", SAMPLE, parameters={"colour": "owner"}, size=PHONE)


def take_release(browser: Browser, server: str) -> None:
    """Take the pictures of a release while a zone is lost, each of a cluster at its moment."""
    begun, waits, over = MOMENTS
    new = "workload:shop/ReplicaSet/web-ms42hffhm8"
    take(browser, server, begun, "map", begun, parameters={"colour": "owner"})
    take(browser, server, waits, "what-if", waits, ready=".kept .card", size=LOW, act=look_at_plans)
    take(browser, server, over, "map", over, parameters={"select": new}, ready=".spread")


def take_moves(browser: Browser, server: str) -> None:
    """Take the picture of a plan that moves pods."""
    moves = {"ready": ".kept .card", "size": LOW, "act": look_at_plans}
    take(browser, server, "rebalance-moves", "what-if", "balance", **moves)


def look_at_limits(page: Page) -> None:
    """Scroll to the limits, below the figures."""
    page.locator(".uses").evaluate("each => each.scrollIntoView({ block: 'end' })")


def plan_a_loss(page: Page) -> None:
    """Have the page plan the loss of the first zone, and scroll to what it says."""
    page.get_by_role("button", name="Add the change").click()
    page.get_by_role("button", name="Plan it").click()
    page.locator(".plan .verdict").evaluate("each => each.scrollIntoView()")


def ask_to_drain(page: Page) -> None:
    """Have the page plan the drain of a node, one of whose pods a budget holds back, and ask whether to begin."""
    budget = {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "web"}}}
    origin = page.url.partition("#")[0]
    path = f"{origin}v1/clusters/{SAMPLE}/namespaces/shop/poddisruptionbudgets/web"
    body = {"metadata": {"name": "web"}, "spec": budget}
    httpx.put(path, json=body, **PLAIN_HTTP).raise_for_status()
    form = page.get_by_role("form", name="A change")
    form.get_by_label("What if we").select_option("Drain")
    form.get_by_label("nodes by").select_option("")
    form.locator('label:has(> span:text-is("node")) select').select_option("node-b1")
    form.get_by_role("button", name="Add the change").click()
    page.get_by_role("button", name="Plan it").click()
    ask = page.get_by_role("button", name="Drain node-b1…")
    ask.evaluate("each => each.scrollIntoView({ block: 'end' })")
    ask.click()
    httpx.delete(path, **PLAIN_HTTP).raise_for_status()


def look_at_plans(page: Page) -> None:
    """Scroll to the plans that are kept, at the end."""
    page.locator(".kept").evaluate("each => each.scrollIntoView({ block: 'end' })")


def take(
    browser: Browser,
    server: str,
    name: str,
    view: str,
    cluster: str,
    *rest: str,
    parameters: dict[str, str] | None = None,
    ready: str = ".panel .legend",
    scheme: str = "light",
    size: dict[str, int] = WIDE,
    act: Callable[[Page], None] | None = None,
) -> None:
    """Write one picture, once the view is drawn."""
    page = browser.new_page(viewport=size, color_scheme=scheme)
    Visit(page, server).open(view, cluster, *rest, **(parameters or {}))
    if act:
        act(page)
    expect(page.locator(ready).first).to_be_visible()
    drawn = (
        "() => new Promise(done => setTimeout(() => requestAnimationFrame(() => done(true)), 600))"
    )
    page.wait_for_function(drawn)
    page.screenshot(path=DOCS / f"{name}.png")
    page.close()


if __name__ == "__main__":
    main()
