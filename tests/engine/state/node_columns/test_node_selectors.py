"""Requirements on a column of labels hold as they do on the labels themselves."""

from random import Random

import pytest

from service.engine.state.nodes.node_selectors import holds_by_value
from service.engine.state.nodes.topology import TopologyKey
from service.model.core.primitives import NodeSelectorRequirement
from service.model.core.selectors import requirement_matches

VALUES = ("a", "b", "", "1", "+2", "-3", "04", "1.5", str(2**63 - 1), str(2**63), "9" * 70)
OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")


def column(dice: Random, nodes: int = 20) -> TopologyKey:
    """Make a column whose nodes have come, gone, and changed their values."""
    key = TopologyKey("label", nodes)
    for _ in range(3):
        for slot in range(nodes):
            key.leave(slot)
            if dice.random() < 0.8:
                key.enter(slot, dice.choice(VALUES))
    return key


@pytest.mark.parametrize("operator", OPERATORS)
def test_a_requirement_holds_for_each_value_as_for_the_label(operator):
    dice = Random(7)
    for _ in range(50):
        key = column(dice)
        values = tuple(dice.sample(VALUES, dice.randint(0, 3)))
        requirement = NodeSelectorRequirement(key="label", operator=operator, values=values)
        holds = holds_by_value(requirement, key)

        for value, index in key.values.items():
            assert holds[index] == requirement_matches(requirement, {"label": value})
        assert holds[-1] == requirement_matches(requirement, {})


def test_numbers_follow_the_values():
    key = TopologyKey("label", 2)
    key.enter(0, "5")
    above = NodeSelectorRequirement(key="label", operator="Gt", values=("7",))
    assert not holds_by_value(above, key).any()

    key.leave(0)
    key.enter(0, "8")
    assert holds_by_value(above, key)[key.values.ids["8"]]
