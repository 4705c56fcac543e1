"""A hash over all that an engine counts, equal for all that count the same, however they came to it.

What an engine keeps for itself is left out: which slot a node has and which number a label value,
counters that only pods had which are gone, or which were only asked about, and all zeros. So two
engines with the same objects have one digest, and a counter that is wrong in one makes it another.
It looks at everything, so it is nothing for the way of a decision.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator

import msgspec

from service.engine.cluster import Cluster
from service.engine.state.classes import AffinityTerm, PodClass, Template
from service.engine.state.columns import Slots
from service.engine.state.counters import DomainCounter, Eligibility
from service.engine.state.nodes import NodeTable
from service.engine.state.spread import SpreadRule
from service.engine.state.topology import NodeItself, TopologyKey

_SIZE = 16
"""Bytes that stand for one counter, or one set of nodes."""


def digest(cluster: Cluster) -> str:
    """In hexadecimal."""
    whole = hashlib.sha256()
    for part in (
        *_columns(cluster.nodes),
        *_ports(cluster.nodes),
        *_residents(cluster),
        *_Counted(cluster.nodes).lines(cluster.known_classes()),
    ):
        whole.update(part)
    return whole.hexdigest()


def _columns(nodes: NodeTable) -> Iterator[bytes]:
    """What is used of each node, and what it has, by its name."""
    order = nodes.by_name()
    yield msgspec.json.encode(sorted(nodes.slots))
    columns = {
        "pods": nodes.pods,
        "allowed pods": nodes.allowed_pods,
        "unschedulable": nodes.unschedulable,
        "scored cpu": nodes.scored("cpu"),
        "scored memory": nodes.scored("memory"),
    }
    for resource in nodes.resources():
        columns[f"requested {resource}"] = nodes.requested(resource)
        columns[f"allocatable {resource}"] = nodes.allocatable(resource)
    for name, column in columns.items():
        present = column.take(order)
        if present.any():
            yield name.encode() + present.tobytes()


def _ports(nodes: NodeTable) -> Iterator[bytes]:
    """Who holds host ports, as nodes know it, and as it is known by port."""
    for name in sorted(nodes.slots):
        held = nodes.ports[nodes.slots[name]]
        if held:
            yield msgspec.json.encode((name, sorted(held.items())))
    for port, users in sorted(nodes.port_users.items()):
        if users:
            named = sorted((_name(nodes, slot), pods) for slot, pods in users.items())
            yield msgspec.json.encode((port, named))


def _residents(cluster: Cluster) -> Iterator[bytes]:
    """How many pods of each kind are known, and how many count on each node, which is known twice."""
    known: Counter[bytes] = Counter()
    kinds = {each: _kind(each) for each in cluster.known_classes()}
    for pod_class, kind in kinds.items():
        known[kind] += pod_class.pods
        for slot, pods in pod_class.nodes.items():
            known[kind + _name(cluster.nodes, slot).encode()] += pods
    for name, slot in cluster.nodes.slots.items():
        for pod_class, pods in cluster.classes_on(slot).items():
            known[name.encode() + (kinds.get(pod_class) or _kind(pod_class))] += pods
    return (msgspec.json.encode(each) for each in sorted(known.items()))


def _kind(pod_class: PodClass) -> bytes:
    labels = sorted(pod_class.labels.items())
    return msgspec.json.encode((pod_class.namespace, labels, pod_class.terminating))


class _Counted:
    """The counters that pods which are known have to do with, each told once."""

    def __init__(self, nodes: NodeTable) -> None:
        self._nodes = nodes
        self._order: Slots = nodes.by_name()
        self._counters: dict[DomainCounter, bytes] = {}
        self._sets: dict[Eligibility, bytes] = {}

    def lines(self, classes: Iterable[PodClass]) -> list[bytes]:
        """In an order that depends on nothing but what they say."""
        lines: set[bytes] = set()
        for template in {each.template for each in classes}:
            lines.update(self._of_terms(template))
            lines.update(self._of_owned(template))
            for rule in (*template.hard_spread, *template.soft_spread):
                lines.add(self._of_spread(template, rule))
        return sorted(lines)

    def _of_terms(self, template: Template) -> Iterator[bytes]:
        terms: tuple[AffinityTerm, ...] = (
            *template.affinity,
            *template.enduring_affinity,
            *template.anti_affinity,
            *template.preferred,
        )
        for term in terms:
            yield _line("matching", term.matcher.matcher, self._domains(term.counter))

    def _of_owned(self, template: Template) -> Iterator[bytes]:
        for term in template.owned:
            name = (term.role.value, str(term.weight))
            yield _line(name, term.matcher.matcher, self._domains(term.counter))

    def _of_spread(self, template: Template, rule: SpreadRule) -> bytes:
        counted = b"" if rule.counter is None else self._domains(rule.counter)
        matcher = (template.namespace, rule.selector)
        return _line("spread", matcher, self._set(rule.eligibility) + counted)

    def _domains(self, counter: DomainCounter) -> bytes:
        """The domains that hold any, by the value of their label."""
        found = self._counters.get(counter)
        if found is None:
            key, held = counter.key, counter.counts
            domains = [
                (self._value(key, domain), held.data[domain])
                for domain in held.nonzero()[0].tolist()
            ]
            domains.sort()
            found = _short(msgspec.json.encode((key.name, counter.total, domains)))
            self._counters[counter] = found
        return found

    def _value(self, key: TopologyKey, domain: int) -> str:
        """Empty for a domain that should hold nobody, as no node is in it."""
        if isinstance(key, NodeItself):
            return _name(self._nodes, domain)
        values = key.values.values
        return (values[domain] if domain < len(values) else None) or ""

    def _set(self, eligibility: Eligibility) -> bytes:
        found = self._sets.get(eligibility)
        if found is None:
            domains = [self._domains(each) for _, each in sorted(eligibility.nodes_of.items())]
            found = _short(eligibility.mask.take(self._order).tobytes() + b"".join(domains))
            self._sets[eligibility] = found
        return found


def _name(nodes: NodeTable, slot: int) -> str:
    """Empty for a slot that has no node."""
    node = nodes.nodes[slot] if slot < len(nodes.nodes) else None
    return "" if node is None else node.name


def _short(told: bytes) -> bytes:
    return hashlib.blake2b(told, digest_size=_SIZE).digest()


def _line(name: object, matcher: object, counted: bytes) -> bytes:
    return msgspec.json.encode((name, _in_order(matcher))) + counted


def _in_order(value: object) -> object:
    """Sets have no order of their own, and another one in each process."""
    if isinstance(value, frozenset):
        return sorted((_in_order(each) for each in value), key=msgspec.json.encode)
    if isinstance(value, tuple):
        return [_in_order(each) for each in value]
    return value
