"""PodTopologySpread: hard constraints limit the skew between domains; soft ones score it."""

from collections.abc import Callable, Collection, Sequence
from math import log
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt
from typing_extensions import override

from service.engine.framework.events import (
    DOMAINS_CHANGE,
    Change,
    ClusterEvent,
    Pair,
    selected_pairs,
)
from service.engine.framework.plugin import (
    MAX_NODE_SCORE,
    Blame,
    DomainScores,
    Failure,
    Headroom,
    Headrooms,
    RelationPlugin,
    RelativeScore,
    Vacant,
    bounds_of,
)
from service.engine.state.nodes.columns import Ints, Mask, Slots
from service.engine.state.nodes.node_rules import ProfileRules
from service.engine.state.nodes.node_table import NodeTable
from service.engine.state.nodes.rank import SIGN_BIT, VETO
from service.engine.state.nodes.topology import NO_DOMAIN, TopologyKey
from service.engine.state.nodes.vetoes import Vetoes, label_vetoes
from service.engine.state.pods.classes import PodClass
from service.engine.state.pods.default_spread import decides
from service.engine.state.pods.spread import SpreadRule
from service.model.cluster.cluster_config import ClusterConfig, SchedulerProfile
from service.model.cluster.plugin_args import PodTopologySpreadArgs
from service.model.cluster.plugin_rules import Arguments
from service.model.core.kind import DeclaredObject
from service.model.core.primitives import Partial
from service.model.core.selectors import matches
from service.model.pods.pod import Pod, TopologySpreadConstraint

Floats = npt.NDArray[np.float64]
NAME = "PodTopologySpread"
SKEW = "node(s) didn't match pod topology spread constraints"
MISSING = f"{SKEW} (missing required label)"
SYSTEM_CONSTRAINTS = (
    TopologySpreadConstraint(
        topology_key="kubernetes.io/hostname", when_unsatisfiable="ScheduleAnyway", max_skew=3
    ),
    TopologySpreadConstraint(
        topology_key="topology.kubernetes.io/zone", when_unsatisfiable="ScheduleAnyway", max_skew=5
    ),
)
"""Kubernetes' built-in default constraints (`defaultingType: System`)."""
UNBOUNDED = 2**40
"""A number that exceeds the pods of any cluster."""


class PodTopologySpread(RelationPlugin):
    name: ClassVar[str] = NAME
    filters: ClassVar[bool] = True
    weight: ClassVar[int] = 2
    arguments: ClassVar[type[Arguments] | None] = PodTopologySpreadArgs
    events: ClassVar[frozenset[Change]] = DOMAINS_CHANGE | {
        Change.NODE_TAINTED,
        Change.OBJECT_CHANGED,
        Change.NAMESPACE_RELABELLED,
    }

    def __init__(
        self, constraints: tuple[TopologySpreadConstraint, ...] = (), *, need_keys: bool = True
    ) -> None:
        self._constraints = constraints
        self._need_keys = need_keys

    @classmethod
    @override
    def of(cls, profile: SchedulerProfile, config: ClusterConfig) -> Self:
        arguments = profile.arguments_of(cls.name, PodTopologySpreadArgs)
        own = arguments.default_constraints
        otherwise = config.default_topology_spread if own is None else "List"
        if (arguments.defaulting_type or otherwise) == "System":
            return cls(SYSTEM_CONSTRAINTS, need_keys=False)
        return cls(config.default_topology_spread_constraints if own is None else own)

    @override
    def added_to(self, rules: ProfileRules) -> ProfileRules:
        return rules._replace(constraints=self._constraints, constraints_need_keys=self._need_keys)

    @override
    def applies(self, pod_class: PodClass) -> bool:
        template = pod_class.template
        return bool(template.hard_spread or template.soft_spread)

    @override
    def concerns(self, pod_class: PodClass) -> bool:
        """Return whether a class has hard constraints; if not, every node passes the filter."""
        return bool(pod_class.template.hard_spread)

    @override
    def vetoes(
        self, nodes: NodeTable, pod_class: PodClass, expected: Sequence[PodClass] = ()
    ) -> list[Vetoes]:
        """Return the vetoes of each hard constraint.

        A constraint that counts pods of an `expected` class requires only the topology key.
        """
        vetoes = []
        for rule, self_matches in _hard(pod_class):
            key = rule.key
            if expected and _counts_any(rule, pod_class, expected):
                vetoes.append(label_vetoes(key))
            elif key.has_few_domains:
                vetoes.append(Vetoes(key, _vetoed_domains(rule, self_matches=self_matches)))
            else:
                allowed = allowed_domains(rule, self_matches=self_matches)
                vetoes.append(Vetoes(key, nodes=key.on_nodes(np.where(allowed, 0, VETO))))
        return vetoes

    @override
    def failures(self, nodes: NodeTable, pod_class: PodClass) -> list[Failure]:
        """Return the failures; each node fails for the first constraint that it violates."""
        open_nodes = np.ones(nodes.size, dtype=np.bool_)
        missing = np.zeros(nodes.size, dtype=np.bool_)
        skewed = np.zeros(nodes.size, dtype=np.bool_)
        for rule, self_matches in _hard(pod_class):
            keyed = rule.key.keyed
            allowed = allowed_domains(rule, self_matches=self_matches)
            passing = allowed.take(rule.key.domain_of)
            missing |= open_nodes & ~keyed
            skewed |= open_nodes & keyed & ~passing
            open_nodes &= passing
        return [
            Failure(MISSING, missing, unresolvable=True),
            Failure(SKEW, skewed, unresolvable=False),
        ]

    @override
    def headrooms(self, nodes: NodeTable, pod_class: PodClass) -> Headrooms:
        rooms = []
        for rule, self_matches in _hard(pod_class):
            rooms.append(Headroom(MISSING, rule.key.keyed.astype(np.int64) - 1))
            spare = rule.key.on_nodes(_spare(rule, self_matches=self_matches))
            room = Headroom(
                SKEW,
                spare,
                taken=_taken(rule),
                taken_in_code=_taken_in_code(rule, pod_class.namespace),
                counted=rule.included_nodes.mask,
            )
            rooms.append(room)
        return Headrooms(tuple(rooms), first_only=True)

    @override
    def blames(self, nodes: NodeTable, pod_class: PodClass, slot: int) -> list[Blame]:
        blames = []
        for rule, self_matches in _hard(pod_class):
            domain, taken = rule.key.cells[slot], _taken(rule)
            if taken is None or domain == NO_DOMAIN:
                continue
            spare = int(_spare(rule, self_matches=self_matches)[domain])
            if spare < 0:
                may_stay, mask = spare + int(_counts(rule)[domain]), rule.included_nodes.mask
                blames.append(Blame(rule, rule.key, domain, taken, may_stay, mask, SKEW))
        return blames

    @override
    def has_score_for(self, pod_class: PodClass) -> bool:
        return bool(pod_class.template.soft_spread)

    @override
    def scoring(self, nodes: NodeTable, pod_class: PodClass) -> RelativeScore | None:
        rules = pod_class.template.soft_spread
        return SpreadScore(nodes, rules) if rules else None

    @classmethod
    @override
    def helps(cls, event: ClusterEvent, pod: Pod, reasons: Collection[str]) -> bool:
        if event.objects:
            return _selects_otherwise(event.objects, pod)
        if event.change is Change.NAMESPACE_RELABELLED:
            return any(map(_selects_namespaces, pod.spec.topology_spread_constraints))
        return not event.pods or any(_may_be_counted(pod, other) for other in event.pods)

    @classmethod
    @override
    def topics(cls, pod: Pod, reasons: Collection[str]) -> frozenset[Pair] | None:
        constraints = pod.spec.topology_spread_constraints
        # A pod without constraints of its own was rejected by the cluster's default constraints.
        return (
            selected_pairs(constraint.label_selector for constraint in constraints)
            if constraints
            else None
        )

    @classmethod
    @override
    def labels_of(cls, event: ClusterEvent) -> frozenset[Pair] | None:
        return event.pod_labels


class SpreadScore(RelativeScore):
    """The score based on the number of pods in each domain of the soft constraints."""

    def __init__(self, nodes: NodeTable, rules: Sequence[SpreadRule]) -> None:
        self._nodes = nodes
        self._rules = rules

    @override
    def by_domain(self, vacant: Vacant) -> DomainScores | None:
        """Return the scores of a single soft constraint if its key has few domains, else None."""
        rules = self._rules
        if len(rules) != 1 or rules[0].per_node or not rules[0].key.has_few_domains:
            return None
        if not rules[0].needs_key:
            return None
        rule = rules[0]
        vacancies = vacant(rule.key)
        vacancies[-1] = True
        weight = log(vacancies.count(False) + 2)
        raw = [int(pods * weight + (rule.max_skew - 1) + 0.5) for pods in _counts(rule).tolist()]
        scored = [score for domain, score in enumerate(raw) if not vacancies[domain]]
        if not scored:
            return DomainScores(rule.key, [0] * len(raw))
        least, greatest = min(scored), max(scored)
        for domain, score in enumerate(raw):
            raw[domain] = 0 if vacancies[domain] else _reverse(score, least, greatest)
        return DomainScores(rule.key, raw)

    @override
    def on_nodes(self, ranks: Ints, weight: int) -> Ints | None:
        """Return scores that are higher for fewer pods, and 0 for nodes that lack a key."""
        ignored = ranks >> SIGN_BIT
        for rule in self._rules:
            if rule.needs_key:
                ignored = ignored | (rule.key.keyed.astype(np.int64) - 1)
        return weight * _normalize(self._raw(ignored), ignored)

    def _raw(self, ignored: Ints) -> Ints:
        """Return raw scores, shape (nodes,), int64, which are higher for more pods.

        Nodes for which `ignored` is -1 instead of 0 do not form domains.
        """
        if len(self._rules) == 1 and self._rules[0].needs_key:
            per_domain, key = _domain_scores(self._rules[0], ignored)
            return _round(per_domain).take(key.domain_of)
        total = np.zeros(self._nodes.size, dtype=np.float64)
        for rule in self._rules:
            per_domain, key = _domain_scores(rule, ignored)
            added = per_domain.take(key.domain_of)
            counts_everywhere = rule.needs_key or rule.key.on_every_slot
            total += added if counts_everywhere else added * rule.key.keyed
        return _round(total)


def _normalize(raw: Ints, ignored: Ints) -> Ints:
    """Return raw scores reversed and scaled to 0 to 100, shape (nodes,); 0 if `ignored` is -1."""
    bounds = bounds_of(raw, ignored)
    if bounds is None:
        return np.zeros_like(raw)
    least, greatest, _ = bounds
    if greatest == 0:
        return MAX_NODE_SCORE & ~ignored
    steps = np.arange(greatest - least + 1)
    table = MAX_NODE_SCORE * (greatest - steps) // greatest
    return table.take((raw - least) & ~ignored) & ~ignored


def _reverse(raw: int, least: int, greatest: int) -> int:
    return MAX_NODE_SCORE * (greatest + least - raw) // greatest if greatest else MAX_NODE_SCORE


def _hard(pod_class: PodClass) -> list[tuple[SpreadRule, bool]]:
    itself = pod_class.hard_self
    return [(rule, itself[place]) for place, rule in enumerate(pod_class.template.hard_spread)]


def allowed_domains(rule: SpreadRule, *, self_matches: bool) -> Mask:
    """Return the domains that can take one more pod within the skew, shape (capacity + 1,), bool.

    The last entry, for nodes without the key, is False.
    """
    existing = rule.included_nodes.nodes_of[rule.key.name].counts[:-1] > 0
    counts = _counts(rule)[:-1]
    eligible = counts[existing]
    least = int(eligible.min()) if 0 < len(eligible) >= rule.min_domains else 0
    allowed = np.zeros(rule.key.capacity + 1, dtype=np.bool_)
    np.less_equal(counts, rule.max_skew + least - int(self_matches), out=allowed[:-1])
    return allowed


def _spare(rule: SpreadRule, *, self_matches: bool) -> Ints:
    """Return how many more pods each domain may hold, shape (capacity + 1,).

    Each domain is compared only with the others, because it may become the emptiest as its pods
    leave.
    """
    existing = rule.included_nodes.nodes_of[rule.key.name].counts[:-1] > 0
    counts = _counts(rule)
    others = np.zeros(rule.key.capacity + 1, dtype=np.int64)
    least = np.sort(counts[:-1][existing])
    if 0 < len(least) >= rule.min_domains:
        others[:] = least[0]
        alone = existing & (counts[:-1] == least[0])
        if int(alone.sum()) == 1:
            others[:-1][alone] = least[1] if len(least) > 1 else UNBOUNDED
    spare: Ints = others + rule.max_skew - int(self_matches) - counts
    spare[-1] = 0
    return spare


def _taken(rule: SpreadRule) -> Callable[[PodClass], int] | None:
    """Return a function that returns how often a rule counts a pod of a class, or None."""
    counter = rule.counter
    if counter is None:
        return None

    def taken(pod_class: PodClass) -> int:
        entries = pod_class.matched
        return sum(counted is counter for entry in entries for counted in entry.counters.values())

    return taken


def _taken_in_code(rule: SpreadRule, namespace: str) -> Callable[[PodClass], int] | None:
    """Return `_taken` as in kube-scheduler's preemption, or None.

    There, terminating pods that leave lower the counts, too, although they were never counted.
    """
    counted = _taken(rule)
    if counted is None:
        return None

    def taken(pod_class: PodClass) -> int:
        if pod_class.terminating and pod_class.namespace == namespace:
            return int(rule.uncounts(pod_class.labels))
        return counted(pod_class)

    return taken


def _vetoed_domains(rule: SpreadRule, *, self_matches: bool) -> list[int]:
    """Return the complement of `allowed_domains` as vetoes, using plain integers."""
    existing = rule.included_nodes.nodes_of[rule.key.name].counts.tolist()
    counts = _counts(rule).tolist()
    eligible = [count for domain, count in enumerate(counts) if existing[domain]]
    least = min(eligible) if 0 < len(eligible) >= rule.min_domains else 0
    greatest = rule.max_skew + least - int(self_matches)
    vetoes = [0 if count <= greatest else VETO for count in counts]
    vetoes[-1] = VETO
    return vetoes


def _counts(rule: SpreadRule) -> Ints:
    """Return the number of counted pods in each domain, shape (capacity + 1,), int64."""
    if rule.counter is None:
        return np.zeros(rule.key.capacity + 1, dtype=np.int64)
    return rule.counter.counts


def _domain_scores(rule: SpreadRule, ignored: Ints) -> tuple[Floats, TopologyKey]:
    """Return each domain's part of the score, shape (capacity + 1,), and the domains' key."""
    weight = log(_size(rule, ignored) + 2)
    counts = _counts(rule) if rule.needs_key else _counts_of_any(rule)
    weighted: Floats = counts.astype(np.float64) * weight + (rule.max_skew - 1)
    return weighted, rule.key if rule.counter is None else rule.counter.key


def _round(scores: Floats) -> Ints:
    """Round half away from zero, as Go does; scores are not negative."""
    return np.floor(scores + 0.5).astype(np.int64)


def _size(rule: SpreadRule, ignored: Ints) -> int:
    """Count the domains of the scored nodes, or, for the hostname key, the nodes themselves."""
    if rule.per_node:
        return len(ignored) + int(ignored.sum())
    nodes_in = np.bincount((rule.key.domain_of | ignored) + 1, minlength=1)
    size = int(np.count_nonzero(nodes_in[1:]))
    if rule.needs_key or rule.key.on_every_slot:
        return size
    return size + _has_domain_without_label(rule, ignored, nodes_in)


def _has_domain_without_label(rule: SpreadRule, ignored: Ints, nodes_in: Slots) -> bool:
    """Return whether scored nodes without the label form an additional domain.

    If the value "" exists, they share its domain.
    """
    domain = rule.key.values.ids.get("")
    if domain is not None and domain + 1 < len(nodes_in) and nodes_in[domain + 1]:
        return False
    return bool((~rule.key.keyed & (ignored == 0)).any())


def _counts_of_any(rule: SpreadRule) -> Ints:
    """Return `_counts`, with pods on nodes without the label counted under the empty value.

    If no node has an empty value, this makes no difference.
    """
    domain = None if rule.per_node else rule.key.values.ids.get("")
    if domain is None or rule.on_nodes is None:
        return _counts(rule)
    without = rule.included_nodes.mask & ~rule.key.keyed
    counts = _counts(rule).copy()
    counts[domain] += int(rule.on_nodes.counts[: len(without)][without].sum())
    return counts


def _counts_any(rule: SpreadRule, pod_class: PodClass, others: Sequence[PodClass]) -> bool:
    if rule.namespaces is not None:
        taken = _taken(rule)
        return taken is not None and any(map(taken, others))
    return any(
        other.namespace == pod_class.namespace and rule.counts(other.labels) for other in others
    )


def _selects_otherwise(objects: Sequence[DeclaredObject[Partial]], pod: Pod) -> bool:
    """Return whether a change may make the pod's default constraints select other pods."""
    if pod.spec.topology_spread_constraints:
        return False
    if len(objects) > 1 and objects[0].body == objects[1].body:
        return False
    return any(decides(manifest, pod) for manifest in objects)


def _may_be_counted(waiting: Pod, other: Pod) -> bool:
    """Return whether a constraint may count the other pod, ignoring `matchLabelKeys`."""
    constraints = waiting.spec.topology_spread_constraints
    same = waiting.namespace == other.namespace
    if not constraints:
        return same
    return any(
        (same or _selects_namespaces(constraint))
        and matches(constraint.label_selector, other.labels)
        for constraint in constraints
    )


def _selects_namespaces(constraint: TopologySpreadConstraint) -> bool:
    return constraint.namespace_selector is not None
