"""PodTopologySpread: hard constraints bound the skew between domains, soft ones score it."""

from collections.abc import Collection, Sequence
from math import log
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from typing_extensions import override

from service.engine.cluster_events import Change, ClusterEvent, Pair, selected_pairs
from service.engine.plugin import (
    MAX_NODE_SCORE,
    DomainScores,
    Failure,
    RelationPlugin,
    RelativeScore,
    Vacant,
    bounds_of,
)
from service.engine.state.classes import PodClass
from service.engine.state.columns import Ints, Mask
from service.engine.state.nodes import NodeTable
from service.engine.state.rank_bits import SIGN_BIT, VETO
from service.engine.state.spread import SpreadRule
from service.engine.state.topology import TopologyKey
from service.engine.state.vetoes import Vetoes, label_vetoes
from service.model.objects import Pod
from service.model.selectors import matches

Floats = npt.NDArray[np.float64]
NAME = "PodTopologySpread"
SKEW = "node(s) didn't match pod topology spread constraints"
MISSING = f"{SKEW} (missing required label)"


class PodTopologySpread(RelationPlugin):
    name: ClassVar[str] = NAME
    filters: ClassVar[bool] = True
    weight: ClassVar[int] = 2
    events: ClassVar[frozenset[Change]] = frozenset(
        {
            Change.NODE_ADDED,
            Change.NODE_REMOVED,
            Change.NODE_RELABELLED,
            Change.NODE_TAINTED,
            Change.POD_CAME,
            Change.POD_LEFT,
            Change.POD_RELABELLED,
        }
    )

    @override
    def concerns(self, pod_class: PodClass) -> bool:
        """False where the filter passes every node."""
        return bool(pod_class.template.hard_spread)

    @override
    def vetoes(
        self, nodes: NodeTable, pod_class: PodClass, expected: Sequence[PodClass] = ()
    ) -> list[Vetoes]:
        """What each hard constraint excludes.

        A constraint that counts pods of an `expected` class only asks for the topology key.
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
        """Constraints in order; the first that a node fails gives its reason."""
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
    def has_score_for(self, pod_class: PodClass) -> bool:
        return bool(pod_class.template.soft_spread)

    @override
    def scoring(self, nodes: NodeTable, pod_class: PodClass) -> RelativeScore | None:
        rules = pod_class.template.soft_spread
        return SpreadScore(nodes, rules) if rules else None

    @classmethod
    @override
    def helps(cls, event: ClusterEvent, pod: Pod, reasons: Collection[str]) -> bool:
        return not event.pods or any(_may_be_counted(pod, other) for other in event.pods)

    @classmethod
    @override
    def topics(cls, pod: Pod, reasons: Collection[str]) -> frozenset[Pair] | None:
        constraints = pod.spec.topology_spread_constraints
        # Without any of its own it was the cluster's default constraints that rejected.
        return selected_pairs(each.label_selector for each in constraints) if constraints else None

    @classmethod
    @override
    def labels_of(cls, event: ClusterEvent) -> frozenset[Pair] | None:
        return event.pod_labels


class SpreadScore(RelativeScore):
    """By the pods in each domain of the soft constraints."""

    def __init__(self, nodes: NodeTable, rules: Sequence[SpreadRule]) -> None:
        self._nodes = nodes
        self._rules = rules

    @override
    def by_domain(self, vacant: Vacant) -> DomainScores | None:
        """The scores of a single soft constraint on a key of few domains; None for others."""
        rules = self._rules
        if len(rules) != 1 or rules[0].per_node or not rules[0].key.has_few_domains:
            return None
        rule = rules[0]
        vacancies = vacant(rule.key)
        vacancies[-1] = True
        weight = log(vacancies.count(False) + 2)
        raw = [int(each * weight + (rule.max_skew - 1) + 0.5) for each in _counts(rule).tolist()]
        scored = [each for domain, each in enumerate(raw) if not vacancies[domain]]
        if not scored:
            return DomainScores(rule.key, [0] * len(raw))
        least, greatest = min(scored), max(scored)
        for domain, each in enumerate(raw):
            raw[domain] = 0 if vacancies[domain] else _reversed(each, least, greatest)
        return DomainScores(rule.key, raw)

    @override
    def on_nodes(self, ranks: Ints, weight: int) -> Ints | None:
        """Reversed: the fewer pods, the better; 0 for nodes that lack a key."""
        ignored = ranks >> SIGN_BIT
        for rule in self._rules:
            ignored = ignored | (rule.key.keyed.astype(np.int64) - 1)
        return weight * _normalized(self._raw(ignored), ignored)

    def _raw(self, ignored: Ints) -> Ints:
        """Shape (nodes,): the more pods, the more; those of `ignored`, -1 and else 0, make no domains."""
        if len(self._rules) == 1:
            per_domain, key = _weighed(self._rules[0], ignored)
            return _rounded(per_domain).take(key.domain_of)
        total = np.zeros(self._nodes.size, dtype=np.float64)
        for rule in self._rules:
            per_domain, key = _weighed(rule, ignored)
            total += per_domain.take(key.domain_of)
        return _rounded(total)


def _normalized(raw: Ints, ignored: Ints) -> Ints:
    """Shape (nodes,), reversed: 0 to 100; 0 where `ignored` is -1."""
    bounds = bounds_of(raw, ignored)
    if bounds is None:
        return np.zeros_like(raw)
    least, greatest, _ = bounds
    if greatest == 0:
        return MAX_NODE_SCORE & ~ignored
    steps = np.arange(greatest - least + 1)
    table = MAX_NODE_SCORE * (greatest - steps) // greatest
    return table.take((raw - least) & ~ignored) & ~ignored


def _reversed(raw: int, least: int, greatest: int) -> int:
    return MAX_NODE_SCORE * (greatest + least - raw) // greatest if greatest else MAX_NODE_SCORE


def _hard(pod_class: PodClass) -> list[tuple[SpreadRule, bool]]:
    return list(zip(pod_class.template.hard_spread, pod_class.hard_self, strict=True))


def allowed_domains(rule: SpreadRule, *, self_matches: bool) -> Mask:
    """Shape (capacity + 1,): domains where one more pod keeps the skew; False for "no label"."""
    existing = rule.eligibility.nodes_of[rule.key.name].counts[:-1] > 0
    counts = _counts(rule)[:-1]
    eligible = counts[existing]
    least = int(eligible.min()) if 0 < len(eligible) >= rule.min_domains else 0
    allowed = np.zeros(rule.key.capacity + 1, dtype=np.bool_)
    np.less_equal(counts, rule.max_skew + least - int(self_matches), out=allowed[:-1])
    return allowed


def _vetoed_domains(rule: SpreadRule, *, self_matches: bool) -> list[int]:
    """`allowed_domains` in plain integers, as vetoes."""
    existing = rule.eligibility.nodes_of[rule.key.name].counts.tolist()
    counts = _counts(rule).tolist()
    eligible = [count for domain, count in enumerate(counts) if existing[domain]]
    least = min(eligible) if 0 < len(eligible) >= rule.min_domains else 0
    greatest = rule.max_skew + least - int(self_matches)
    vetoes = [0 if count <= greatest else VETO for count in counts]
    vetoes[-1] = VETO
    return vetoes


def _counts(rule: SpreadRule) -> Ints:
    """Shape (capacity + 1,): pods that count, per domain."""
    if rule.counter is None:
        return np.zeros(rule.key.capacity + 1, dtype=np.int64)
    return rule.counter.counts


def _weighed(rule: SpreadRule, ignored: Ints) -> tuple[Floats, TopologyKey]:
    """What each domain adds to the score, shape (capacity + 1,), and the key of the domains."""
    weight = log(_size(rule, ignored) + 2)
    weighed: Floats = _counts(rule).astype(np.float64) * weight + (rule.max_skew - 1)
    return weighed, rule.key if rule.counter is None else rule.counter.key


def _rounded(scores: Floats) -> Ints:
    """Half away from zero, as Go rounds; scores are not negative."""
    return np.floor(scores + 0.5).astype(np.int64)


def _size(rule: SpreadRule, ignored: Ints) -> int:
    """Distinct domains among the scored nodes; for the hostname key the nodes themselves."""
    if rule.per_node:
        return len(ignored) + int(ignored.sum())
    nodes_in = np.bincount((rule.key.domain_of | ignored) + 1, minlength=1)
    return int(np.count_nonzero(nodes_in[1:]))


def _counts_any(rule: SpreadRule, pod_class: PodClass, others: Sequence[PodClass]) -> bool:
    return any(
        other.namespace == pod_class.namespace and rule.counts(other.labels) for other in others
    )


def _may_be_counted(waiting: Pod, other: Pod) -> bool:
    """Whether a constraint may count the other pod; label keys only narrow it further."""
    constraints = waiting.spec.topology_spread_constraints
    return waiting.namespace == other.namespace and (
        not constraints or any(matches(each.label_selector, other.labels) for each in constraints)
    )
