"""The dashboard's picture has what its file has, whatever a Prometheus has stored."""

import json
from xml.etree import ElementTree as ET

from tests.paths import ROOT
from tools.dashboard_picture import DASHBOARD, Prometheus, Series, svg

BEGIN, END = 1_000_000.0, 1_001_200.0


class Stored(Prometheus):
    """A Prometheus that has two series for each query, one of them with a gap."""

    def __init__(self):
        super().__init__("http://127.0.0.1:1", BEGIN, END)

    def series(self, target):
        points = [(BEGIN + n * self.step, float(n)) for n in range(101)]
        return [Series(target["legendFormat"], points), Series("gap", points[:20] + points[60:])]


def titles(dashboard):
    return [each["title"] for each in dashboard["panels"]]


def texts(picture):
    return [each.text for each in picture.findall(".//{*}text")]


def test_each_panel_is_drawn_with_its_lines_and_their_gaps():
    dashboard = json.loads(DASHBOARD.read_text("utf-8"))
    picture = ET.fromstring(svg(dashboard, Stored()))
    assert set(titles(dashboard)) <= set(texts(picture))
    drawn = [each for each in dashboard["panels"] if each["type"] == "timeseries"]
    queries = sum(len(each["targets"]) for each in drawn)
    lines = picture.findall(".//{*}polyline")
    assert len(lines) == 3 * queries
    width = float(picture.attrib["viewBox"].split()[2])
    for line in lines:
        numbers = [
            float(each) for pair in line.attrib["points"].split() for each in pair.split(",")
        ]
        assert all(0 <= each < width for each in numbers)


def test_the_picture_in_the_documentation_is_of_this_dashboard():
    """`python -m tools.dashboard_picture docs/dashboard.svg` draws it anew."""
    expected = titles(json.loads(DASHBOARD.read_text("utf-8")))
    shown = texts(ET.parse(ROOT / "docs" / "dashboard.svg"))
    assert [each for each in shown if each in expected] == expected
