"""InterPodAffinity: required terms exclude nodes by domain, preferred ones score, both symmetric.

Every question is a read of counters: how many matching pods, or owners of a matching term, the
node's domain holds.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Self

import numpy as np
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
from service.engine.state.classes import OwnedTerm, PodClass, Role
from service.engine.state.columns import Ints
from service.engine.state.counters import DomainCounter
from service.engine.state.nodes import NodeTable
from service.engine.state.rank_bits import VETO
from service.engine.state.topology import TopologyKey
from service.engine.state.vetoes import Vetoes, label_vetoes
from service.engine.state.views import Weighed
from service.model.config import ClusterConfig, SchedulerProfile
from service.model.objects import Pod, PodAffinity, PodAffinityTerm
from service.model.selectors import matches

NAME = "InterPodAffinity"
TABLE_MAX = 1024
"""Up to such a span between the raw scores their scale is looked up."""
AFFINITY = "node(s) didn't match pod affinity rules"
ANTI_AFFINITY = "node(s) didn't match pod anti-affinity rules"
EXISTING = "node(s) didn't satisfy existing pods anti-affinity rules"


@dataclass(frozen=True, kw_only=True)
class AffinityArguments:
    """How InterPodAffinity scores."""

    hard_weight: int = 1
    symmetric_affinity: bool = True
    symmetric_anti_affinity: bool = True
    ignore_preferred_of_existing: bool = False
    weight_per_term: bool = False


class InterPodAffinity(RelationPlugin):
    name: ClassVar[str] = NAME
    filters: ClassVar[bool] = True
    weight: ClassVar[int] = 2
    events: ClassVar[frozenset[Change]] = frozenset(
        {
            Change.NODE_ADDED,
            Change.NODE_REMOVED,
            Change.NODE_RELABELLED,
            Change.POD_CAME,
            Change.POD_LEFT,
            Change.POD_RELABELLED,
            Change.NAMESPACE_RELABELLED,
        }
    )

    def __init__(self, arguments: AffinityArguments) -> None:
        self._arguments = arguments

    @classmethod
    @override
    def of(cls, profile: SchedulerProfile, config: ClusterConfig) -> Self:
        return cls(
            AffinityArguments(
                hard_weight=profile.hard_pod_affinity_weight,
                symmetric_affinity=config.symmetric_preferred_affinity,
                symmetric_anti_affinity=config.symmetric_preferred_anti_affinity,
                ignore_preferred_of_existing=profile.ignore_preferred_terms_of_existing_pods,
                weight_per_term=config.weight_per_term,
            )
        )

    @override
    def concerns(self, pod_class: PodClass) -> bool:
        """False where the filter passes every node, so that it costs nothing."""
        template = pod_class.template
        return bool(template.affinity or template.anti_affinity or forbidding_terms(pod_class))

    @override
    def vetoes(
        self, nodes: NodeTable, pod_class: PodClass, expected: Sequence[PodClass] = ()
    ) -> list[Vetoes]:
        """What each term excludes.

        Required affinity to pods of an `expected` class only asks for the topology key.
        """
        vetoes = _lacking(nodes, pod_class, expected)
        for counter in _repelling(pod_class):
            if counter.key.has_few_domains:
                vetoes.append(Vetoes(counter.key, counter.held_domains()))
            else:
                vetoes.append(Vetoes(counter.key, nodes=nodes.views.held(counter)))
        return vetoes

    @override
    def failures(self, nodes: NodeTable, pod_class: PodClass) -> list[Failure]:
        """One reason a node: affinity before anti-affinity before others' anti-affinity."""
        open_nodes = np.ones(nodes.size, dtype=np.bool_)
        failures = []
        if pod_class.template.affinity:
            passing = np.ones(nodes.size, dtype=np.bool_)
            for vetoes in _lacking(nodes, pod_class):
                passing &= vetoes.nodes == 0
            failures.append(Failure(AFFINITY, ~passing, unresolvable=True))
            open_nodes &= passing
        own = [term.counter for term in pod_class.template.anti_affinity]
        others = [term.counter for term in forbidding_terms(pod_class)]
        for reason, counters in ((ANTI_AFFINITY, own), (EXISTING, others)):
            held = np.zeros(nodes.size, dtype=np.bool_)
            for counter in counters:
                held |= counter.key.on_nodes(counter.counts) > 0
            failures.append(Failure(reason, held & open_nodes, unresolvable=False))
            open_nodes &= ~held
        return failures

    @override
    def scoring(self, nodes: NodeTable, pod_class: PodClass) -> RelativeScore | None:
        terms = self._scoring_terms(pod_class)
        return AffinityScore(self, nodes, terms) if terms else None

    def _scoring_terms(self, pod_class: PodClass) -> tuple[Weighed, ...]:
        """Every term that scores; none where nothing matched at all, and the score is skipped."""
        arguments = self._arguments
        if arguments.ignore_preferred_of_existing and not pod_class.template.preferred:
            return ()
        per_term = arguments.weight_per_term
        answer = [
            Weighed(term.counter, term.weight, once=per_term)
            for term in pod_class.template.preferred
            if term.counter.total
        ]
        for entry in pod_class.matched:
            for owned in entry.terms:
                weight = self._weight(owned) if owned.counter.total else 0
                if weight:
                    answer.append(Weighed(owned.counter, weight, once=False))
        return tuple(answer)

    @override
    def scale(self, above: int, span: int) -> int:
        return scaled(above, span)

    def _weight(self, term: OwnedTerm) -> int:
        arguments = self._arguments
        match term.role:
            case Role.ATTRACTS_HARD:
                return arguments.hard_weight
            case Role.ATTRACTS:
                return term.weight if arguments.symmetric_affinity else 0
            case Role.REPELS:
                return -term.weight if arguments.symmetric_anti_affinity else 0
            case Role.FORBIDS:
                return 0

    @classmethod
    @override
    def helps(cls, event: ClusterEvent, pod: Pod, reasons: Collection[str]) -> bool:
        if event.relabelled is not None:
            keys = {term.topology_key for term in _required_terms(pod)}
            # Where other pods' terms reject, nothing is known of their topology keys.
            return EXISTING in reasons or not keys.isdisjoint(event.relabelled)
        return not event.pods or any(_are_related(pod, other) for other in event.pods)

    @classmethod
    @override
    def topics(cls, pod: Pod, reasons: Collection[str]) -> frozenset[Pair] | None:
        return selected_pairs(term.label_selector for term in _required_terms(pod))

    @classmethod
    @override
    def labels_of(cls, event: ClusterEvent) -> frozenset[Pair] | None:
        """Whom a pod kept out that is gone, its labels do not tell."""
        if event.freed is not None and any(map(_forbids, event.pods)):
            return None
        return event.pod_labels


class AffinityScore(RelativeScore):
    """Between the least and the greatest sum of the weights of terms."""

    def __init__(
        self, plugin: InterPodAffinity, nodes: NodeTable, terms: tuple[Weighed, ...]
    ) -> None:
        self.terms = terms
        self._plugin = plugin
        self._nodes = nodes

    @override
    def by_domain(self, vacant: Vacant) -> DomainScores | None:
        """The scores where all terms share a key of few domains; None where they do not."""
        terms = self.terms
        key = terms[0].counter.key
        if not key.has_few_domains or any(each.counter.key is not key for each in terms):
            return None
        raw = terms[0].per_domain().tolist()
        for more in terms[1:]:
            raw = [one + other for one, other in zip(raw, more.per_domain().tolist(), strict=True)]
        vacancies = vacant(key)
        present = [each for each, nobody in zip(raw, vacancies, strict=True) if not nobody]
        if not present:
            return DomainScores(key, [0] * len(raw))
        least, span = min(present), max(present) - min(present)
        return DomainScores(
            key,
            [
                0 if nobody else scaled(each - least, span)
                for each, nobody in zip(raw, vacancies, strict=True)
            ],
        )

    @override
    def on_nodes(self, ranks: Ints, weight: int) -> Ints | None:
        """0 for the least sum, 100 for the greatest; None if they are equal."""
        raw = self._raw()
        bounds = bounds_of(raw, ranks)
        if bounds is None or bounds.least == bounds.greatest:
            return None
        above, span = bounds.above(raw), bounds.greatest - bounds.least
        if span > TABLE_MAX:
            return weight * _scaled(above, span)
        return _scale(span, weight).take(above)

    def _raw(self) -> Ints:
        """Shape (nodes,), read-only: the weights of pods that attract less of those that repel."""
        by_key: dict[TopologyKey, tuple[Weighed, ...]] = {}
        for each in self.terms:
            by_key[each.counter.key] = (*by_key.get(each.counter.key, ()), each)
        per_node = [self._nodes.views.weighed(each) for each in by_key.values()]
        return sum(per_node[1:], per_node[0])


def scaled(above: int, span: int) -> int:
    """0 to 100 for so much of the span, in floating point and cut off, as Kubernetes does."""
    return int(MAX_NODE_SCORE * (above / span)) if span else 0


def _scaled(above: Ints, span: int) -> Ints:
    """The same of many; the span is not 0."""
    scores: Ints = (MAX_NODE_SCORE * (above / span)).astype(np.int64)
    return scores


@lru_cache(maxsize=128)
def _scale(span: int, weight: int) -> Ints:
    """Shape (span + 1,), read-only: the weighed score of each distance from the least; the span is not 0."""
    return weight * _scaled(np.arange(span + 1), span)


def _lacking(
    nodes: NodeTable, pod_class: PodClass, expected: Sequence[PodClass] = ()
) -> list[Vetoes]:
    """Where terms are not met; by the first-pod rule they are where nobody matches any yet.

    That rule is for pods that match themselves, on nodes with the keys.
    """
    vetoes: list[Vetoes] = []
    terms = pod_class.template.affinity
    if not terms:
        return vetoes
    first = not any(term.counter.total for term in terms) and pod_class.matches_all(terms)
    for term in terms:
        key = term.counter.key
        if first or any(each in term.matcher.classes for each in expected):
            vetoes.append(label_vetoes(key))
        elif key.has_few_domains:
            vetoes.append(Vetoes(key, [held ^ VETO for held in term.counter.held_domains()]))
        else:
            vetoes.append(Vetoes(key, nodes=nodes.views.held(term.counter) ^ VETO))
    return vetoes


def forbidding_terms(pod_class: PodClass) -> list[OwnedTerm]:
    """Required anti-affinity terms of placed pods that match this class."""
    return [
        term
        for entry in pod_class.matched
        for term in entry.terms
        if term.role is Role.FORBIDS and term.counter.total
    ]


def _repelling(pod_class: PodClass) -> list[DomainCounter]:
    own = [term.counter for term in pod_class.template.anti_affinity if term.counter.total]
    return own + [term.counter for term in forbidding_terms(pod_class)]


def _required_terms(pod: Pod) -> Iterator[PodAffinityTerm]:
    yield from _terms(pod, "pod_affinity")
    yield from _terms(pod, "pod_anti_affinity")


def _forbids(pod: Pod) -> bool:
    """Whether a pod keeps others out by required anti-affinity."""
    return any(True for _ in _terms(pod, "pod_anti_affinity"))


def _terms(pod: Pod, name: str) -> Iterator[PodAffinityTerm]:
    rules: PodAffinity | None = getattr(pod.spec.affinity, name, None)
    if rules is not None:
        yield from rules.required_during_scheduling_ignored_during_execution or ()
        yield from rules.required_during_scheduling_required_during_execution or ()


def _are_related(waiting: Pod, other: Pod) -> bool:
    """Whether a term of the one may be about the other; namespace labels are not looked up."""
    own = any(_may_match(term, waiting, other) for term in _required_terms(waiting))
    return own or any(
        _may_match(term, other, waiting) for term in _terms(other, "pod_anti_affinity")
    )


def _may_match(term: PodAffinityTerm, owner: Pod, other: Pod) -> bool:
    everywhere = term.namespace_selector is not None or term.namespaces == ()
    if not everywhere and other.namespace not in (term.namespaces or (owner.namespace,)):
        return False
    return matches(term.label_selector, other.labels)
