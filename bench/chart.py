"""The curves of `bench.growth` as one picture.

There is a panel for each thing that grows; both axes are logarithmic.
"""

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from xml.sax.saxutils import escape

from bench.growth import Point

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#666666", "#e69f00", "#56b4e9")
"""Colour-blind people, too, can tell these colours apart (Okabe and Ito)."""
PANEL_WIDTH, PANEL_HEIGHT, LEGEND_WIDTH = 310, 190, 175
LEFT, TOP, BOTTOM, GAP = 52, 76, 36, 40
COLUMNS = 3


def svg(points: Sequence[Point]) -> str:
    """Draw the picture, which is legible at widths from 300 to 1,000 pixels."""
    shapes = dict.fromkeys(point.shape for point in points)
    colours = dict(zip(shapes, itertools.cycle(COLOURS), strict=False))
    decades = _decades(point.micros for point in points)
    dimensions = list(dict.fromkeys(point.dimension for point in points))
    rows = math.ceil(len(dimensions) / COLUMNS)
    width = COLUMNS * (LEFT + PANEL_WIDTH) + GAP
    height = rows * (TOP + PANEL_HEIGHT + BOTTOM) + GAP
    body = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
            'font-family="system-ui, sans-serif" font-size="11" fill="#333">'
        ),
        (
            "<title>CPU microseconds to place a pod, as nodes, pods, namespaces, templates and terms"
            " grow</title>"
        ),
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]
    for number, dimension in enumerate(dimensions):
        x = LEFT + number % COLUMNS * (LEFT + PANEL_WIDTH)
        y = TOP + number // COLUMNS * (TOP + PANEL_HEIGHT + BOTTOM)
        shown = [point for point in points if point.dimension == dimension]
        panel = _panel(dimension, shown, colours, decades)
        body += [f'<g transform="translate({x},{y})">', *panel, "</g>"]
    return "\n".join([*body, "</svg>", ""])


def _decades(micros: Iterable[float]) -> range:
    """Return the powers of ten between which all costs are; all panels have the same axis."""
    logarithms = [math.log10(each) for each in micros]
    low = math.floor(min(logarithms, default=0))
    return range(low, max(low + 1, math.ceil(max(logarithms, default=1))) + 1)


def _panel(
    dimension: str, points: Sequence[Point], colours: Mapping[str, str], decades: range
) -> Iterator[str]:
    values = sorted({point.value for point in points})
    yield f'<text y="{-TOP + 18}" font-size="13" font-weight="600">{escape(dimension)}: µs CPU a pod</text>'
    for decade in decades:
        y, micros = _y(10.0**decade, decades), 10**decade
        yield f'<line x1="0" x2="{PANEL_WIDTH}" y1="{y}" y2="{y}" stroke="#ddd"/>'
        yield f'<text x="-6" y="{y + 4}" text-anchor="end">{micros:,}</text>'
    for value in values:
        x = _x(value, values)
        yield f'<text x="{x}" y="{PANEL_HEIGHT + 18}" text-anchor="middle">{_short(value)}</text>'
    for number, shape in enumerate(dict.fromkeys(point.shape for point in points)):
        steps = sorted(
            (point for point in points if point.shape == shape), key=lambda point: point.value
        )
        yield from _legend(number, shape, colours[shape])
        yield from _curve(shape, colours[shape], steps, values, decades)


def _legend(number: int, shape: str, colour: str) -> Iterator[str]:
    x, y = number % 2 * LEGEND_WIDTH, -TOP + 34 + number // 2 * 16
    yield f'<circle cx="{x + 4}" cy="{y}" r="4" fill="{colour}"/>'
    yield f'<text x="{x + 13}" y="{y + 4}">{escape(shape)}</text>'


def _curve(
    shape: str, colour: str, steps: Sequence[Point], values: Sequence[int], decades: range
) -> Iterator[str]:
    at = [(_x(point.value, values), _y(point.micros, decades)) for point in steps]
    line = " ".join(f"{x},{y}" for x, y in at)
    yield f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>'
    for (x, y), point in zip(at, steps, strict=True):
        told = f"{shape}, {point.value:,}: {point.micros:,.0f} µs"
        yield f'<circle cx="{x}" cy="{y}" r="3" fill="{colour}"><title>{escape(told)}</title></circle>'


def _x(value: int, values: Sequence[int]) -> float:
    """Return the place of a value on the logarithmic axis; 0 is a step before the others."""
    some = [each for each in values if each]
    least, span = math.log10(some[0]), math.log10(some[-1] / some[0]) or 1.0
    lead = 0.2 * span if 0 in values else 0.0
    place = math.log10(value) - least + lead if value else 0.0
    return round(12 + (PANEL_WIDTH - 40) * place / (span + lead), 1)


def _y(micros: float, decades: range) -> float:
    low, high = decades[0], decades[-1]
    return round(PANEL_HEIGHT * (1 - (math.log10(micros) - low) / (high - low)), 1)


def _short(value: int) -> str:
    for unit, name in ((1_000_000, "M"), (1_000, "k")):
        if value >= unit:
            return f"{value / unit:g}{name}"
    return str(value)
