"""The ledger of campaigns: its page tells what it has, and a run adds one line."""

import argparse
from datetime import UTC, datetime

import pytest

from tools import ledger
from tools.ledger import LEDGER, PAGE, Campaign, Entry, add_ledger, page, read, write

ONE = Entry(
    campaign="race",
    commit="0123456789ab",
    ended=datetime(2026, 1, 2, 3, 4, tzinfo=UTC),
    seeds="7",
    hours=0.5,
    placements=1_000_000,
    violations=1,
)


def test_the_page_is_the_one_of_the_ledger():
    assert PAGE.read_text() == page(read(LEDGER))


def test_a_page_has_the_newest_first_and_the_sums_last():
    later = Entry(
        campaign="race", commit="ab+", ended=datetime(2026, 2, 1, tzinfo=UTC), seeds="8", hours=1
    )
    first, second, total = page([ONE, later]).splitlines()[-3:]
    assert "`ab+` | 8 | 1.00 | 0 | 0 | 0 | 0 | 0 | 0" in first
    assert (
        second
        == "| 2026-01-02 03:04 | race | `0123456789ab` | 7 | 0.50 | 0 | 0 | 1,000,000 | 0 | 0 | 1 |"
    )
    assert total == "| | **race, all** | | | 1.50 | 0 | 0 | 1,000,000 | 0 | 0 | 1 |"


def test_a_page_tells_how_much_of_each_goal_is_reached():
    assert "| race | 10,000,000 placements | 2,000,000 | 20.0% | 2 |" in page([ONE, ONE])
    assert "| simulation | 100,000 seeds | 0 | 0.0% | 0 |" in page([ONE])


def test_a_campaign_adds_a_line_and_keeps_those_before(tmp_path, monkeypatch):
    monkeypatch.setattr(
        ledger, "asked_of_git", lambda *given: {"rev-parse": "ab\n"}.get(given[0], " M a\n")
    )
    path = tmp_path / "campaigns.json"
    write([ONE], path)
    campaign = Campaign("faults", path)
    campaign.add(seeds="3", faults=20, placements=5, violations=0, seconds=36)
    kept, added = read(path)
    assert kept == ONE
    assert (added.campaign, added.commit, added.seeds, added.hours) == ("faults", "ab+", "3", 0.01)
    assert path.with_suffix(".md").read_text() == page([kept, added])


def test_a_campaign_that_finds_something_has_a_line_that_says_so(tmp_path):
    path = tmp_path / "campaigns.json"
    campaign = Campaign("faults", path)
    with pytest.raises(AssertionError), campaign.telling_failure("3"):
        raise AssertionError
    with pytest.raises(TimeoutError), campaign.telling_failure("4"):
        raise TimeoutError
    assert [(each.seeds, each.violations) for each in read(path)] == [("3", 1)]


def test_without_a_ledger_nothing_is_asked_and_written(monkeypatch):
    monkeypatch.setattr(ledger, "asked_of_git", pytest.fail)
    Campaign("race", None).add(seeds="1")


@pytest.mark.parametrize(
    ("given", "path"), [([], None), (["--ledger"], LEDGER), (["--ledger", "a.json"], "a.json")]
)
def test_the_ledger_of_the_docs_is_meant_if_none_is_named(given, path):
    parser = argparse.ArgumentParser()
    add_ledger(parser)
    found = parser.parse_args(given).ledger
    assert (found and str(found)) == (path and str(path))
