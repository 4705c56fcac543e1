"""A1, A2 and A9 of every single placement, by counters: for logs too long for the reference.

It knows only what racing workloads use (requests, required pod affinity and anti-affinity and hard
spread with `matchLabels` in the pod's own namespace) and refuses everything else. A rule is counted
from the moment when the first pod has it, for as long as its namespace has pods.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from service.model.log.commit import Change
from tests.concurrency.checker.history import History, Key, Violation
from tests.reference.fit import allocatable_of
from tests.reference.resources import requests
from tests.reference.view import REQUIRED, Manifest, affinity_of, labels_of, spec_of

Labels = frozenset[tuple[str, str]]
_POLICIES = {"nodeAffinityPolicy": "Honor", "nodeTaintsPolicy": "Ignore"}
"""The defaults, with which every node of such a cluster counts."""


class Rule(NamedTuple):
    """Pods with these labels, in the pod's namespace, by domains of a topology key."""

    selector: Labels
    key: str


class Shape(NamedTuple):
    """What a pod asks for; shared by all pods that differ in their name only."""

    labels: Labels
    requests: dict[str, int]
    affinity: tuple[Rule, ...]
    anti_affinity: tuple[Rule, ...]
    spread: tuple[tuple[Rule, int], ...]

    def matches(self, rule: Rule) -> bool:
        return rule.selector <= self.labels


class Placed(NamedTuple):
    """A pod on a node."""

    shape: Shape
    node_name: str


class Tally(NamedTuple):
    """What the check of a history went through."""

    violations: list[Violation]
    placements: int
    fullness: list[float]
    """Before each placement, the share of all nodes' room for pods of the commonest size."""


def check_by_counting(history: History) -> Tally:
    """Every placement of a history on the state that it extends."""
    return _Counting(history).run()


class _Counting:
    def __init__(self, history: History) -> None:
        self._history = history
        self._nodes: dict[str, Manifest] = {}
        self._domains: dict[str, set[str]] = {}
        self._room: dict[str, dict[str, int]] = {}
        self._used: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._cpu = 0
        self._used_cpu = 0
        self._pods: dict[Key, Placed] = {}
        self._in: defaultdict[str, set[Key]] = defaultdict(set)
        self._counts: defaultdict[str, dict[Rule, Counter[str]]] = defaultdict(dict)
        """By namespace and rule, the matching pods in each domain."""
        self._owners: defaultdict[str, dict[Rule, Counter[str]]] = defaultdict(dict)
        """Likewise the pods that themselves keep others away by the rule."""
        self._found: list[Violation] = []
        self._fullness: list[float] = []
        groups = [c for c in history.calls if c.action == "place" and c.asked["group"]]
        self._members = {
            call.operation: {tuple(key) for key in call.asked["pods"]} for call in groups
        }
        self._grouped = {key: number for number, keys in self._members.items() for key in keys}

    def run(self) -> Tally:
        changes = self._history.changes
        for commit in self._history.commits:
            self._commit(changes[commit.first - 1 : commit.last])
        return Tally(self._found, len(self._fullness), self._fullness)

    def _commit(self, changes: Sequence[Change]) -> None:
        groups: defaultdict[int, list[Change]] = defaultdict(list)
        for change in changes:
            if change.kind == "Node":
                self._put_node(change)
            elif change.kind == "Pod":
                group = self._grouped.get(tuple(change.key))
                if self._pod(change, alone=group is None) and group is not None:
                    groups[group].append(change)
        for number, members in groups.items():
            self._check_group(number, members)

    def _put_node(self, change: Change) -> None:
        if change.verb == "Delete" or self._pods:
            raise NotImplementedError("nodes that come, change or go beside pods")
        node = msgspec.json.decode(change.body)
        if spec_of(node).get("taints") or spec_of(node).get("unschedulable"):
            raise NotImplementedError("taints")
        self._nodes[change.name] = node
        self._room[change.name] = allocatable_of(node)
        self._cpu = sum(room["cpu"] for room in self._room.values())

    def _pod(self, change: Change, *, alone: bool) -> bool:
        """Whether the change is a placement."""
        key = tuple(change.key)
        before = self._pods.get(key)
        if change.verb == "Delete" or change.node_name is None:
            if before is not None:
                self._remove(key)
            return False
        if before is not None:
            return False  # where it is it stays: the full checker sees to that
        shape = _shape(msgspec.json.decode(change.body))
        is_placement = change.revision > self._history.granted
        if is_placement:
            self._fullness.append(self._used_cpu / self._cpu)
            if alone:
                self._check_rules(change, shape, change.node_name)
        self._add(key, shape, change.node_name)
        if is_placement:
            self._check_capacity(change, change.node_name)
        return is_placement

    # Counting

    def _add(self, key: Key, shape: Shape, node_name: str) -> None:
        namespace = key[1]
        for rule in (*shape.affinity, *shape.anti_affinity, *(rule for rule, _ in shape.spread)):
            if rule not in self._counts[namespace]:
                self._counts[namespace][rule] = self._counted(namespace, rule)
        self._pods[key] = Placed(shape, node_name)
        self._in[namespace].add(key)
        self._count(namespace, shape, node_name, 1)

    def _remove(self, key: Key) -> None:
        shape, node_name = self._pods.pop(key)
        namespace = key[1]
        self._in[namespace].discard(key)
        self._count(namespace, shape, node_name, -1)
        if not self._in[namespace]:
            for each in (self._in, self._counts, self._owners):
                each.pop(namespace, None)

    def _counted(self, namespace: str, rule: Rule) -> Counter[str]:
        placed = (self._pods[key] for key in self._in[namespace])
        return Counter(
            self._domain(each.node_name, rule) for each in placed if each.shape.matches(rule)
        )

    def _count(self, namespace: str, shape: Shape, node_name: str, number: int) -> None:
        for rule, counter in self._counts[namespace].items():
            if shape.matches(rule):
                counter[self._domain(node_name, rule)] += number
        for rule in shape.anti_affinity:
            owners = self._owners[namespace].setdefault(rule, Counter())
            owners[self._domain(node_name, rule)] += number
        used = self._used[node_name]
        used["pods"] += number
        for resource, amount in shape.requests.items():
            used[resource] += number * amount
        self._used_cpu += number * shape.requests.get("cpu", 0)

    def _domain(self, node_name: str, rule: Rule) -> str:
        return labels_of(self._nodes[node_name])[rule.key]

    def _domains_of(self, key: str) -> set[str]:
        """All domains of a topology key; nodes neither come nor change beside pods."""
        if key not in self._domains:
            self._domains[key] = {labels_of(node)[key] for node in self._nodes.values()}
        return self._domains[key]

    # Rules

    def _check_group(self, number: int, members: Sequence[Change]) -> None:
        """All members are here (A9), and each may be where it is with all the others (P10)."""
        absent = self._members[number] - self._pods.keys()
        if absent:
            told = f"operation {number}: {sorted(absent)} have no node"
            self._found.append(Violation("A9", told))
        for change in members:
            key = tuple(change.key)
            shape, node_name = self._pods[key]
            self._count(key[1], shape, node_name, -1)
            self._check_rules(change, shape, node_name)
            self._count(key[1], shape, node_name, 1)

    def _check_rules(self, change: Change, shape: Shape, node_name: str) -> None:
        for problem in self._problems(change.namespace, shape, node_name):
            where = f"{change.namespace}/{change.name} on {node_name} at {change.revision}"
            self._found.append(Violation("A2", f"{where}: {problem}"))

    def _problems(self, namespace: str, shape: Shape, node_name: str) -> Iterator[str]:
        if shape.affinity and not self._is_first(namespace, shape):
            for rule in shape.affinity:
                if not self._matching(namespace, rule)[self._domain(node_name, rule)]:
                    yield f"nobody of {rule} is there"
        for rule in shape.anti_affinity:
            if self._matching(namespace, rule)[self._domain(node_name, rule)]:
                yield f"somebody of {rule} is there"
        for rule, owners in self._owners[namespace].items():
            if shape.matches(rule) and owners[self._domain(node_name, rule)]:
                yield f"somebody who is there keeps {rule} away"
        for rule, most in shape.spread:
            counts = self._matching(namespace, rule)
            domains = self._domains_of(rule.key)
            own = counts[self._domain(node_name, rule)] + shape.matches(rule)
            if own - min(counts[each] for each in domains) > most:
                yield f"the skew of {rule} is beyond {most}: {dict(counts)}"

    def _is_first(self, namespace: str, shape: Shape) -> bool:
        """Of a group: no pod has what its terms ask for, and it has that itself."""
        nobody = not any(self._matching(namespace, rule).total() for rule in shape.affinity)
        return nobody and all(shape.matches(rule) for rule in shape.affinity)

    def _matching(self, namespace: str, rule: Rule) -> Counter[str]:
        counts = self._counts[namespace].get(rule)
        return self._counted(namespace, rule) if counts is None else counts

    def _check_capacity(self, change: Change, node_name: str) -> None:
        room = self._room[node_name]
        for resource, amount in self._used[node_name].items():
            if amount > room.get(resource, 0):
                excess = f"{amount} of {room.get(resource, 0)} {resource}"
                self._found.append(Violation("A1", f"{node_name} at {change.revision}: {excess}"))


def _shape(pod: Manifest) -> Shape:
    spec = {name: value for name, value in spec_of(pod).items() if name != "nodeName"}
    return _shape_of(msgspec.json.encode([labels_of(pod), spec]))


@lru_cache(maxsize=10_000)
def _shape_of(encoded: bytes) -> Shape:
    labels, spec = msgspec.json.decode(encoded)
    pod = {"metadata": {"labels": labels}, "spec": spec}
    if spec.get("nodeSelector") or affinity_of(pod, "nodeAffinity"):
        raise NotImplementedError("rules on nodes")
    return Shape(
        labels=frozenset(labels.items()),
        requests=requests(pod),
        affinity=tuple(_terms(pod, "podAffinity")),
        anti_affinity=tuple(_terms(pod, "podAntiAffinity")),
        spread=tuple(_constraints(spec.get("topologySpreadConstraints") or [])),
    )


def _terms(pod: Manifest, kind: str) -> Iterator[Rule]:
    affinity = affinity_of(pod, kind)
    for required in REQUIRED:
        for term in affinity.get(required) or []:
            yield _rule(term, {"topologyKey", "labelSelector"})


def _constraints(constraints: Iterable[Manifest]) -> Iterator[tuple[Rule, int]]:
    known = {"topologyKey", "labelSelector", "maxSkew", "whenUnsatisfiable", *_POLICIES}
    for constraint in constraints:
        if any(constraint.get(name, value) != value for name, value in _POLICIES.items()):
            raise NotImplementedError(f"{constraint}")
        if constraint["whenUnsatisfiable"] == "DoNotSchedule":
            yield _rule(constraint, known), constraint["maxSkew"]


def _rule(term: dict[str, Any], known: set[str]) -> Rule:
    selector = term["labelSelector"]
    unknown = {name for name, value in term.items() if value is not None} - known
    if unknown or set(selector) != {"matchLabels"}:
        raise NotImplementedError(f"{unknown or selector}")
    return Rule(frozenset(selector["matchLabels"].items()), term["topologyKey"])
