"""The table of faults: its page, how kinds are dealt, and that a campaign finds what is planted."""

import os
import random
from collections import Counter
from pathlib import Path

import pytest

from tests.concurrency.faults.injecting import Deck, shares
from tests.concurrency.faults.kinds import KINDS, PAGE, page
from tests.concurrency.faults.stage import Job, run_stage
from tests.paths import ROOT

PLANTING = Path(__file__).parent / "planting"
FAULTS = 60


def test_the_page_is_the_one_of_the_table():
    assert PAGE.read_text(encoding="utf-8") == page()


def test_there_are_many_kinds_and_each_is_told_once():
    assert len({kind.name for kind in KINDS}) == len(KINDS) >= 50
    assert all(kind.weight > 0 for kind in KINDS)


def test_each_kind_is_dealt_by_its_weight_before_any_is_dealt_again():
    deck = Deck(KINDS, random.Random(1))
    for _ in range(2):
        dealt = Counter(deck.deal().name for _ in range(deck.weight))
        assert dealt == {kind.name: kind.weight for kind in KINDS}


def test_what_had_nothing_to_befall_is_dealt_last():
    deck = Deck(KINDS, random.Random(1))
    first = deck.deal()
    deck.put_back(first)
    assert [deck.deal() for _ in range(deck.weight)][-1] is first


@pytest.mark.parametrize("number", [1, 7, 100])
def test_the_shares_of_lanes_add_up(number):
    found = shares({"commit": 5, "network": 1, "server": 3}, number)
    assert sum(found.values()) == number
    assert all(share >= 0 for share in found.values())


@pytest.mark.slow
@pytest.mark.parametrize("with_proxy", [True, False])
def test_faults_of_all_lanes_break_nothing(with_proxy):
    job = Job("1", [FAULTS], with_proxy=with_proxy, with_plans=with_proxy)
    ended = run_stage(job)
    assert ended.violations == []
    assert ended.healed.counts.total() == FAULTS
    assert ended.placed > 0
    assert bool(ended.steps) == with_proxy


@pytest.mark.slow
def test_the_campaign_finds_what_is_planted():
    planted = {"PYTHONPATH": f"{PLANTING}{os.pathsep}{ROOT}", "PLANTED_BUG": "keys_not_recorded"}
    job = Job("1", [FAULTS], with_proxy=True, with_plans=False, environment=planted)
    assert "A6" in "\n".join(run_stage(job).violations)
