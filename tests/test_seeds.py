"""The gate always draws the same; each other number has exploration draw otherwise."""

import pytest

from tests import seeds


@pytest.fixture
def number(monkeypatch: pytest.MonkeyPatch):
    def number(value: int) -> None:
        monkeypatch.setattr(seeds, "NUMBER", value)
        monkeypatch.setattr(seeds, "EXPLORING", value != 0)

    number(0)
    return number


def test_a_name_has_the_same_seed_in_each_run_and_each_number_another(number):
    usual = seeds.seed("a")
    assert usual == 1947945454 != seeds.seed("b")
    number(1)
    assert seeds.seed("a") != usual


def test_a_case_draws_the_same_in_each_run_and_otherwise_with_another_number(number):
    usual = seeds.chance(5).random()
    assert usual == seeds.chance(5).random() != seeds.chance(6).random()
    number(1)
    assert seeds.chance(5).random() != usual


def test_exploration_tries_more_examples(number):
    assert seeds.examples(10) == 10
    number(1)
    assert seeds.examples(10) > 10
