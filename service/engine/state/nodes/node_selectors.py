"""Node selectors, evaluated on all nodes at once by one table lookup per requirement."""

import numpy as np

from service.engine.state.nodes.columns import Mask, Rows, at
from service.engine.state.nodes.node_rules import (
    RequiredNodes,
    names_in,
)
from service.engine.state.nodes.node_table import NodeTable
from service.engine.state.nodes.topology import TopologyKey
from service.model.core.primitives import (
    LabelSelectorRequirement,
    NodeSelectorRequirement,
    NodeSelectorTerm,
)
from service.model.core.selectors import is_parsable, parse_integer


def required_mask(nodes: NodeTable, required: RequiredNodes, rows: Rows) -> Mask:
    """Return the nodes that match nodeSelector and all required node affinities, shape (rows,)."""
    mask = np.ones(len(at(nodes.alive, rows)), dtype=np.bool_)
    for name, value in required.selector:
        key = nodes.key(name)
        mask &= at(key.domain_of, rows) == key.values.ids.get(value, -2)
    for affinity in required.affinities:
        any_term = np.zeros(len(mask), dtype=np.bool_)
        for term in affinity.node_selector_terms:
            any_term |= term_mask(nodes, term, rows, empty=required.empty_term_matches_all)
        mask &= any_term
    return mask


def term_mask(nodes: NodeTable, term: NodeSelectorTerm | None, rows: Rows, *, empty: bool) -> Mask:
    """Return the nodes that meet all requirements of a term, shape (rows,).

    An empty term matches every node if `empty`, else none.
    """
    count = len(at(nodes.alive, rows))
    if term is None or not (term.match_expressions or term.match_fields):
        return np.full(count, empty and term is not None, dtype=np.bool_)
    expressions = term.match_expressions or ()
    mask = np.full(
        count, all(is_parsable(expression) for expression in expressions), dtype=np.bool_
    )
    for requirement in expressions:
        key = nodes.key(requirement.key)
        mask &= holds_by_value(requirement, key).take(at(key.domain_of, rows))
    for requirement in term.match_fields or ():
        mask &= _name_mask(nodes, requirement, rows)
    return mask


def holds_by_value(
    requirement: NodeSelectorRequirement | LabelSelectorRequirement, key: TopologyKey
) -> Mask:
    """Return whether each value of a key satisfies a requirement, shape (values + 1,).

    The last entry is for nodes without the label.
    """
    match requirement.operator:
        case "In":
            return _in_values(requirement, key)
        case "NotIn":
            return ~_in_values(requirement, key)
        case "Exists":
            return ~_absent(key)
        case "DoesNotExist":
            return _absent(key)
        case "Gt" | "Lt":
            return _compare(requirement, key)


def _in_values(
    requirement: NodeSelectorRequirement | LabelSelectorRequirement, key: TopologyKey
) -> Mask:
    table = np.zeros(len(key.values) + 1, dtype=np.bool_)
    for value in requirement.values or ():
        index = key.values.ids.get(value)
        if index is not None:
            table[index] = True
    return table


def _absent(key: TopologyKey) -> Mask:
    table = np.zeros(len(key.values) + 1, dtype=np.bool_)
    table[-1] = True
    return table


def _compare(
    requirement: NodeSelectorRequirement | LabelSelectorRequirement, key: TopologyKey
) -> Mask:
    numbers, are_numbers = key.numbers()
    bound = parse_integer(requirement.values[0]) if requirement.values else None
    if bound is None:
        return np.zeros_like(are_numbers)
    compared = numbers > bound if requirement.operator == "Gt" else numbers < bound
    return are_numbers & compared


def _name_mask(nodes: NodeTable, requirement: NodeSelectorRequirement, rows: Rows) -> Mask:
    mask = np.zeros(nodes.size, dtype=np.bool_)
    for name in requirement.values or ():
        slot = nodes.slots.get(name)
        if slot is not None:
            mask[slot] = True
    return (mask if requirement.operator == "In" else ~mask)[rows]


def named_nodes(required: RequiredNodes) -> frozenset[str] | None:
    """Return the only nodes that requirements on `metadata.name` allow, or None for all nodes.

    Such requirements restrict the nodes only if every term of an affinity has one with the operator
    In. The requirements of each term are then intersected, and the results of all terms united, as
    in the PreFilter of Kubernetes' NodeAffinity plugin.
    """
    narrowed: frozenset[str] | None = None
    for affinity in required.affinities:
        names = _union_of_names(affinity.node_selector_terms)
        if names is not None:
            narrowed = names if narrowed is None else narrowed & names
    return narrowed


def _union_of_names(terms: tuple[NodeSelectorTerm | None, ...]) -> frozenset[str] | None:
    union: frozenset[str] = frozenset()
    for term in terms:
        names = names_in(term)
        if names is None:
            return None
        union |= names
    return union
