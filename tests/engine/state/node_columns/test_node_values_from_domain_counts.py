"""A view that is repaired says what one says that is made now, however many counts changed."""

import pytest

from service.engine.state.node_columns.node_values_from_domain_counts import Weighed, WeighedSum
from service.engine.state.node_columns.pod_counts_by_domain import DomainCounter
from service.engine.state.node_columns.topology import TopologyKey

NODES = 600
DOMAINS = 300


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
    terms = tuple(Weighed(DomainCounter(key), weight, once) for weight in (10, -3, 1))
    view = WeighedSum(terms)
    view.values()
    for number in range(changes):
        terms[changed].counter.add(number * 7 % NODES, 1 + number % 3)
    assert view.values().tolist() == WeighedSum(terms).values().tolist()
