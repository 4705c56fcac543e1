"""A hash of everything that an engine counts, equal for engines with equal counts.

It omits what depends on how an engine reached its state: slots of nodes, ids of label values,
counters of pods that were removed or only queried, and all zeros. Two engines with the same objects
therefore have the same digest, and a wrong counter in one of them changes it. The digest reads
everything, so it is too slow to be computed during a decision.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator

import msgspec

from service.engine.cluster import Cluster
from service.engine.state.nodes.columns import Slots
from service.engine.state.nodes.counters import DomainCounter, IncludedNodes
from service.engine.state.nodes.node_table import NodeTable
from service.engine.state.nodes.topology import NodeItself, TopologyKey
from service.engine.state.pods.classes import AffinityTerm, PodClass, Template
from service.engine.state.pods.spread import SpreadRule

_SIZE = 16
"""The hash size in bytes of one counter or one set of nodes."""


def digest(cluster: Cluster) -> str:
    """Return the hexadecimal hash of everything that a cluster's engine counts."""
    whole = hashlib.sha256()
    for part in (
        *_columns(cluster.nodes),
        *_ports(cluster.nodes),
        *_volumes(cluster),
        *_devices(cluster),
        *_pods(cluster),
        *_nominations(cluster),
        *_CounterHashes(cluster.nodes).lines(cluster.known_classes()),
    ):
        whole.update(part)
    return whole.hexdigest()


def _columns(nodes: NodeTable) -> Iterator[bytes]:
    """Yield each node's capacity and usage, ordered by node name."""
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
    """Yield the host ports in use, both by node and by port."""
    for name in sorted(nodes.slots):
        held = nodes.ports[nodes.slots[name]]
        if held:
            yield msgspec.json.encode((name, sorted(held.items())))
    for port, users in sorted(nodes.port_users.items()):
        if users:
            named = sorted((_name(nodes, slot), pods) for slot, pods in users.items())
            yield msgspec.json.encode((port, named))


def _volumes(cluster: Cluster) -> Iterator[bytes]:
    """Yield the volume objects, and the number of pods that use each claim on each node."""
    for manifest in cluster.volumes.objects():
        yield type(manifest).__name__.encode() + msgspec.json.encode(
            manifest, order="deterministic"
        )
    for key, slots in sorted(cluster.volumes.users()):
        named = sorted((_name(cluster.nodes, slot), pods) for slot, pods in slots.items())
        yield msgspec.json.encode((key, named))


def _devices(cluster: Cluster) -> Iterator[bytes]:
    """Yield the device objects, and the devices in use."""
    for manifest in cluster.devices.objects():
        yield type(manifest).__name__.encode() + msgspec.json.encode(
            manifest, order="deterministic"
        )
    for device, claims in sorted(cluster.devices.in_use.items()):
        yield msgspec.json.encode((*device, claims))


def _pods(cluster: Cluster) -> Iterator[bytes]:
    """Yield the number of known pods of each kind, in total and on each node.

    Both classes and nodes store the numbers on nodes, so both are read.
    """
    known: Counter[bytes] = Counter()
    kinds = {known_class: _kind(known_class) for known_class in cluster.known_classes()}
    for pod_class, kind in kinds.items():
        known[kind] += pod_class.pods
        if pod_class.unready:
            known[b"unready" + kind] += pod_class.unready
        for slot, pods in pod_class.nodes.items():
            known[kind + _name(cluster.nodes, slot).encode()] += pods
    for name, slot in cluster.nodes.slots.items():
        for pod_class, pods in cluster.classes_on(slot).items():
            known[name.encode() + (kinds.get(pod_class) or _kind(pod_class))] += pods
    return (msgspec.json.encode(entry) for entry in sorted(known.items()))


def _nominations(cluster: Cluster) -> Iterator[bytes]:
    """Yield the pods with reserved room, by node."""
    for node_name, pods in sorted(cluster.nominated.items()):
        yield msgspec.json.encode((node_name, sorted(pods)))
    for key, (node_name, _) in sorted(cluster.reserved.items()):
        yield msgspec.json.encode((*key, node_name))


def _kind(pod_class: PodClass) -> bytes:
    labels = sorted(pod_class.labels.items())
    return msgspec.json.encode((pod_class.namespace, labels, pod_class.terminating))


class _CounterHashes:
    """The hashes of the counters that known pods use, each computed once."""

    def __init__(self, nodes: NodeTable) -> None:
        self._nodes = nodes
        self._order: Slots = nodes.by_name()
        self._counters: dict[DomainCounter, bytes] = {}
        self._sets: dict[IncludedNodes, bytes] = {}

    def lines(self, classes: Iterable[PodClass]) -> list[bytes]:
        """Return the lines of the classes' templates in an order based only on their content."""
        lines: set[bytes] = set()
        for template in {pod_class.template for pod_class in classes}:
            lines.update(self._of_terms(template))
            lines.update(self._of_owned(template))
            for rule in (*template.hard_spread, *template.soft_spread):
                lines.add(self._of_spread(template, rule))
        return sorted(lines)

    def _of_terms(self, template: Template) -> Iterator[bytes]:
        terms: tuple[AffinityTerm, ...] = (
            *template.affinity,
            *template.affinity_of_first,
            *(() if template.siblings is None else (template.siblings,)),
            *template.execution_affinity,
            *template.anti_affinity,
            *template.preferred,
        )
        for term in terms:
            yield _line("matching", term.matcher.matcher, self._domains(term.counter))

    def _of_owned(self, template: Template) -> Iterator[bytes]:
        for term in template.owned:
            name: tuple[str, ...] = (term.role.value, str(term.weight))
            counted = self._domains(term.counter)
            if term.limit is not None:
                name = (*name, str(term.max_per_domain))
                counted += self._domains(term.limit.pods)
            yield _line(name, term.matcher.matcher, counted)

    def _of_spread(self, template: Template, rule: SpreadRule) -> bytes:
        counted = b"" if rule.counter is None else self._domains(rule.counter)
        matcher: tuple[object, ...] = (template.namespace, rule.selector)
        if rule.namespaces is not None:
            matcher = (*matcher, rule.namespaces)
        return _line("spread", matcher, self._set(rule.included_nodes) + counted)

    def _domains(self, counter: DomainCounter) -> bytes:
        """Return a hash of the domains that hold pods, identified by their label values."""
        hashed = self._counters.get(counter)
        if hashed is None:
            key, counts = counter.key, counter.counts
            domains = [
                (self._value(key, domain), counts.data[domain])
                for domain in counts.nonzero()[0].tolist()
            ]
            domains.sort()
            hashed = _hash(msgspec.json.encode((key.name, counter.total, domains)))
            self._counters[counter] = hashed
        return hashed

    def _value(self, key: TopologyKey, domain: int) -> str:
        """Return a domain's value, or "" for a domain without nodes, which should hold no pods."""
        if isinstance(key, NodeItself):
            return _name(self._nodes, domain)
        values = key.values.values
        return (values[domain] if domain < len(values) else None) or ""

    def _set(self, included_nodes: IncludedNodes) -> bytes:
        hashed = self._sets.get(included_nodes)
        if hashed is None:
            domains = [
                self._domains(counter) for _, counter in sorted(included_nodes.nodes_of.items())
            ]
            hashed = _hash(included_nodes.mask.take(self._order).tobytes() + b"".join(domains))
            self._sets[included_nodes] = hashed
        return hashed


def _name(nodes: NodeTable, slot: int) -> str:
    """Return a node's name, or "" for a slot without a node."""
    node = nodes.nodes[slot] if slot < len(nodes.nodes) else None
    return "" if node is None else node.name


def _hash(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=_SIZE).digest()


def _line(name: object, matcher: object, counted: bytes) -> bytes:
    return msgspec.json.encode((name, _sort_sets(matcher))) + counted


def _sort_sets(value: object) -> object:
    """Convert sets to sorted lists, because the order of a set differs between processes."""
    if isinstance(value, frozenset):
        return sorted((_sort_sets(member) for member in value), key=msgspec.json.encode)
    if isinstance(value, tuple):
        return [_sort_sets(member) for member in value]
    return value
