"""InterPodAffinity: required terms exclude nodes by domain, and preferred terms score nodes.

Terms work in both directions: those of placed pods also apply to the incoming pod. Everything is
computed from counters: how many matching pods, or owners of a matching term, the node's domain
holds.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Self

import numpy as np
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
from service.engine.state.nodes.columns import Ints, Mask
from service.engine.state.nodes.counters import DomainBlocker, DomainCounter, WeightedTerm
from service.engine.state.nodes.node_table import NodeTable
from service.engine.state.nodes.rank import VETO
from service.engine.state.nodes.topology import NO_DOMAIN, TopologyKey
from service.engine.state.nodes.vetoes import Vetoes, label_vetoes
from service.engine.state.pods.classes import (
    AffinityTerm,
    MatcherEntry,
    OwnedTerm,
    PodClass,
    Role,
)
from service.engine.state.pods.siblings import are_siblings, sibling_key_of
from service.model.cluster.cluster_config import ClusterConfig, SchedulerProfile
from service.model.cluster.plugin_args import InterPodAffinityArgs
from service.model.cluster.plugin_rules import Arguments
from service.model.core.selectors import matches
from service.model.pods.pod import Pod, PodAffinity, PodAffinityTerm

NAME = "InterPodAffinity"
TABLE_MAX = 1024
"""The largest span of raw scores for which scaled scores are looked up in a table."""
AFFINITY = "node(s) didn't match pod affinity rules"
ANTI_AFFINITY = "node(s) didn't match pod anti-affinity rules"
EXISTING = "node(s) didn't satisfy existing pods anti-affinity rules"
FULL = "node(s) would exceed maxPerDomain of pod anti-affinity rules"
EXISTING_FULL = "node(s) would exceed maxPerDomain of existing pods anti-affinity rules"


@dataclass(frozen=True, kw_only=True)
class AffinityArguments:
    """The configuration of InterPodAffinity's score."""

    hard_weight: int = 1
    symmetric_affinity: bool = True
    symmetric_anti_affinity: bool = True
    ignore_preferred_of_existing: bool = False
    weight_per_term: bool = False


class InterPodAffinity(RelationPlugin):
    name: ClassVar[str] = NAME
    filters: ClassVar[bool] = True
    weight: ClassVar[int] = 2
    arguments: ClassVar[type[Arguments] | None] = InterPodAffinityArgs
    events: ClassVar[frozenset[Change]] = DOMAINS_CHANGE | {
        Change.POD_AFFINITY_CHANGED,
        Change.POD_OWNER_CHANGED,
        Change.NAMESPACE_RELABELLED,
    }

    def __init__(self, arguments: AffinityArguments) -> None:
        self._arguments = arguments

    @classmethod
    @override
    def of(cls, profile: SchedulerProfile, config: ClusterConfig) -> Self:
        arguments = profile.arguments_of(cls.name, InterPodAffinityArgs)
        hard_weight = arguments.hard_pod_affinity_weight
        return cls(
            AffinityArguments(
                hard_weight=config.hard_pod_affinity_weight if hard_weight is None else hard_weight,
                symmetric_affinity=config.symmetric_preferred_affinity,
                symmetric_anti_affinity=config.symmetric_preferred_anti_affinity,
                ignore_preferred_of_existing=arguments.ignore_preferred_terms_of_existing_pods,
                weight_per_term=config.weight_per_term,
            )
        )

    @override
    def concerns(self, pod_class: PodClass) -> bool:
        """Return whether any term may reject a node; if not, the filter is free."""
        template = pod_class.template
        return bool(template.affinity or template.anti_affinity or forbidding_terms(pod_class))

    @override
    def vetoes(
        self, nodes: NodeTable, pod_class: PodClass, expected: Sequence[PodClass] = ()
    ) -> list[Vetoes]:
        """Return the vetoes of each term.

        Required affinity to pods of an `expected` class requires only the topology key.
        """
        terms = pod_class.template.affinity
        if pod_class.template.siblings is not None:
            terms = pod_class.affinity
        vetoes = affinity_vetoes(nodes, pod_class, terms, expected)
        for blocker in _blockers(pod_class):
            if blocker.key.has_few_domains:
                vetoes.append(Vetoes(blocker.key, blocker.vetoes_by_domain()))
            else:
                vetoes.append(Vetoes(blocker.key, nodes=nodes.views.blocked(blocker)))
        return vetoes

    @override
    def failures(self, nodes: NodeTable, pod_class: PodClass) -> list[Failure]:
        """Return one reason per node: affinity, anti-affinity, or placed pods' anti-affinity."""
        open_nodes = np.ones(nodes.size, dtype=np.bool_)
        failures = []
        if pod_class.template.affinity:
            passing = np.ones(nodes.size, dtype=np.bool_)
            for vetoes in affinity_vetoes(nodes, pod_class, pod_class.affinity):
                passing &= vetoes.nodes == 0
            failures.append(Failure(AFFINITY, ~passing, unresolvable=True))
            open_nodes &= passing
        for reason, rules in _by_reason(pod_class).items():
            blocked = _blocked_by_any(nodes, rules)
            failures.append(Failure(reason, blocked & open_nodes, unresolvable=False))
            open_nodes &= ~blocked
        return failures

    @override
    def headrooms(self, nodes: NodeTable, pod_class: PodClass) -> Headrooms:
        template = pod_class.template
        wanted = pod_class.affinity
        rooms = [
            _affinity_headroom(term, first=first)
            for term, first in zip(wanted, pod_class.first_for(wanted), strict=True)
        ]
        # Keep the order of the reasons, because the filter reports only the first.
        own = sorted(template.anti_affinity, key=_is_limited)
        rooms += [_anti_affinity_headroom(term, pod_class) for term in own]
        existing = forbidding_terms(pod_class)
        rooms += [
            Headroom(EXISTING, _negated_counts(owned.counter), taken=_count_owners(owned))
            for owned in existing
            if owned.limit is None
        ]
        unsure = _last_of_groups(nodes, pod_class)
        limits = [owned.limit for owned in existing if owned.limit is not None]
        if limits:
            # Room is freed when owners leave, but also when pods that the term matches leave.
            full = _blocked_by_any(nodes, limits)
            unsure = full if unsure is None else unsure | full
        return Headrooms(tuple(rooms), unsure, first_only=True)

    @override
    def blames(self, nodes: NodeTable, pod_class: PodClass, slot: int) -> list[Blame]:
        return [
            *_affinity_blames(pod_class, slot),
            *_own_blames(pod_class, slot),
            *_existing_blames(pod_class, slot),
        ]

    @override
    def scoring(self, nodes: NodeTable, pod_class: PodClass) -> RelativeScore | None:
        terms = self._scoring_terms(pod_class)
        return AffinityScore(nodes, terms) if terms else None

    def _scoring_terms(self, pod_class: PodClass) -> tuple[WeightedTerm, ...]:
        """Return every term that scores, or none if nothing matches and the score is skipped."""
        arguments = self._arguments
        if arguments.ignore_preferred_of_existing and not pod_class.template.preferred:
            return ()
        per_term = arguments.weight_per_term
        answer = [
            WeightedTerm(term.counter, term.weight, once=per_term)
            for term in pod_class.template.preferred
            if term.counter.total
        ]
        for entry in pod_class.matched:
            for owned in entry.terms:
                weight = self._weight(owned) if owned.counter.total else 0
                if weight:
                    answer.append(WeightedTerm(owned.counter, weight, once=False))
        return tuple(answer)

    @override
    def scale(self, above: int, span: int) -> int:
        return scale_score(above, span)

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
            return _depends_on_placed(reasons) or not keys.isdisjoint(event.relabelled)
        # Any departing pod may be one of those that filled a domain.
        made_room = EXISTING_FULL in reasons and event.change is not Change.POD_CAME
        if not event.pods or made_room:
            return True
        return any(_are_related(pod, other) for other in event.pods)

    @classmethod
    @override
    def topics(cls, pod: Pod, reasons: Collection[str]) -> frozenset[Pair] | None:
        if EXISTING_FULL in reasons or sibling_key_of(pod) is not None:
            return None
        return selected_pairs(term.label_selector for term in _required_terms(pod))

    @classmethod
    @override
    def labels_of(cls, event: ClusterEvent) -> frozenset[Pair] | None:
        """Return the labels of the event's pods.

        Returns None if a pod with required anti-affinity has left or has other rules, because its
        labels do not reveal which pods it repelled.
        """
        gone = event.change in (Change.POD_LEFT, Change.POD_AFFINITY_CHANGED)
        if gone and any(map(_forbids, event.pods)):
            return None
        return event.pod_labels


class AffinityScore(RelativeScore):
    """The score based on where a node's sum of weights lies between the lowest and highest sums."""

    def __init__(self, nodes: NodeTable, terms: tuple[WeightedTerm, ...]) -> None:
        self.terms = terms
        self._nodes = nodes

    @override
    def by_domain(self, vacant: Vacant) -> DomainScores | None:
        """Return the scores if all terms share a key with few domains, else None."""
        terms = self.terms
        key = terms[0].counter.key
        if not key.has_few_domains or any(term.counter.key is not key for term in terms):
            return None
        raw = terms[0].per_domain().tolist()
        for more in terms[1:]:
            added = more.per_domain().tolist()
            raw = [weight + added[domain] for domain, weight in enumerate(raw)]
        vacancies = vacant(key)
        present = [weight for domain, weight in enumerate(raw) if not vacancies[domain]]
        if not present:
            return DomainScores(key, [0] * len(raw))
        least, span = min(present), max(present) - min(present)
        return DomainScores(
            key,
            [
                0 if vacancies[domain] else scale_score(weight - least, span)
                for domain, weight in enumerate(raw)
            ],
        )

    @override
    def on_nodes(self, ranks: Ints, weight: int) -> Ints | None:
        """Return scores from 0 for the lowest sum to 100 for the highest, or None if equal."""
        raw = self._raw()
        bounds = bounds_of(raw, ranks)
        if bounds is None or bounds.least == bounds.greatest:
            return None
        above, span = bounds.above(raw), bounds.greatest - bounds.least
        if span > TABLE_MAX:
            return weight * _scale_scores(above, span)
        return _scale_table(span, weight).take(above)

    def _raw(self) -> Ints:
        """Return the sum of weights for each node, shape (nodes,), int64, read-only.

        Repelling terms are negative.
        """
        by_key: dict[TopologyKey, tuple[WeightedTerm, ...]] = {}
        for term in self.terms:
            by_key[term.counter.key] = (*by_key.get(term.counter.key, ()), term)
        per_node = [self._nodes.views.weighted_sum(terms) for terms in by_key.values()]
        return sum(per_node[1:], per_node[0])


def scale_score(above: int, span: int) -> int:
    """Return a share of the span as 0 to 100, truncated after floating point as in Kubernetes."""
    return int(MAX_NODE_SCORE * (above / span)) if span else 0


def _scale_scores(above: Ints, span: int) -> Ints:
    """Return `scale_score` for many nodes; `span` must not be 0."""
    scores: Ints = (MAX_NODE_SCORE * (above / span)).astype(np.int64)
    return scores


@lru_cache(maxsize=128)
def _scale_table(span: int, weight: int) -> Ints:
    """Return the weighted score of each distance from the lowest sum, shape (span + 1,), read-only.

    `span` must not be 0.
    """
    return weight * _scale_scores(np.arange(span + 1), span)


def affinity_vetoes(
    nodes: NodeTable,
    pod_class: PodClass,
    terms: Sequence[AffinityTerm],
    expected: Sequence[PodClass] = (),
) -> list[Vetoes]:
    """Return vetoes of the nodes where a required affinity term is not satisfied."""
    vetoes: list[Vetoes] = []
    if not terms:
        return vetoes
    first = pod_class.first_for(terms)
    for place, term in enumerate(terms):
        key = term.counter.key
        if first[place] or any(other in term.matcher.classes for other in expected):
            vetoes.append(label_vetoes(key))
        elif key.has_few_domains:
            vetoes.append(Vetoes(key, [veto ^ VETO for veto in term.counter.vetoes_by_domain()]))
        else:
            vetoes.append(Vetoes(key, nodes=nodes.views.blocked(term.counter) ^ VETO))
    return vetoes


def forbidding_terms(pod_class: PodClass) -> list[OwnedTerm]:
    """Return the required anti-affinity terms of placed pods that match a class."""
    return [
        term
        for entry in pod_class.matched
        for term in entry.terms
        if term.role is Role.FORBIDS and term.counter.total
    ]


def _affinity_headroom(term: AffinityTerm, *, first: bool) -> Headroom:
    """Return how many pods required by a term can leave each node's domain."""
    key = term.counter.key
    pods = key.keyed.astype(np.int64) if first else key.on_nodes(term.counter.counts)
    return Headroom(AFFINITY, pods - 1, taken=_count_matches(term.matcher), is_given=True)


def _anti_affinity_headroom(term: AffinityTerm, pod_class: PodClass) -> Headroom:
    """Return how many more pods that match the pod's own anti-affinity each node tolerates."""
    limit, taken = term.limit_for(pod_class), _count_matches(term.matcher)
    if limit is None:
        return Headroom(ANTI_AFFINITY, _negated_counts(term.counter), taken=taken)
    return Headroom(FULL, _negated_counts(term.counter) + limit.full_at - 1, taken=taken)


def _is_limited(term: AffinityTerm) -> bool:
    return term.max_per_domain is not None


def _negated_counts(counter: DomainCounter) -> Ints:
    """Return a headroom that is negative where a domain holds counted pods, shape (nodes,)."""
    return -counter.key.on_nodes(counter.counts)


def _count_matches(entry: MatcherEntry) -> Callable[[PodClass], int]:
    return lambda pod_class: int(pod_class in entry.classes)


def _count_owners(term: OwnedTerm) -> Callable[[PodClass], int]:
    return lambda pod_class: sum(owned is term for owned in pod_class.template.owned)


def _affinity_blames(pod_class: PodClass, slot: int) -> Iterator[Blame]:
    """Yield blames for pods that match the pod's affinity if a node's domain lacks them.

    Without these pods, the pod may be the first that matches.
    """
    wanted = pod_class.affinity
    single_terms = [(term,) for term in wanted]
    for terms in single_terms if pod_class.template.affinity_per_term else (wanted,):
        if all(term.counter.in_domain(term.counter.key.cells[slot]) for term in terms):
            continue
        may_stay = 0 if pod_class.matches_all(terms) else -1
        for term in terms:
            if term.counter.total or may_stay < 0:
                taken = _count_matches(term.matcher)
                yield Blame(term, term.counter.key, None, taken, may_stay, reason=AFFINITY)


def _own_blames(pod_class: PodClass, slot: int) -> Iterator[Blame]:
    """Yield blames for pods that match the pod's own anti-affinity."""
    for term in pod_class.template.anti_affinity:
        domain, limit = term.counter.key.cells[slot], term.limit_for(pod_class)
        blocker: DomainBlocker = term.counter if limit is None else limit
        if domain != NO_DOMAIN and blocker.in_domain(domain):
            may_stay = 0 if limit is None else limit.full_at - 1
            taken, reason = _count_matches(term.matcher), ANTI_AFFINITY if limit is None else FULL
            yield Blame(term, blocker.key, domain, taken, may_stay, reason=reason)


def _existing_blames(pod_class: PodClass, slot: int) -> Iterator[Blame]:
    """Yield blames for pods whose anti-affinity matches the pod.

    For terms with a limit, these include the matched pods that fill the domain.
    """
    for owned in forbidding_terms(pod_class):
        domain = owned.counter.key.cells[slot]
        blocker: DomainBlocker = owned.limit or owned.counter
        if domain == NO_DOMAIN or not blocker.in_domain(domain):
            continue
        if owned.limit is None:
            yield Blame(owned, blocker.key, domain, _count_owners(owned), reason=EXISTING)
        else:
            taken = _count_owners_or_matches(owned)
            yield Blame(owned, blocker.key, domain, taken, None, reason=EXISTING_FULL)


def _count_owners_or_matches(term: OwnedTerm) -> Callable[[PodClass], int]:
    owning, matching = _count_owners(term), _count_matches(term.matcher)
    return lambda pod_class: owning(pod_class) or matching(pod_class)


def _last_of_groups(nodes: NodeTable, pod_class: PodClass) -> Mask | None:
    """Return the nodes that hold all pods matching an affinity requirement, or all siblings.

    When these pods leave the node, the first-pod rule may apply, or a term may become exempt.
    """
    terms, siblings = pod_class.affinity, pod_class.template.siblings
    if pod_class.template.affinity_per_term:
        groups = [_last_of_group(nodes, pod_class, (term,)) for term in terms]
    else:
        groups = [_last_of_group(nodes, pod_class, terms)]
    if siblings is not None:
        groups.append(_last_of_group(nodes, pod_class, (siblings,)))
    masks = [mask for mask in groups if mask is not None]
    return np.logical_or.reduce(masks) if masks else None


def _last_of_group(
    nodes: NodeTable, pod_class: PodClass, terms: Sequence[AffinityTerm]
) -> Mask | None:
    """Return a mask of the only node with pods that match all terms, or None if several do."""
    if not terms or not pod_class.matches_all(terms):
        return None
    slots: set[int] = set()
    for term in terms:
        cells = term.counter.key.cells
        for other in term.matcher.classes:
            slots.update(slot for slot in other.nodes if cells[slot] != NO_DOMAIN)
            if len(slots) > 1:
                return None
    mask = np.zeros(nodes.size, dtype=np.bool_)
    mask[list(slots)] = True
    return mask


def _blockers(pod_class: PodClass) -> list[DomainBlocker]:
    """Return what excludes a class's pods from domains: own terms, and those of placed pods."""
    own = [
        term.limit_for(pod_class) or term.counter
        for term in pod_class.template.anti_affinity
        if term.counter.total
    ]
    return own + [term.limit or term.counter for term in forbidding_terms(pod_class)]


def _by_reason(pod_class: PodClass) -> dict[str, list[DomainBlocker]]:
    """Return what excludes pods from domains by reason, in order, omitting empty limits."""
    own = [(term.limit_for(pod_class), term.counter) for term in pod_class.template.anti_affinity]
    others = [(term.limit, term.counter) for term in forbidding_terms(pod_class)]
    blockers: dict[str, list[DomainBlocker]] = {}
    for reason, full, terms in ((ANTI_AFFINITY, FULL, own), (EXISTING, EXISTING_FULL, others)):
        blockers[reason] = [counter for limit, counter in terms if limit is None]
        limits = [limit for limit, _ in terms if limit is not None]
        if limits:
            blockers[full] = [*limits]
    return blockers


def _blocked_by_any(nodes: NodeTable, rules: Iterable[DomainBlocker]) -> Mask:
    blocked = np.zeros(nodes.size, dtype=np.bool_)
    for rule in rules:
        blocked |= rule.key.on_nodes(rule.counts) > 0
    return blocked


def _depends_on_placed(reasons: Collection[str]) -> bool:
    """Return whether terms of placed pods, which have unknown topology keys, rejected the pod."""
    return EXISTING in reasons or EXISTING_FULL in reasons


def _required_terms(pod: Pod) -> Iterator[PodAffinityTerm]:
    yield from _terms(pod, "pod_affinity")
    yield from _terms(pod, "pod_anti_affinity")


def _forbids(pod: Pod) -> bool:
    """Return whether a pod has required anti-affinity."""
    return any(True for _ in _terms(pod, "pod_anti_affinity"))


def _terms(pod: Pod, name: str) -> Iterator[PodAffinityTerm]:
    rules: PodAffinity | None = getattr(pod.spec.affinity, name, None)
    if rules is not None:
        yield from rules.required_during_scheduling_ignored_during_execution or ()
        yield from rules.required_during_scheduling_required_during_execution or ()


def _are_related(waiting: Pod, other: Pod) -> bool:
    """Return whether a term of either pod may match the other, ignoring namespace labels."""
    own = any(_may_match(term, waiting, other) for term in _required_terms(waiting))
    own = own or are_siblings(waiting, other)
    return own or any(
        _may_match(term, other, waiting) for term in _terms(other, "pod_anti_affinity")
    )


def _may_match(term: PodAffinityTerm, owner: Pod, other: Pod) -> bool:
    everywhere = term.namespace_selector is not None or term.namespaces == ()
    if not everywhere and other.namespace not in (term.namespaces or (owner.namespace,)):
        return False
    return matches(term.label_selector, other.labels)
