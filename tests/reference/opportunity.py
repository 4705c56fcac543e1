"""Opportunity cost: what pods that tolerate nobody shut others out of, counted node by node."""

from collections.abc import Iterable, Iterator
from fractions import Fraction

from tests.reference.fit import allocatable_of
from tests.reference.node_plugins import node_affinity_matches
from tests.reference.resources import Amounts
from tests.reference.selectors import selector_matches
from tests.reference.view import (
    REQUIRED,
    Manifest,
    View,
    affinity_of,
    labels_of,
    namespace_of,
    spec_of,
)

PREFIX = "opportunity."


def cost(config: Manifest, nodes: Iterable[Manifest], pod: Manifest) -> Amounts:
    """What a pod takes from others: where it is, or where it may come to be; mostly nothing."""
    keys = _keys_kept_free(config, pod)
    if not keys:
        return {}
    view = View(config, (), nodes, ())
    node_name = spec_of(pod).get("nodeName")
    if node_name is not None:
        node = view.nodes.get(node_name)
        return {} if node is None else _taken(view, node, keys)
    left = [node for node in view.nodes.values() if node_affinity_matches(view, pod, node)]
    each = [_taken(view, node, keys) for node in left or view.nodes.values()]
    if config.get("opportunityCostBasis", "Largest") == "Largest":
        return {name: max(taken[name] for taken in each) for name in (each and each[0])}
    return {
        name: Fraction(-(-sum(taken[name] * _UNITS[name] for taken in each) // len(each)))
        / _UNITS[name]
        for name in (each and each[0])
    }


_UNITS = {f"{PREFIX}cpu": 1000, f"{PREFIX}memory": 1, f"{PREFIX}nodes": 1}
"""Averages are rounded up to thousandths of a cpu, and to whole bytes and nodes."""


def _keys_kept_free(config: Manifest, pod: Manifest) -> list[str]:
    if namespace_of(pod) in (config.get("daemonNamespaces") or []):
        return []
    rules = affinity_of(pod, "podAntiAffinity")
    return [
        term["topologyKey"]
        for variant in REQUIRED
        for term in rules.get(variant) or []
        if _finds_anybody(term.get("labelSelector"))
        and _finds_anybody(term.get("namespaceSelector"))
    ]


def _finds_anybody(selector: Manifest | None) -> bool:
    """Whether it finds what has no labels: it asks for nothing, or for what is not there."""
    return selector_matches(selector, {})


def _taken(view: View, node: Manifest, keys: list[str]) -> Amounts:
    """Return the most that is taken of each resource under any of the keys."""
    under = [_sum(_domain(view, node, key)) for key in keys]
    return {name: max(each[name] for each in under) for name in _UNITS}


def _domain(view: View, node: Manifest, key: str) -> Iterator[Manifest]:
    """The nodes with the same value; nobody's without the key, all of them if no node has it."""
    own, every = labels_of(node).get(key), list(view.nodes.values())
    if not any(key in labels_of(each) for each in every):
        yield from every
    elif own is not None:
        yield from (each for each in every if labels_of(each).get(key) == own)


def _sum(nodes: Iterable[Manifest]) -> Amounts:
    total = dict.fromkeys(_UNITS, Fraction())
    for node in nodes:
        room = allocatable_of(node)
        total[f"{PREFIX}cpu"] += Fraction(room.get("cpu", 0), 1000)
        total[f"{PREFIX}memory"] += room.get("memory", 0)
        total[f"{PREFIX}nodes"] += 1
    return total
