"""A view that is repaired says what one says that is made now; the log of changes tells what it missed."""

import pytest

from service.engine.state.nodes.counters import (
    DirtyLog,
    DomainCounter,
    WeightedSum,
    WeightedTerm,
)
from service.engine.state.nodes.topology import TopologyKey

NODES = 600
DOMAINS = 300
LIMIT = 6


def key_of_many_domains():
    key = TopologyKey("rack", NODES)
    for slot in range(NODES):
        key.enter(slot, f"r{slot % DOMAINS}")
    return key


@pytest.mark.parametrize("once", [True, False])
@pytest.mark.parametrize("changes", [1, 64, 65, 200, 300, 1_000])
@pytest.mark.parametrize("changed", [0, 1, 2])
def test_however_many_counts_of_any_term_changed(changed, changes, once):
    key = key_of_many_domains()
    terms = tuple(WeightedTerm(DomainCounter(key), weight, once) for weight in (10, -3, 1))
    view = WeightedSum(terms)
    view.values()
    for number in range(changes):
        terms[changed].counter.add(number * 7 % NODES, 1 + number % 3)
    assert view.values().tolist() == WeightedSum(terms).values().tolist()


def test_every_reader_gets_all_that_it_missed_or_none():
    log = DirtyLog(limit=LIMIT)
    for slot in range(4 * LIMIT):
        log.append(slot)
        for position in range(log.position + 1):
            missed = log.since(position)
            assert missed is None or missed == list(range(position, log.position))
        assert log.since(log.position) == []
        assert log.since(max(0, log.position - LIMIT // 2)) is not None
