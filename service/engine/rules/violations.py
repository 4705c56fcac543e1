"""Finds violations: the required rules that placed pods break, and the other pods involved.

The filters' conditions are applied to each placed pod on its node, as if the pod were not placed
yet. This reads counters: for each class of pods, each of its nodes, and each rule, it looks up the
count of the node's domain, and subtracts the pod itself if the rule counts it.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple, Protocol

import numpy as np

from service.engine.cluster import Cluster
from service.engine.plugins import (
    inter_pod_affinity as relations,
    node_affinity as selection,
    pod_topology_spread as spreading,
)
from service.engine.rules.rule_paths import (
    Rule,
    RuledTerms,
    affinity_rules,
    anti_affinity_rules,
    node_rules,
    spread_rules,
    terms_by_key,
    written_terms,
)
from service.engine.state.nodes.columns import ALL, Ints, Mask
from service.engine.state.nodes.node_rules import NodeRules
from service.engine.state.nodes.node_selectors import required_mask
from service.engine.state.nodes.topology import NO_DOMAIN, TopologyKey
from service.engine.state.pods.classes import (
    AffinityTerm,
    MatcherEntry,
    PodClass,
    Template,
)
from service.engine.state.pods.spread import SpreadRule
from service.model.core.primitives import ObjectName
from service.model.pods.pod import Pod

AT_ONCE_MIN = 16
"""The minimum number of a class's nodes, or of a template's classes, that are judged all at once.
"""


class DomainPods(NamedTuple):
    """The pods in one domain that match an anti-affinity term."""

    matcher: MatcherEntry
    key: TopologyKey
    domain: int
    max_per_domain: int | None = None
    """The number of matching pods that the term allows; None allows only the pod that has the term.
    """


CompetingPods = frozenset[tuple[MatcherEntry, TopologyKey]]
"""All pods that match any of the matchers, on nodes that have the key paired with it."""


class Breach(NamedTuple):
    """How a rule is broken on one node: `skew` for spread, `domain_pods` for anti-affinity."""

    rule: Rule
    reason: str
    skew: int | None = None
    domain_pods: DomainPods | None = None
    competing_pods: CompetingPods | None = None
    """The pods whose removal would fix a broken affinity rule, because its owner would be the first
    pod, or None if removing pods would not help."""


@dataclass(frozen=True, slots=True)
class Violation:
    """A placed pod, and how it breaks a rule."""

    pod: Pod
    breach: Breach


class _Test(Protocol):
    """A check of rules of one class that are judged together."""

    def breaches(self, slot: int) -> Iterator[Breach]:
        """Yield the breaches of a pod of the class on a node."""
        ...

    def suspects(self, slots: Ints) -> Mask:
        """Return a mask over `slots` of the nodes where a rule may be broken.

        All nodes are judged at once; `breaches` then decides for each of them.
        """
        ...


class Inspection:
    """An inspection of placed pods that shares computations between similar pods.

    It is valid as long as the cluster does not change.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._masks: dict[tuple[NodeRules, str], Mask] = {}
        self._levels: dict[object, _Level] = {}
        self._rules: dict[Template, _TemplateRules] = {}
        self._exempt: dict[MatcherEntry, Pod | None] = {}
        self._domain_pods: dict[DomainPods, list[tuple[Pod, PodClass]]] = {}

    def suspects(self, classes: Iterable[PodClass]) -> list[PodClass]:
        """Return the classes with pods that may break a rule, in the given order.

        All nodes of the classes of one template are judged at once; `of` then yields the
        violations.
        """
        listed = tuple(classes)
        by_template: defaultdict[Template, list[PodClass]] = defaultdict(list)
        for pod_class in listed:
            by_template[pod_class.template].append(pod_class)
        suspects = {
            pod_class
            for template, group in by_template.items()
            for pod_class in self._suspect_classes(template, group)
        }
        return [pod_class for pod_class in listed if pod_class in suspects]

    def _suspect_classes(self, template: Template, group: Sequence[PodClass]) -> Iterable[PodClass]:
        if len(group) < AT_ONCE_MIN:
            return group
        rules = self._template_rules(template)
        if rules.spread:
            return group
        sizes = np.fromiter(
            (len(pod_class.nodes) for pod_class in group), dtype=np.int64, count=len(group)
        )
        slots = np.fromiter(
            chain.from_iterable(pod_class.nodes for pod_class in group),
            np.int64,
            count=int(sizes.sum()),
        )
        owners = np.repeat(np.arange(len(group)), sizes)

        def itself(term: AffinityTerm) -> Mask:
            matched = (pod_class in term.matcher.classes for pod_class in group)
            return np.fromiter(matched, dtype=np.bool_, count=len(group))[owners]

        suspect = np.zeros(len(slots), dtype=np.bool_)
        for test in rules.nodes:
            suspect |= test.suspects(slots)
        if rules.during_execution or rules.ignored:
            terms = [term for _, term in rules.during_execution]
            suspect |= _lonely((*terms, *template.affinity), slots, itself)
        suspect |= _crowded([term for _, term in rules.apart], slots, itself)
        return [group[index] for index in np.unique(owners[suspect])]

    def of(self, pod_class: PodClass) -> Iterator[Violation]:
        """Yield the violations of all pods of a class."""
        tests = self._tests(pod_class)
        if not tests:
            return
        for slot in self._suspects(pod_class, tests):
            broken = [breach for test in tests for breach in test.breaches(slot)]
            if broken:
                yield from self._violations(pod_class, slot, broken)

    def of_pod(self, pod: Pod) -> Iterator[Violation]:
        """Yield the violations of one placed pod, whose node must be known."""
        assert pod.node_name is not None
        slot = self._cluster.nodes.slots[pod.node_name]
        pod_class = self._cluster.class_of(pod)
        broken = [breach for test in self._tests(pod_class) for breach in test.breaches(slot)]
        for applicable in self._applicable(pod, pod_class, slot, broken):
            yield Violation(pod, applicable)

    def _suspects(self, pod_class: PodClass, tests: Sequence[_Test]) -> Iterable[int]:
        """Return the nodes of a class that must be judged one by one."""
        if len(pod_class.nodes) < AT_ONCE_MIN:
            return pod_class.nodes
        slots = np.fromiter(pod_class.nodes, dtype=np.int64, count=len(pod_class.nodes))
        suspect = tests[0].suspects(slots)
        for test in tests[1:]:
            suspect = suspect | test.suspects(slots)
        return [int(slot) for slot in slots[suspect]]

    def _violations(
        self, pod_class: PodClass, slot: int, broken: list[Breach]
    ) -> Iterator[Violation]:
        for pod, its_class in self._cluster.placed_on(slot):
            if its_class is pod_class:
                for breach in self._applicable(pod, pod_class, slot, broken):
                    yield Violation(pod, breach)

    def _applicable(
        self, pod: Pod, pod_class: PodClass, slot: int, broken: list[Breach]
    ) -> list[Breach]:
        """Return a pod's breaches, excluding those of terms that exempt it."""
        siblings = pod_class.template.siblings
        if siblings is None or not broken or not self._is_exempt(pod, siblings.matcher):
            return broken
        rules = self._template_rules(pod_class.template)
        test = _first_test(pod_class, rules)
        others = [breach for breach in broken if not _is_of_affinity(breach, rules.ignored)]
        return [*others, *(breach for breach in test.breaches(slot) if breach not in others)]

    def _is_exempt(self, pod: Pod, siblings: MatcherEntry) -> bool:
        """Return whether a pod is exempt, as the oldest sibling that breaks an exemptible term."""
        if siblings not in self._exempt:
            breaking = (
                sibling
                for pod_class in siblings.classes
                for sibling in self._breaking_pods(pod_class)
            )
            oldest = min(
                breaking, key=lambda sibling: (sibling.created, key_of(sibling)), default=None
            )
            self._exempt[siblings] = oldest
        exempt = self._exempt[siblings]
        return exempt is not None and key_of(exempt) == key_of(pod)

    def _breaking_pods(self, pod_class: PodClass) -> Iterator[Pod]:
        """Yield the pods of a class that break affinity terms required only during scheduling."""
        rules = self._template_rules(pod_class.template)
        test = _AffinityTest(pod_class, rules.during_execution, rules.ignored)
        for slot in pod_class.nodes:
            if any(_is_of_affinity(breach, rules.ignored) for breach in test.breaches(slot)):
                for pod, its_class in self._cluster.placed_on(slot):
                    if its_class is pod_class:
                        yield pod

    def members(self, domain_pods: DomainPods) -> list[tuple[Pod, PodClass]]:
        """Return the matched pods of a domain with their classes, ordered by namespace and name."""
        members = self._domain_pods.get(domain_pods)
        if members is None:
            matched = domain_pods.matcher.classes
            members = self._domain_pods[domain_pods] = sorted(
                (
                    (pod, pod_class)
                    for slot in domain_pods.key.members[domain_pods.domain]
                    for pod, pod_class in self._cluster.placed_on(slot)
                    if pod_class in matched
                ),
                key=lambda member: key_of(member[0]),
            )
        return members

    def competitors(self, competing_pods: CompetingPods) -> list[tuple[Pod, PodClass]]:
        """Return all competing pods with their classes, each once."""
        wanted: defaultdict[int, set[PodClass]] = defaultdict(set)
        for matcher, key in competing_pods:
            for pod_class in matcher.classes:
                for slot in pod_class.nodes:
                    if key.domain_of[slot] != NO_DOMAIN:
                        wanted[slot].add(pod_class)
        return [
            (pod, pod_class)
            for slot, classes in wanted.items()
            for pod, pod_class in self._cluster.placed_on(slot)
            if pod_class in classes
        ]

    def _template_rules(self, template: Template) -> "_TemplateRules":
        rules = self._rules.get(template)
        if rules is None:
            rules = self._rules_of(template)
            # If every pod has its own template, caching the rules costs more than it saves.
            if template.classes > 1:
                self._rules[template] = rules
        return rules

    def _tests(self, pod_class: PodClass) -> list[_Test]:
        rules = self._template_rules(pod_class.template)
        tests: list[_Test] = list(rules.nodes)
        if rules.during_execution or rules.ignored:
            tests.append(_AffinityTest(pod_class, rules.during_execution, rules.ignored))
        if rules.apart:
            tests.append(_AntiAffinityTest(pod_class, rules.apart))
        if rules.spread:
            tests.append(_SpreadTest(pod_class, rules.spread))
        return tests

    def _rules_of(self, template: Template) -> "_TemplateRules":
        """Return the rules that the pods' profile filters by, or all if it is unknown."""
        profile = self._cluster.profiles.get(template.spec.scheduler_name)

        def counts(plugin: str) -> bool:
            return profile is None or profile.has_filter(plugin)

        per_term = self._cluster.config.affinity_per_term
        affinity = affinity_rules(template, per_term=per_term) if counts(relations.NAME) else None
        return _TemplateRules(
            nodes=tuple(self._node_tests(template)) if counts(selection.NAME) else (),
            during_execution=affinity[0] if affinity else (),
            ignored=affinity[1] if affinity else (),
            apart=_with_matches(anti_affinity_rules(template)) if counts(relations.NAME) else (),
            spread=tuple(self._spread_rules(template)) if counts(spreading.NAME) else (),
        )

    def _node_tests(self, template: Template) -> Iterator["_NodeTest"]:
        rules = template.rules
        for rule, required in node_rules(template.spec, rules):
            mask = self._masks.get((rules, rule.path))
            if mask is None:
                mask = required_mask(self._cluster.nodes, required, ALL)
                self._masks[rules, rule.path] = mask
            yield _NodeTest(rule, mask)

    def _spread_rules(self, template: Template) -> Iterator["_RuledSpread"]:
        for rule, spread in spread_rules(template):
            alike = (spread.counter, spread.included_nodes, spread.key, spread.min_domains)
            level = self._levels.get(alike)
            if level is None:
                level = self._levels[alike] = _Level.of(spread)
            yield _RuledSpread(rule, spread, level)


class _TemplateRules(NamedTuple):
    """The required rules of a template."""

    nodes: "tuple[_NodeTest, ...]"
    during_execution: "RuledTerms"
    """The required affinity terms that also hold during execution."""
    ignored: "RuledTerms"
    """The required affinity terms that are ignored during execution."""
    apart: "RuledTerms"
    """The required anti-affinity terms."""
    spread: "tuple[_RuledSpread, ...]"


def key_of(pod: Pod) -> ObjectName:
    """Return a pod's namespace and name."""
    return pod.namespace, pod.name


# Node affinity


class _NodeTest:
    def __init__(self, rule: Rule, mask: Mask) -> None:
        self._breach = Breach(rule, selection.REASON)
        self._mask = mask

    def breaches(self, slot: int) -> Iterator[Breach]:
        if not self._mask[slot]:
            yield self._breach

    def suspects(self, slots: Ints) -> Mask:
        return ~self._mask[slots]


# Pod affinity and anti-affinity


def _with_matches(rules: RuledTerms) -> RuledTerms:
    """Omit terms that match no pod at all, because no placement can break them."""
    return tuple((rule, term) for rule, term in rules if term.counter.total)


def _is_of_affinity(breach: Breach, ruled: RuledTerms) -> bool:
    return any(breach.rule == rule for rule, _ in ruled)


def _first_test(pod_class: PodClass, rules: _TemplateRules) -> "_AffinityTest":
    """Return the test for pods of a class that are exempt from `firstPodExempt` terms."""
    template = pod_class.template
    affinity = template.spec.affinity and template.spec.affinity.pod_affinity
    assert affinity, "only such pods have siblings"
    compiled = template.affinity_of_first
    during_execution, written = written_terms(affinity)
    indexes = [index for index, term in enumerate(written) if not term.first_pod_exempt]
    if template.affinity_per_term:
        terms = compiled[len(during_execution) :]
    else:
        terms = terms_by_key([written[index] for index in indexes], compiled)
    ignored = tuple(
        (rules.ignored[index][0], term) for index, term in zip(indexes, terms, strict=True)
    )
    return _AffinityTest(pod_class, rules.during_execution, ignored, compiled)


class _AffinityTest:
    """A check of the required affinity of one class.

    Terms that are required during execution are judged among themselves. The other terms are judged
    together with these, as during scheduling. If each of the two groups holds by itself, but no pod
    matches both, the breach is attributed to the other terms.
    """

    def __init__(
        self,
        pod_class: PodClass,
        during_execution: RuledTerms,
        ignored: RuledTerms,
        together: tuple[AffinityTerm, ...] | None = None,
    ) -> None:
        self._class = pod_class
        self._during_execution = during_execution
        self._ignored = ignored
        self._execution_terms = [term for _, term in during_execution]
        self._all = pod_class.template.affinity if together is None else together

    def breaches(self, slot: int) -> Iterator[Breach]:
        unmet = unmet_terms(self._class, self._execution_terms, slot)
        for breach in self._breaches_of(self._during_execution, unmet):
            yield breach._replace(competing_pods=self._competing_pods(breach.rule, slot))
        if not self._ignored:
            return
        at_scheduling = unmet_terms(self._class, self._all, slot)
        if not at_scheduling:
            return
        own = [
            unmet_term
            for unmet_term in at_scheduling
            if any(unmet_term is term for _, term in self._ignored)
        ]
        if own or unmet:
            yield from self._breaches_of(self._ignored, own)
        else:
            yield from self._breaches_of(self._ignored, [term for _, term in self._ignored])

    def _competing_pods(self, rule: Rule, slot: int) -> CompetingPods | None:
        """Return the pods whose removal makes the pod a requirement's first match, or None."""
        per_term = self._class.template.affinity_per_term
        terms = (
            [term for other, term in self._during_execution if other is rule]
            if per_term
            else self._execution_terms
        )
        keyed = all(term.counter.key.domain_of[slot] != NO_DOMAIN for term in terms)
        if not keyed or not self._class.matches_all(terms):
            return None
        return frozenset((term.matcher, term.counter.key) for term in terms)

    def suspects(self, slots: Ints) -> Mask:
        """Return a mask of the nodes where some term matches no other pod.

        The first-pod rule may still allow that; `breaches` decides.
        """
        own = self._class
        return _lonely(
            (*self._execution_terms, *self._all), slots, lambda term: own in term.matcher.classes
        )

    def _breaches_of(self, ruled: RuledTerms, unmet: Sequence[AffinityTerm]) -> Iterator[Breach]:
        for rule, term in ruled if unmet else ():
            if any(term is unmet_term for unmet_term in unmet):
                yield Breach(rule, relations.AFFINITY)


def unmet_terms(
    pod_class: PodClass, terms: Sequence[AffinityTerm], slot: int
) -> Sequence[AffinityTerm]:
    """Return the terms that no other pod satisfies for a pod of a class on a node."""
    if pod_class.template.affinity_per_term:
        return [unmet for term in terms for unmet in _unmet_together(pod_class, (term,), slot)]
    return _unmet_together(pod_class, terms, slot)


def _unmet_together(
    pod_class: PodClass, terms: Sequence[AffinityTerm], slot: int
) -> Sequence[AffinityTerm]:
    """Return the unmet terms of a group that forms one requirement.

    By the first-pod rule, if no other pod in the cluster matches, a pod that itself matches all
    terms only needs a node with the topology keys.
    """
    others, unmet = False, []
    for term in terms:
        counter, itself = term.counter, pod_class in term.matcher.classes
        domain = counter.key.domain_of[slot]
        if domain == NO_DOMAIN:
            others |= counter.total > 0
            unmet.append(term)
        else:
            others |= counter.total > itself
            if counter.counts[domain] <= itself:
                unmet.append(term)
    if unmet and not others and pod_class.matches_all(terms):
        return [term for term in unmet if term.counter.key.domain_of[slot] == NO_DOMAIN]
    return unmet


class _AntiAffinityTest:
    def __init__(self, pod_class: PodClass, terms: RuledTerms) -> None:
        self._terms = [(*term, pod_class in term[1].matcher.classes) for term in terms]

    def breaches(self, slot: int) -> Iterator[Breach]:
        for rule, term, itself in self._terms:
            key = term.counter.key
            domain = int(key.domain_of[slot])
            if domain == NO_DOMAIN or term.counter.counts[domain] <= _allowed_pods(
                term, itself=itself
            ):
                continue
            domain_pods = DomainPods(term.matcher, key, domain, term.max_per_domain)
            limited = term.max_per_domain is not None
            reason = relations.FULL if limited else relations.ANTI_AFFINITY
            yield Breach(rule, reason, domain_pods=domain_pods)

    def suspects(self, slots: Ints) -> Mask:
        itself = {id(term): matched for _, term, matched in self._terms}
        terms = [term for _, term, _ in self._terms]
        return _crowded(terms, slots, lambda term: itself[id(term)])


def _lonely(
    terms: Iterable[AffinityTerm], slots: Ints, itself: Callable[[AffinityTerm], Mask | bool]
) -> Mask:
    """Return a mask of `slots` in whose domain some term matches no other pod.

    `itself` returns whether a term matches the judged pod.
    """
    lonely = np.zeros(len(slots), dtype=np.bool_)
    for term in {id(term): term for term in terms}.values():
        lonely |= term.counter.counts.take(term.counter.key.domain_of[slots]) <= itself(term)
    return lonely


def _crowded(
    terms: Iterable[AffinityTerm], slots: Ints, itself: Callable[[AffinityTerm], Mask | bool]
) -> Mask:
    """Return a mask of `slots` whose domain holds more pods than some anti-affinity term allows.

    `itself` returns whether a term matches the judged pod.
    """
    crowded = np.zeros(len(slots), dtype=np.bool_)
    for term in terms:
        pods = term.counter.counts.take(term.counter.key.domain_of[slots])
        crowded |= pods > _allowed_pods(term, itself=itself(term))
    return crowded


def _allowed_pods(term: AffinityTerm, *, itself: Mask | bool) -> Mask | int:
    """Return the number of matching pods that a term allows: the pod itself, or `maxPerDomain`."""
    return itself if term.max_per_domain is None else term.max_per_domain


# Topology spread


class _Level(NamedTuple):
    """The lowest count over a constraint's included domains, or 0 if there are too few domains."""

    least: int
    enough_domains: bool

    @classmethod
    def of(cls, spread: SpreadRule) -> "_Level":
        existing = spread.included_nodes.nodes_of[spread.key.name].counts[:-1] > 0
        if spread.counter is None:
            return cls(0, enough_domains=False)
        eligible = spread.counter.counts[: len(existing)][existing]
        if len(eligible) < max(spread.min_domains, 1):
            return cls(0, enough_domains=False)
        return cls(int(np.min(eligible)), enough_domains=True)


class _RuledSpread(NamedTuple):
    rule: Rule
    spread: SpreadRule
    level: _Level


class _SpreadTest:
    def __init__(self, pod_class: PodClass, ruled: Sequence[_RuledSpread]) -> None:
        self._ruled = ruled
        self._itself = pod_class.hard_self
        self._terminating = pod_class.terminating

    def breaches(self, slot: int) -> Iterator[Breach]:
        for ruled, itself in zip(self._ruled, self._itself, strict=True):
            if ruled.spread.key.domain_of[slot] == NO_DOMAIN:
                yield Breach(ruled.rule, spreading.MISSING)
                continue
            skew = self._skew(ruled, slot, itself=itself)
            if skew > ruled.spread.max_skew:
                yield Breach(ruled.rule, spreading.SKEW, skew=skew)

    def suspects(self, slots: Ints) -> Mask:
        return np.ones(len(slots), dtype=np.bool_)

    def _skew(self, ruled: _RuledSpread, slot: int, *, itself: bool) -> int:
        """Compute the skew as if the pod were being placed: without it, then with it."""
        spread, least = ruled.spread, ruled.level.least
        if spread.counter is None:
            return itself - least
        others = int(spread.counter.counts[spread.key.domain_of[slot]])
        if itself and not self._terminating and spread.included_nodes.admits(slot):
            others -= 1
            if ruled.level.enough_domains:
                least = min(least, others)
        return others + itself - least
