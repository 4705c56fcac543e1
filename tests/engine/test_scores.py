"""Scores of many nodes at once, in floating point where that is exact, against those of one node in integers."""

import numpy as np
import pytest

from service.engine.framework.plugin import DEFAULT_RESOURCES
from service.engine.plugins.balanced_allocation import BalancedAllocation, BalanceGain
from service.engine.plugins.node_resources_fit import FitArguments, NodeResourcesFit
from service.engine.state.nodes.columns import ALL
from service.engine.state.nodes.node_table import EXACT_MAX, NodeTable
from service.model.nodes.node import Node
from tests.builders import pod
from tests.engine import objects
from tests.engine.scene import Scene
from tests.seeds import chance

MEBIBYTE = 2**20
ODD_NODES = {
    "none": (),
    "no memory": (Node(name="odd", labels={}, allocatable={"cpu": "4"}),),
    "more than divides exactly": (
        Node(name="odd", labels={}, allocatable={"cpu": "4", "memory": str(EXACT_MAX + 1)}),
    ),
}


def table(seed: int, odd: tuple[Node, ...]) -> NodeTable:
    """Nodes whose amounts are near multiples of a hundredth, in use to any degree, and a free slot."""
    draw, nodes = chance(seed), NodeTable()
    memories = [
        draw.choice((EXACT_MAX, 100 * MEBIBYTE, 7919, 1)) - draw.randrange(2) for _ in range(60)
    ]
    for number, memory in enumerate(memories):
        given = {"cpu": f"{draw.randrange(1, 64_000)}m", "memory": str(max(memory, 1))}
        nodes.add(Node(name=f"n{number}", labels={}, allocatable=given))
    for each in odd:
        nodes.add(each)
    for slot in range(nodes.size):
        share = draw.randrange(101)
        cpu, memory = (
            nodes.allocatable_at(each, slot) * share // 100 for each in ("cpu", "memory")
        )
        nodes.use(slot, (("cpu", cpu), ("memory", memory)), (cpu, memory), 1)
    nodes.use(0, (("cpu", 0),), (0, 0), 0)
    nodes.remove(nodes.add(Node(name="gone", labels={}, allocatable={})))
    return nodes


@pytest.mark.parametrize("odd", ODD_NODES.values(), ids=ODD_NODES)
@pytest.mark.parametrize("seed", range(5))
def test_many_nodes_score_as_one_by_one(seed, odd):
    nodes = table(seed, odd)
    alive = np.flatnonzero(nodes.alive)
    assert nodes.divides_evenly == (not odd)
    for request in ({"cpu": "1m", "memory": "1"}, {"cpu": "777m", "memory": "3000"}, {"cpu": "9"}):
        asking = objects.pod(pod("p").request(**request), incoming=True)
        rules = Scene().engine.class_of(asking).template.rules
        for plugin in (
            NodeResourcesFit(FitArguments()),
            BalancedAllocation(DEFAULT_RESOURCES),
            BalanceGain(DEFAULT_RESOURCES),
        ):
            one_by_one = [plugin.score(nodes, rules, int(slot)) for slot in alive]
            assert plugin.scores(nodes, rules, ALL)[alive].tolist() == one_by_one
            assert plugin.scores(nodes, rules, alive).tolist() == one_by_one
