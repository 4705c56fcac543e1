"""The checker is worth something: it finds every mistake that was planted in the service."""

import inspect
import re
from unittest.mock import Mock

import pytest

from tests.concurrency.checker import check
from tests.concurrency.planted import BUGS
from tests.concurrency.planted.hunt import hunt, known_seeds
from tests.concurrency.simulation.run import simulate
from tests.concurrency.test_simulation import SEEDS
from tests.paths import ROOT
from tests.seeds import EXPLORING

# A run is cut off at its end: what had been started for later never begins, and what a bug left
# behind may still want the loop when it is collected.
pytestmark = [
    pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
SEEDS_MAX = 300
SHARE = 3
"""The gate plants one in so many bugs, exploration all of them."""


@pytest.mark.interpreted
@pytest.mark.parametrize("name", [*BUGS][:: 1 if EXPLORING else SHARE])
def test_a_planted_bug_is_found(name):
    known = known_seeds().get(name, 0)
    found = hunt(BUGS[name], (known, *range(SEEDS_MAX)))

    assert found.seeds > 0
    if found.seed >= SEEDS:  # the others are known to break nothing by themselves
        assert not check(simulate(found.seed).history), "the seed fails without the bug, too"


def test_enough_bugs_are_planted_in_the_service_itself():
    in_the_store = ("MemoryLog", "MemoryObjects", "ClusterState")
    inside = [bug for bug in BUGS.values() if not bug.where.startswith(in_the_store)]

    assert len(BUGS) >= 30
    assert len(inside) >= 20


def places_of(bug):
    """What a bug replaces: attributes of modules and of classes, and functions in tables."""
    with pytest.MonkeyPatch.context() as patch:
        recorded = Mock(wraps=patch)
        bug.plant(recorded)
    replaced = [call.args for call in recorded.setattr.call_args_list]
    functions = [table[key] for table, key, _ in (c.args for c in recorded.setitem.call_args_list)]
    places = [(thing.__name__, name) for thing, name, *_ in replaced]
    places += [(each.__module__, each.__name__) for each in functions]
    return {f"{owner.rpartition('.')[2]}.{name}" for owner, name in places}


@pytest.mark.interpreted
def test_a_bug_is_planted_where_it_says():
    elsewhere = {bug.name: bug.where for bug in BUGS.values() if bug.where not in places_of(bug)}

    assert elsewhere == {}


def unlike(bug):
    """Functions of a bug that do not take what those take which they replace."""
    recorded = Mock()
    bug.plant(recorded)
    for thing, name, planted in (call.args for call in recorded.setattr.call_args_list):
        replaced = getattr(thing, name)
        if inspect.isroutine(replaced) and not takes_the_same(planted, replaced):
            yield f"{bug.name}: {name}"


def takes_the_same(planted, replaced):
    given = inspect.signature(replaced).parameters.values()
    named = {each.name: None for each in given if each.kind is each.KEYWORD_ONLY}
    places = [each for each in given if each.kind is each.POSITIONAL_OR_KEYWORD]
    try:
        inspect.signature(planted).bind(*places, **named)
    except TypeError:
        return False
    return True


@pytest.mark.interpreted
def test_a_planted_function_takes_what_the_replaced_one_takes():
    """Else each call of it fails, and a checker that finds that has not found the bug."""
    assert [each for bug in BUGS.values() for each in unlike(bug)] == []


def test_the_table_of_the_documentation_names_the_same_places():
    page = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
    table = page.partition("| planted bug | breaks | in |")[2].partition("\n\n")[0]
    rows = set(re.findall(r"^\| (.+?) \| (.+?) \| `(.+?)` \|", table, re.MULTILINE))

    assert rows == {(bug.told.rstrip("."), bug.rule, bug.where) for bug in BUGS.values()}
