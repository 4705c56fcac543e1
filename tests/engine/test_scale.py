"""On hundreds and thousands of nodes an engine that followed many changes answers as one loaded anew.

`MOORAGE_MULTITUDE_FIRST` and `MOORAGE_MULTITUDE_WORLDS` choose other worlds than those of the gate:

    MOORAGE_MULTITUDE_FIRST=1000 MOORAGE_MULTITUDE_WORLDS=100 pytest tests/engine/test_scale.py
"""

import os

import pytest

from tests.engine.multitude import APPS, Multitude

FIRST = int(os.environ.get("MOORAGE_MULTITUDE_FIRST", "0"))  # noqa: TID251 - a test's own setting
WORLDS = int(os.environ.get("MOORAGE_MULTITUDE_WORLDS", "1"))  # noqa: TID251


@pytest.mark.parametrize("change", ["delete", "bind"])
@pytest.mark.parametrize("nodes", [300, 600])
def test_however_many_nodes_change_between_two_questions(nodes, change):
    world = Multitude(change, nodes, favourites=APPS)
    for number in world.bulks:
        world.ask()
        getattr(world, change)(number)
    world.ask()


@pytest.mark.parametrize("app", ["herd", "near-hostname", "far-hostname", "near-rack", "fan"])
def test_as_the_pods_that_others_want_become_few(app):
    Multitude(app, 300).dwindle(app)


@pytest.mark.parametrize("app", ["rare-near", "rare-even"])
def test_as_the_few_nodes_that_suit_fill_and_empty(app):
    world = Multitude(app, 600, favourites=[app])
    for others in (0, 20, 50, 50, 200):
        world.place()
        world.place()
        world.empty_rare(others)
    world.place()


@pytest.mark.parametrize(("nodes", "steps"), [(300, 8), (600, 8), (1_500, 3)])
@pytest.mark.parametrize("seed", range(FIRST, FIRST + WORLDS))
def test_after_changes_in_bulk_answers_are_those_of_an_engine_loaded_anew(nodes, steps, seed):
    world = Multitude(f"{nodes}-{seed}", nodes)
    for _ in range(steps):
        world.step()
    world.check()


@pytest.mark.parametrize("seed", range(FIRST, FIRST + 1))
def test_so_they_are_on_five_thousand_nodes(seed):
    world = Multitude(seed, 5_000)
    world.step()
    world.check()
