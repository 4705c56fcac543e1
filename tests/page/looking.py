"""Pictures of the page that do not depend on the machine, compared with kept ones.

`python -m tests.page.looking` (`make looks`) writes the kept ones, and a test compares. Every letter is the
same block, from a font of our own, so that the fonts of the machine do not matter; the clock and
all times of the server stand still, and nothing moves.
"""

import base64
import io
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import httpx
from PIL import Image, ImageChops
from playwright.sync_api import Browser, Page, Route, expect, sync_playwright

from moorage.cli.input.sources import read_objects
from service.server.local_server import LocalServer, temporary_folder
from tests.page.conftest import CHROMIUM, OPTIONS
from tests.page.visiting import Visit
from tests.paths import ROOT
from tests.processes import PLAIN_HTTP
from tests.waiting import PATIENCE_SECONDS

KEPT = Path(__file__).parent / "looks"
DIFFERENT = ROOT / ".verdicts" / "looks"
"""Where what was expected, what was found and the difference are written side by side."""
CLUSTER = "looks"
HOST = "kubernetes.io/hostname"
NOW, THEN = "2026-01-01T12:10:00Z", "2026-01-01T12:00:00Z"
SIZE = {"width": 960, "height": 640}
SHADES = 64
"""By so much, of 255, may a pixel differ: edges are smoothed by each version of a browser in its own way."""
PIXELS = 60
"""So many pixels may differ by more; the block of one letter has about 40."""
COLOURS = 128

_TIME = re.compile(rb'"20\d\d-\d\d-\d\dT[\d:.]+Z"')
_STILL = """([font]) => {
    const bytes = Uint8Array.from(atob(font), (each) => each.charCodeAt(0));
    document.fonts.add(new FontFace('Blocks', bytes, { weight: '100 900' }));
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(`*, ::before, ::after { font-family: Blocks !important; animation: none !important;
        transition: none !important; caret-color: transparent !important; }`);
    document.adoptedStyleSheets = [sheet];
    const own = Object.getOwnPropertyDescriptor(CanvasRenderingContext2D.prototype, 'font');
    Object.defineProperty(CanvasRenderingContext2D.prototype, 'font', {
        ...own, set(text) { own.set.call(this, text.replace(/px .*/, 'px Blocks')); },
    });
}"""
_METRICS = """scheduler_schedule_attempts_total{result="scheduled"} 1200
scheduler_pod_scheduling_sli_duration_seconds_bucket{le="0.004"} 600
scheduler_pod_scheduling_sli_duration_seconds_bucket{le="0.016"} 1195
scheduler_pod_scheduling_sli_duration_seconds_bucket{le="+Inf"} 1200
scheduler_pending_pods{queue="unschedulable"} 37
moorage_replica_lag_seconds 7.5
moorage_replica_lag_revisions 12
moorage_watch_streams 4
moorage_configured_limit{scope="process",setting="watchers_max"} 1000
moorage_configured_limit{scope="process",setting="bytes_in_flight_max"} 268435456
moorage_bytes_in_flight 255000000
"""


class Look(NamedTuple):
    """One kept picture."""

    view: str
    ready: str
    """What can be seen once everything is there."""
    rest: tuple[str, ...] = ()
    parameters: dict[str, str] = {}  # noqa: RUF012 - never changed
    scheme: str = "light"
    act: Callable[[Page], None] = lambda _: None


def plan_a_loss(page: Page) -> None:
    page.get_by_role("button", name="Add the change").click()
    page.get_by_role("button", name="Plan it").click()
    expect(page.locator(".plan .verdict")).to_be_visible()
    page.locator(".plan .verdict").evaluate("each => each.scrollIntoView()")


def ask_to_drain(page: Page) -> None:
    form = page.get_by_role("form", name="A change")
    form.get_by_label("What if we").select_option("Drain")
    form.get_by_label("nodes by").select_option("")
    form.get_by_role("button", name="Add the change").click()
    page.get_by_role("button", name="Plan it").click()
    ask = page.get_by_role("button", name="Drain node-a1…")
    ask.evaluate("each => each.scrollIntoView({ block: 'center' })")
    ask.click()


BROKEN = ".figures .alarm"
LOOKS = {
    "map": Look("map", BROKEN),
    "map-dark": Look("map", BROKEN, (), {"colour": "owner", "select": ""}, "dark"),
    "workload": Look("map", ".spread", (), {"select": "workload:shop/App/web"}),
    "why": Look("why", ".culprit", ("shop", "large"), {"refusal": "NodeResourcesFit@node-a1"}),
    "waiting": Look("waiting", "section.card .message"),
    "what-if": Look("what-if", ".planned-map canvas", act=plan_a_loss),
    "drain": Look("what-if", "dialog.confirm", act=ask_to_drain),
    "drain-dark": Look("what-if", "dialog.confirm", scheme="dark", act=ask_to_drain),
    "events": Look("events", ".timeline .then"),
    "health": Look("health", ".tile.alarm"),
}
IN_GATE = ("map", "why", "waiting", "what-if", "events", "health")
"""One picture of each view; exploration compares the others."""


def load(client: httpx.Client) -> None:
    """Nodes of the sample, pods of which two break a rule, one that is placed and one that waits."""
    path = f"/v1/clusters/{CLUSTER}"
    client.put(path, json={"config": {}}).raise_for_status()
    nodes = read_objects([str(ROOT / "examples/cluster")])
    _post(client, f"{path}/apply", {"kind": "List", "items": nodes + _placed_pods()})
    for each in (_pod("chosen", "1", nodeSelector={HOST: "node-c2"}), _pod("large", "900")):
        _post(client, f"{path}/placements", {"pods": [each], "onUnschedulable": "Queue"})


def take(browser: Browser, server: str, name: str, done: Callable[[Page], None]) -> None:
    """Open one look, and hand over its page as soon as everything is there."""
    look = LOOKS[name]
    context = browser.new_context(
        viewport={"width": SIZE["width"], "height": SIZE["height"]},
        color_scheme=look.scheme,
        locale="en-GB",
        timezone_id="UTC",
        reduced_motion="reduce",
    )
    context.set_default_timeout(1000 * PATIENCE_SECONDS)
    page = context.new_page()
    font = base64.b64encode((KEPT / "blocks.ttf").read_bytes()).decode()
    page.add_init_script(f"({_STILL})(['{font}'])")
    page.clock.set_fixed_time(NOW)
    page.route(re.compile(r"/v1/(?!.*/watch)"), _at_one_time)
    asked: list[Route] = []
    page.route(re.compile("/metrics$"), lambda route: _once(asked, route))
    page.route(re.compile("/revisions$"), _as_if_all_were_kept)
    # The width of the choice of clusters follows from the names of all of them.
    page.route(
        re.compile("/v1/clusters$"),
        lambda route: route.fulfill(json={"items": [{"name": CLUSTER}]}),
    )
    try:
        Visit(page, server).open(look.view, CLUSTER, *look.rest, **look.parameters)
        look.act(page)
        expect(page.locator(look.ready).first).to_be_visible(timeout=1000 * PATIENCE_SECONDS)
        done(page)
    finally:
        # An answer that is being fetched now goes with the page, and is no error of whoever opens the next.
        page.unroute_all(behavior="ignoreErrors")
        context.close()


def picture(page: Page) -> Image.Image:
    """What is seen now, of two frames from now on."""
    page.evaluate(
        "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done())))"
    )
    return Image.open(io.BytesIO(page.screenshot())).convert("RGB")


def difference(kept: Image.Image, found: Image.Image) -> tuple[int, Image.Image]:
    """How many pixels differ by more than may be, and where: white on black."""
    if kept.size != found.size:
        return found.width * found.height, Image.new("L", found.size, 255)
    bands = ImageChops.difference(kept, found).split()
    most = ImageChops.lighter(ImageChops.lighter(bands[0], bands[1]), bands[2])
    over = most.point([255 if shade > SHADES else 0 for shade in range(256)])
    return over.histogram()[255], over


def kept(name: str) -> Image.Image:
    return Image.open(KEPT / f"{name}.png").convert("RGB")


def tell(name: str, before: Image.Image, found: Image.Image, where: Image.Image) -> Path:
    """Write the kept picture, the found one and their difference side by side."""
    DIFFERENT.mkdir(parents=True, exist_ok=True)
    parts = [before, found, where.convert("RGB")]
    sheet = Image.new(
        "RGB", (sum(each.width for each in parts), max(each.height for each in parts))
    )
    left = 0
    for each in parts:
        sheet.paste(each, (left, 0))
        left += each.width
    file = DIFFERENT / f"{name}.png"
    sheet.save(file)
    return file


def keep(name: str, page: Page) -> None:
    """Write a kept picture, once two pictures in a row are the same."""
    before, found = picture(page), picture(page)
    while before.tobytes() != found.tobytes():
        before, found = found, picture(page)
    small = found.quantize(COLOURS, dither=Image.Dither.NONE)
    assert difference(small.convert("RGB"), found)[0] == 0, name
    small.save(KEPT / f"{name}.png", optimize=True)


def _placed_pods() -> list[dict[str, Any]]:
    """Pods on the first nodes; those of `web` are to be apart, and two of them are not."""
    apart = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": HOST}
    rules = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}}
    nodes = [f"node-{zone}{number}" for number in (1, 2, 3) for zone in "abc"]
    return [
        *(_pod(f"cache-{at}", "2", nodeName=nodes[at]) for at in range(4)),
        *(_pod(f"log-{at}", "250m", nodeName=nodes[at]) for at in range(9)),
        *(
            _pod(f"web-{at}", "1", nodeName=nodes[max(0, at - 1)], affinity=rules)
            for at in range(5)
        ),
    ]


def _pod(name: str, cpu: str, **spec: Any) -> dict[str, Any]:
    labels = {"app": name.split("-", maxsplit=1)[0]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "shop", "labels": labels},
        "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}], **spec},
    }


def _at_one_time(route: Route) -> None:
    answer = route.fetch()
    route.fulfill(response=answer, body=_TIME.sub(f'"{THEN}"'.encode(), answer.body()))


def _as_if_all_were_kept(route: Route) -> None:
    """How far back the log tells depends on the settings of the server."""
    told = route.fetch().json()
    route.fulfill(json={**told, "oldestRevision": 1, "oldestByKind": {"Node": 1, "Pod": 1}})


def _once(asked: list[Route], route: Route) -> None:
    """Answer with metrics that are always the same, and then never again: the second answer would add a line."""
    asked.append(route)
    if len(asked) == 1:
        route.fulfill(body=_METRICS, content_type="text/plain")


def _post(client: httpx.Client, path: str, body: object) -> None:
    answer = client.post(path, json=body)
    assert answer.status_code == 200, answer.text


def main() -> None:
    if CHROMIUM is None:
        sys.exit("There is no Chromium: make browser")
    with temporary_folder() as folder, LocalServer(folder / "data", quiet=True) as server:
        with httpx.Client(base_url=server.url, **PLAIN_HTTP) as client:
            load(client)
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(OPTIONS))
            for name in LOOKS:
                take(browser, server.url, name, lambda page, name=name: keep(name, page))
            browser.close()


if __name__ == "__main__":
    main()
