"""Draws the dashboard of `deploy/grafana` with what a Prometheus has stored, as one SVG.

    python -m tools.dashboard_picture --prometheus http://127.0.0.1:9090 --minutes 20 docs/dashboard.svg

Every panel asks the queries that its file has, so the picture shows what Grafana would; it is laid
out by the file's grid, and nothing else of Grafana is imitated.
"""

import argparse
import itertools
import json
import math
import re
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from urllib.request import urlopen
from xml.sax.saxutils import escape

DASHBOARD = Path(__file__).parents[1] / "deploy" / "grafana" / "moorage.json"
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#666666", "#e69f00", "#56b4e9", "#a04000")
"""Colour-blind people, too, can tell these colours apart (after Okabe and Ito)."""
COLUMN, LINE, MARGIN = 52.0, 27.0, 4.0
"""The size of a unit of Grafana's grid, which has 24 columns, and what is left between panels."""
LEFT, TOP, BOTTOM, LEGEND_LINE = 52.0, 28.0, 18.0, 14.0
LEGEND_LINES, INDENT, LETTER, MORE = 3, 10.0, 5.6, 70.0
"""Lines of a legend at most, where they begin, the widths of a letter and of how many found no room."""
TIMES_MAX = 6
POINTS = 100
SCALES: Mapping[str, Sequence[tuple[float, str]]] = {
    "s": ((1, " s"), (1e-3, " ms"), (1e-6, " µs")),
    "bytes": ((2**30, " GiB"), (2**20, " MiB"), (2**10, " KiB")),
    "percentunit": ((0.01, " %"),),
    "ops": ((1e3, "k/s"), (1, "/s")),
    "reqps": ((1e3, "k/s"), (1, "/s")),
}
"""By unit, what is written beside a number, for the least number that it is divided by."""
STEPS: Mapping[int, Sequence[float]] = {
    10: (0.25, 0.5, 1, 2.5),
    1024: tuple(2.0**n for n in range(-2, 9)),
}
"""By what numbers are powers of, between which parts and multiples of such a power lines are drawn."""
PLAIN = ((1e6, "M"), (1e3, "k"), (1, ""))
VARIABLES = {"$__rate_interval": "1m", "$job": ".*", "$instance": ".*"}


@dataclass(frozen=True)
class Series:
    """One line of a panel."""

    name: str
    points: Sequence[tuple[float, float]]
    """Seconds since 1970, and the value; what is missing is left out."""


class Prometheus:
    """What a Prometheus has stored of some time."""

    def __init__(self, url: str, begin: float, end: float) -> None:
        """`begin` and `end` are seconds since 1970."""
        self._url = url
        self.begin, self.end = begin, end
        self.step = (end - begin) / POINTS

    def series(self, target: Mapping[str, str]) -> list[Series]:
        """Ask the query of a panel's target."""
        query = target["expr"]
        for variable, value in VARIABLES.items():
            query = query.replace(variable, value)
        asked = {"query": query, "start": self.begin, "end": self.end, "step": self.step}
        with urlopen(f"{self._url}/api/v1/query_range?{urlencode(asked)}") as answer:
            found = json.load(answer)["data"]["result"]
        return [
            Series(_named(target["legendFormat"], each["metric"]), _points(each)) for each in found
        ]


def _named(pattern: str, labels: Mapping[str, str]) -> str:
    return re.sub(r"{{(\w+)}}", lambda found: labels.get(found[1], ""), pattern)


def _points(found: Mapping[str, Any]) -> list[tuple[float, float]]:
    points = [(float(at), float(value)) for at, value in found["values"]]
    return [(at, value) for at, value in points if math.isfinite(value)]


def svg(dashboard: Mapping[str, Any], prometheus: Prometheus) -> str:
    """Draw all panels of a dashboard."""
    panels = dashboard["panels"]
    width = 24 * COLUMN + MARGIN
    height = max(each["gridPos"]["y"] + each["gridPos"]["h"] for each in panels) * LINE + MARGIN
    body = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" '
            'font-family="system-ui, sans-serif" font-size="11" fill="#333">'
        ),
        f"<title>The dashboard {escape(dashboard['title'])}</title>",
        f'<rect width="{width:g}" height="{height:g}" fill="#f2f3f5"/>',
    ]
    for panel in panels:
        body += _panel(panel, prometheus)
    return "\n".join([*body, "</svg>", ""])


def _panel(panel: Mapping[str, Any], prometheus: Prometheus) -> Iterator[str]:
    at = panel["gridPos"]
    x, y = at["x"] * COLUMN + MARGIN, at["y"] * LINE + MARGIN
    width, height = at["w"] * COLUMN - MARGIN, at["h"] * LINE - MARGIN
    yield f'<g transform="translate({x:g},{y:g})">'
    if panel["type"] == "row":
        yield f'<text y="17" font-size="14" font-weight="600">{escape(panel["title"])}</text>'
    else:
        yield f'<rect width="{width:g}" height="{height:g}" rx="3" fill="white" stroke="#ddd"/>'
        yield f'<text x="10" y="18" font-weight="600">{escape(panel["title"])}</text>'
        series = [each for target in panel["targets"] for each in prometheus.series(target)]
        unit = panel["fieldConfig"]["defaults"].get("unit", "none")
        if panel["type"] == "stat":
            yield from _stat(panel, series, width, height)
        else:
            yield from _lines(series, unit, prometheus, width, height)
    yield "</g>"


def _stat(
    panel: Mapping[str, Any], series: Sequence[Series], width: float, height: float
) -> Iterator[str]:
    named = panel["options"].get("textMode") == "name"
    mappings = panel["fieldConfig"]["defaults"].get("mappings", ())
    texts = {key: each["text"] for of in mappings for key, each in of["options"].items()}
    shown = [
        each.name if named else texts.get(f"{each.points[-1][1]:g}", f"{each.points[-1][1]:g}")
        for each in series
        if each.points
    ]
    size = min(40.0, (width - 20) / max(1, *map(len, shown)) / 0.58) if shown else 20.0
    for number, text in enumerate(shown):
        y = height / 2 + size / 2 + (number - (len(shown) - 1) / 2) * size * 1.3
        yield (
            f'<text x="{width / 2:g}" y="{y:.1f}" font-size="{size:.1f}" font-weight="600" '
            f'text-anchor="middle" fill="#1a7f37">{escape(text)}</text>'
        )


def _lines(
    series: Sequence[Series], unit: str, prometheus: Prometheus, width: float, height: float
) -> Iterator[str]:
    places = _legend_places([each.name for each in series], width)
    lines = 1 + max((line for _, line in places), default=0)
    bottom = height - BOTTOM - LEGEND_LINE * lines - 4
    greatest = max((value for each in series for _, value in each.points), default=0.0)
    ticks = _ticks(greatest, 1024 if unit == "bytes" else 10)

    def place(at: float, value: float) -> tuple[float, float]:
        along = (at - prometheus.begin) / (prometheus.end - prometheus.begin)
        x = LEFT + along * (width - LEFT - 12)
        return x, bottom - value / ticks[-1] * (bottom - TOP)

    for tick in ticks:
        _, y = place(prometheus.begin, tick)
        yield f'<line x1="{LEFT:g}" x2="{width - 12:g}" y1="{y:.1f}" y2="{y:.1f}" stroke="#e5e5e5"/>'
        text = _told(tick, unit, ticks[-1])
        yield f'<text x="{LEFT - 5:g}" y="{y + 3.5:.1f}" text-anchor="end" font-size="10">{text}</text>'
    for at in _times(prometheus.begin, prometheus.end):
        x, _ = place(at, 0)
        clock = time.strftime("%H:%M", time.gmtime(at))
        yield f'<text x="{x:.1f}" y="{bottom + 13:.1f}" text-anchor="middle" font-size="10">{clock}</text>'
    colours = itertools.cycle(COLOURS)
    coloured = [(each, next(colours)) for each in series]
    for each, colour in reversed(coloured):
        for part in _without_gaps(each.points, prometheus.step):
            line = " ".join("{:.1f},{:.1f}".format(*place(*point)) for point in part)
            yield f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="1.5"/>'
    yield from _legend(coloured, places, bottom + BOTTOM + 10)


def _legend_places(names: Sequence[str], width: float) -> list[tuple[float, int]]:
    """Return left edge and line of each name that finds room; the last one leaves room for a number."""
    places: list[tuple[float, int]] = []
    x, line = INDENT, 0
    for number, name in enumerate(names):
        takes = 22 + len(name) * LETTER
        is_last = number == len(names) - 1
        if x > INDENT and x + takes > width - (0 if line < LEGEND_LINES - 1 or is_last else MORE):
            if line == LEGEND_LINES - 1:
                break
            x, line = INDENT, line + 1
        places.append((x, line))
        x += takes
    return places


def _legend(
    coloured: Sequence[tuple[Series, str]], places: Sequence[tuple[float, int]], top: float
) -> Iterator[str]:
    x, y = INDENT, top
    for (each, colour), (left, line) in zip(coloured, places, strict=False):
        x, y = left, top + line * LEGEND_LINE
        yield f'<rect x="{x:.1f}" y="{y - 6:.1f}" width="9" height="3" fill="{colour}"/>'
        yield f'<text x="{x + 13:.1f}" y="{y - 1:.1f}" font-size="10">{escape(each.name)}</text>'
        x += 22 + len(each.name) * LETTER
    if len(places) < len(coloured):
        more = f"and {len(coloured) - len(places)} more"
        yield f'<text x="{x:.1f}" y="{y - 1:.1f}" font-size="10">{more}</text>'


def _without_gaps(
    points: Sequence[tuple[float, float]], step: float
) -> Iterator[list[tuple[float, float]]]:
    part: list[tuple[float, float]] = []
    for point in points:
        if part and point[0] - part[-1][0] > 1.5 * step:
            yield part
            part = []
        part.append(point)
    if part:
        yield part


def _ticks(greatest: float, base: int) -> list[float]:
    """Return round numbers from 0 to at least the greatest value, three to five of them."""
    greatest = greatest or 1.0
    power = float(base) ** math.floor(math.log(greatest, base))
    step = next(each * power for each in STEPS[base] if greatest <= 4 * each * power)
    return [number * step for number in range(math.ceil(greatest / step) + 1)]


def _times(begin: float, end: float) -> Iterator[float]:
    step = next(each for each in (60, 300, 900, 3600, 86400) if (end - begin) / each < TIMES_MAX)
    first = math.ceil(begin / step) * step
    yield from (first + number * step for number in range(int((end - first) // step) + 1))


def _told(value: float, unit: str, greatest: float) -> str:
    """Return a number with its unit; all numbers of an axis have that of the greatest."""
    scales = SCALES.get(unit, PLAIN)
    scale, name = next((each for each in scales if greatest >= each[0]), scales[-1])
    return f"{value / scale:.3g}{name}" if value else "0"


def main() -> int:
    """Draw the picture that the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m tools.dashboard_picture")
    parser.add_argument("picture", type=Path)
    parser.add_argument("--prometheus", default="http://127.0.0.1:9090", help="its URL")
    parser.add_argument("--minutes", type=float, default=20.0, help="how much is drawn")
    parser.add_argument("--until", type=float, help="in seconds since 1970; now if not given")
    given = parser.parse_args()
    end = time.time() if given.until is None else given.until
    prometheus = Prometheus(given.prometheus, end - 60 * given.minutes, end)
    dashboard = json.loads(DASHBOARD.read_text("utf-8"))
    given.picture.write_text(svg(dashboard, prometheus), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
