"""The best node from the root of a tree is the one that looking at all nodes finds."""

import numpy as np
from hypothesis import given, strategies as st

from service.engine.ranking.score_tree import BestNodeTree, Layout
from service.engine.state.nodes.rank import TIE_BITS, VETO
from service.engine.state.nodes.topology import TopologyKey
from service.engine.state.nodes.vetoes import Vetoes

TIES = st.integers(0, 2**TIE_BITS - 1)
NODES_MAX = 200
FEW = 12


@st.composite
def nodes(draw):
    seed = draw(st.integers(0, 2**32))
    ties = np.random.default_rng(seed).integers(0, 2**TIE_BITS, draw(st.integers(1, NODES_MAX)))
    key = TopologyKey("zone", len(ties))
    for slot, zone in enumerate(np.random.default_rng(seed).integers(0, 6, len(ties)).tolist()):
        if zone:
            key.enter(slot, str(zone))
    return ties, key


def rank_of(score, tie):
    return VETO if score < 0 else int(score) << TIE_BITS | int(tie)


def slots_in(key, tree, count):
    """The slots of one tree: of one domain of the key, or all."""
    trees = 1 if key is None else key.capacity + 1
    domain_of = [0] * count if key is None else [each % trees for each in key.domain_of.tolist()]
    return [slot for slot in range(count) if domain_of[slot] == tree]


def best_by_looking(ranks, slots, tie, excluded):
    """The score that the best of the slots has, and the best of that score that is not excluded."""
    top = max((int(ranks[slot]) >> TIE_BITS for slot in slots), default=-1)
    left = [s for s in slots if int(ranks[s]) >> TIE_BITS == top and s not in excluded]
    return top, max(left, key=lambda slot: int(ranks[slot]) ^ tie, default=-1)


@given(nodes(), st.integers(0, 2**32), TIES, st.booleans(), st.integers(1, 3))
def test_finds_what_looking_at_all_nodes_finds(given_nodes, seed, tie, by_domain, scores):
    ties, key = given_nodes
    count, random = len(ties), np.random.default_rng(seed)
    ranks = np.array([rank_of(random.integers(-1, scores), tie) for tie in ties])
    layout = Layout(key if by_domain else None, ties)
    best_node_tree = BestNodeTree(layout, ranks)
    for slot in random.integers(0, count, random.integers(0, FEW)).tolist():
        ranks[slot] = rank_of(random.integers(-1, scores + 1), ties[slot])
        best_node_tree.repair(slot)
    excluded = set(random.integers(0, count, random.integers(0, FEW)).tolist())
    vetoes = Vetoes(key, nodes=np.array([VETO if s in excluded else 0 for s in range(count)]))
    for tree in range(layout.trees):
        top, best = best_by_looking(ranks, slots_in(layout.key, tree, count), tie, excluded)
        if top < 0:
            assert best_node_tree.top(tree) < 0
        else:
            assert best_node_tree.top(tree) == top
            assert best_node_tree.find(tree, tie, [vetoes]) == best
