"""What a race has shown is kept round by round, and added up."""

import re

import pytest

from tests.concurrency.race.report import Report, RoundFigures, add_round, read_rounds


def figures(number, **changed):
    told = {
        "seed": 7,
        "number": number,
        "placements": 1_000,
        "unplaced": 0,
        "seconds": 4.0,
        "commits": 90,
        "lost": 10,
        "redecided": 20,
        "revalidated": 100,
        "replanned": 10,
        "attempts": {1: 50, 2: 20},
        "worst": {"caller-0-0": 2, "caller-0-1": 1},
        "checked": 1_000,
        "violations": [],
        "full": (0.9, 0.85, 0.95),
        "cpu": {"planners": 2.0, "checker": 1.0},
    }
    return RoundFigures(**(told | changed))


def test_a_file_has_the_rounds_that_were_put_there(tmp_path):
    file = tmp_path / "rounds"
    assert read_rounds(file) == []

    rounds = [figures(0), figures(1, attempts={1: 3, 4: 1}, violations=["A1: too much"])]
    for each in rounds:
        add_round(file, each)

    assert read_rounds(file) == rounds


def test_rounds_are_added_up():
    report = Report(
        [
            figures(0),
            figures(
                1,
                placements=3_000,
                checked=3_000,
                commits=270,
                lost=30,
                replanned=110,
                attempts={1: 100, 3: 5},
                worst={"caller-0-0": 1, "caller-0-1": 3},
                full=(0.86, 0.8, 0.9),
                cpu={"planners": 6.0, "checker": 1.0},
            ),
        ]
    )

    assert report.placements == 4_000
    assert report.lost_share == pytest.approx(0.1)
    assert report.replanned_share == pytest.approx(0.03)
    rows = dict(re.findall(r"^\| (.*) \| (.*) \|$", str(report), re.MULTILINE))
    assert rows["placements acknowledged / checked"] == "4,000 / 4,000"
    assert rows["full, on average (least to greatest)"] == "87.0% (80.0% to 95.0%)"
    assert rows["requests decided once, twice, 3 times"] == "150, 20, 5"
    assert rows["most attempts of each caller"] == "2 (1 callers), 3 (1 callers)"
    assert rows["CPU seconds per 1,000 placements: planners, checker"] == "2.00, 0.50"


@pytest.mark.parametrize(
    ("changed", "proves_something"),
    [({}, True), ({"lost": 9}, False), ({"replanned": 50}, True), ({"replanned": 51}, False)],
)
def test_a_run_counts_if_enough_races_were_lost_and_few_placements_planned_again(
    changed, proves_something
):
    assert Report([figures(0, **changed)]).proves_something is proves_something


def test_the_violations_of_all_rounds_are_told():
    report = Report(
        [figures(0, violations=["A1: a"]), figures(1), figures(2, violations=["A2: b"])]
    )

    assert report.violations == ["A1: a", "A2: b"]
