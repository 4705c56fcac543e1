"""How fast the page shows a large cluster: `python -m bench.page`.

A real server stores the cluster, and Chromium without a graphics processor opens the map. Then the
map is scrolled from its top to its bottom and back, with a step in each frame, alone and while pods
are placed.
"""

import asyncio
import shutil
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any, NamedTuple

import typer
from playwright.async_api import Browser, Page, async_playwright
from rich.console import Console

from bench.figures import quantile
from bench.lists import load, place
from bench.over_http import CLUSTER
from bench.stack import Server, serving

console = Console(width=160)
OPTIONS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage")
LOAD_MILLISECONDS_MAX = 60_000

LOADED = """pods => {
    const figures = [...document.querySelectorAll('.figures div')];
    const counted = figures.find(each => each.textContent.includes('Pods'));
    const shown = counted?.querySelector('dd')?.textContent;
    return document.querySelector('.state')?.textContent.includes('Live')
        && Number(shown?.replace(/\\D/g, '')) >= pods;
}"""
"""Whether the page is live and has so many pods."""
DRAWN = "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
SCROLLED = """seconds => new Promise(done => {
    const map = document.querySelector('.scroller'), gaps = [];
    const range = map.scrollHeight - map.clientHeight, began = performance.now();
    let last = began, step = 40;
    const frame = now => {
        gaps.push(now - last);
        last = now;
        if (map.scrollTop >= range) step = -40;
        if (map.scrollTop <= 0) step = 40;
        map.scrollTop += step;
        if (now - began < seconds * 1000) requestAnimationFrame(frame);
        else done({ gaps: gaps.slice(1), range });
    };
    requestAnimationFrame(frame);
})"""
"""The milliseconds between frames while the map is scrolled, and how many pixels it can be."""


class _Window(NamedTuple):
    """A window, in CSS pixels, and how many pixels of the screen one of them has each way."""

    width: int
    height: int
    ratio: int


WINDOWS = (_Window(1280, 800, 1), _Window(390, 844, 2))
LARGER = 3
"""How often the map is enlarged, by half each time."""


class _Scene(NamedTuple):
    """What is shown: a cluster with so many pods, for so many seconds each time."""

    server: Server
    pods: int
    seconds: float
    pictures: Path | None


async def _visit(browser: Browser, scene: _Scene, window: _Window) -> None:
    server, pods, seconds, pictures = scene
    page = await browser.new_page(
        viewport={"width": window.width, "height": window.height}, device_scale_factor=window.ratio
    )
    began = perf_counter()
    await page.goto(f"http://{server.host}:{server.port}/#/map/{CLUSTER.rpartition('/')[2]}")
    await page.wait_for_function(LOADED, arg=pods, timeout=LOAD_MILLISECONDS_MAX)
    await page.evaluate(DRAWN)
    console.print(f"{window.width} x {window.height}, {window.ratio} pixels each way:")
    console.print(f"  loaded in {perf_counter() - began:.2f} s")
    console.print("  " + _frames("scrolled", await page.evaluate(SCROLLED, seconds)))
    placing = asyncio.create_task(place(server, f"p{began:.0f}", seconds))
    told = _frames("scrolled while pods are placed", await page.evaluate(SCROLLED, seconds))
    console.print(f"  {told}, {len(await placing) / seconds:,.0f} pods/s")
    if pictures:
        await page.screenshot(path=pictures / f"map-{window.width}.png")
    for _ in range(LARGER):
        await page.get_by_role("button", name="Larger").click()
    await page.evaluate(DRAWN)
    console.print("  " + _frames("enlarged, scrolled", await page.evaluate(SCROLLED, seconds)))
    console.print(f"  heap {await _heap_bytes(page) / 1e6:.0f} MB")
    await page.close()


def _frames(how: str, scrolled: dict[str, Any]) -> str:
    gaps: list[float] = scrolled["gaps"]
    rate = 1000 * len(gaps) / sum(gaps)
    p99 = quantile(sorted(gaps), 0.99)
    told = f"{how} over {scrolled['range']:,.0f} px: {rate:.1f} frames/s"
    return f"{told}, p99 {p99:.0f} ms, slowest {max(gaps):.0f} ms"


async def _heap_bytes(page: Page) -> float:
    """Return the size of the page's JavaScript objects after a collection."""
    session = await page.context.new_cdp_session(page)
    await session.send("HeapProfiler.collectGarbage")
    usage = await session.send("Runtime.getHeapUsage")
    return float(usage["usedSize"])


async def _run(scene: _Scene, nodes: int, runs: int) -> None:
    await load(scene.server, nodes, scene.pods, pending=100)
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=list(OPTIONS)
        )
        for _ in range(runs):
            for window in WINDOWS:
                await _visit(browser, scene, window)
        await browser.close()


def main(
    *,
    nodes: Annotated[int, typer.Option(help="Nodes.")] = 5_000,
    pods: Annotated[int, typer.Option(help="Pods on nodes.")] = 50_000,
    seconds: Annotated[float, typer.Option(help="How long the map is scrolled.")] = 5,
    runs: Annotated[int, typer.Option(help="How often, in turn.")] = 3,
    pictures: Annotated[Path | None, typer.Option(help="A folder for pictures of the map.")] = None,
) -> None:
    """Open the map, and scroll it."""
    with serving() as one:
        asyncio.run(_run(_Scene(one, pods, seconds, pictures), nodes, runs))


if __name__ == "__main__":
    typer.run(main)
