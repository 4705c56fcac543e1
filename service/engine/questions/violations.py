"""Required rules that placed pods break now.

The question is the filters' own, asked of each placed pod where it is and with the pod itself
taken out. It is answered from the counters: per class of pods, per node that has any of them, per
rule one look at the count of the node's domain, less the pod itself where the rule counts it.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Literal, NamedTuple, Protocol

import numpy as np

from service.engine.cluster import Cluster
from service.engine.plugins import (
    inter_pod_affinity as relations,
    node_affinity as selection,
    pod_topology_spread as spreading,
)
from service.engine.state.classes import AffinityTerm, MatcherEntry, PodClass, Template
from service.engine.state.columns import ALL, Ints, Mask
from service.engine.state.rules import NodeRules, RequiredNodes
from service.engine.state.selectors import required_mask
from service.engine.state.spread import SpreadRule
from service.engine.state.topology import NO_DOMAIN, TopologyKey
from service.model.objects import (
    NodeSelector,
    ObjectName,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodSpec,
)

Execution = Literal["Ignored", "Required"]
_IGNORED = "requiredDuringSchedulingIgnoredDuringExecution"
_REQUIRED = "requiredDuringSchedulingRequiredDuringExecution"
AT_ONCE_MIN = 16
"""Of a class on fewer nodes each is looked at by itself, and so are fewer classes of a template."""


class Rule(NamedTuple):
    """One required rule of a pod; `path` is where its manifest (or the configuration) has it."""

    plugin: str
    path: str
    execution: Execution


class Crowd(NamedTuple):
    """The pods in one domain that a term of anti-affinity matches."""

    matcher: MatcherEntry
    key: TopologyKey
    domain: int


class Breach(NamedTuple):
    """How a rule is broken on one node; `skew` of spreading, `crowd` of anti-affinity."""

    rule: Rule
    reason: str
    skew: int | None = None
    crowd: Crowd | None = None


@dataclass(frozen=True, slots=True)
class Violation:
    """A placed pod and the rule that it breaks."""

    pod: Pod
    breach: Breach


class _Test(Protocol):
    """The rules of one class that are judged together."""

    def breaches(self, slot: int) -> Iterator[Breach]:
        """What is broken for a pod of the class that is placed on that node."""
        ...

    def suspects(self, slots: Ints) -> Mask:
        """On which of these nodes something may be broken: all of them at once, for `breaches`."""
        ...


class Inspection:
    """One look at the rules of placed pods, with what they have in common worked out once.

    Good for as long as the cluster does not change.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._masks: dict[tuple[NodeRules, str], Mask] = {}
        self._levels: dict[object, _Level] = {}
        self._rules: dict[Template, _TemplateRules] = {}
        self._crowds: dict[Crowd, list[tuple[Pod, PodClass]]] = {}

    def suspects(self, classes: Iterable[PodClass]) -> list[PodClass]:
        """Those of which some pod may break a rule, in their order; `of` tells whether it does.

        Classes of one template are judged together, all nodes of all of them at once.
        """
        listed = tuple(classes)
        alike: defaultdict[Template, list[PodClass]] = defaultdict(list)
        for pod_class in listed:
            alike[pod_class.template].append(pod_class)
        found = {
            pod_class
            for template, group in alike.items()
            for pod_class in self._suspect_classes(template, group)
        }
        return [pod_class for pod_class in listed if pod_class in found]

    def _suspect_classes(self, template: Template, group: Sequence[PodClass]) -> Iterable[PodClass]:
        if len(group) < AT_ONCE_MIN:
            return group
        rules = self._template_rules(template)
        if rules.spread:
            return group
        sizes = np.fromiter((len(each.nodes) for each in group), dtype=np.int64, count=len(group))
        slots = np.fromiter(
            chain.from_iterable(each.nodes for each in group), np.int64, count=int(sizes.sum())
        )
        owners = np.repeat(np.arange(len(group)), sizes)

        def itself(term: AffinityTerm) -> Mask:
            matched = (each in term.matcher.classes for each in group)
            return np.fromiter(matched, dtype=np.bool_, count=len(group))[owners]

        suspect = np.zeros(len(slots), dtype=np.bool_)
        for test in rules.nodes:
            suspect |= test.suspects(slots)
        if rules.enduring or rules.ignored:
            terms = [term for _, term in rules.enduring]
            suspect |= _lonely((*terms, *template.affinity), slots, itself)
        suspect |= _crowded([term for _, term in rules.apart], slots, itself)
        return [group[index] for index in np.unique(owners[suspect])]

    def of(self, pod_class: PodClass) -> Iterator[Violation]:
        """The violations of all pods of a class."""
        tests = self._tests(pod_class)
        if not tests:
            return
        for slot in self._suspects(pod_class, tests):
            broken = [each for test in tests for each in test.breaches(slot)]
            if broken:
                yield from self._violations(pod_class, slot, broken)

    def _suspects(self, pod_class: PodClass, tests: Sequence[_Test]) -> Iterable[int]:
        """The nodes of a class that have to be looked at one by one."""
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
                for breach in broken:
                    yield Violation(pod, breach)

    def members(self, crowd: Crowd) -> list[tuple[Pod, PodClass]]:
        """The pods of a crowd with their classes, by namespace and name."""
        found = self._crowds.get(crowd)
        if found is None:
            matched = crowd.matcher.classes
            found = self._crowds[crowd] = sorted(
                (
                    (pod, pod_class)
                    for slot in crowd.key.members[crowd.domain]
                    for pod, pod_class in self._cluster.placed_on(slot)
                    if pod_class in matched
                ),
                key=lambda member: key_of(member[0]),
            )
        return found

    def _template_rules(self, template: Template) -> "_TemplateRules":
        rules = self._rules.get(template)
        if rules is None:
            rules = self._rules_of(template)
            # Where every pod has a template of its own, keeping them costs more than it saves.
            if template.classes > 1:
                self._rules[template] = rules
        return rules

    def _tests(self, pod_class: PodClass) -> list[_Test]:
        rules = self._template_rules(pod_class.template)
        tests: list[_Test] = list(rules.nodes)
        if rules.enduring or rules.ignored:
            tests.append(_AffinityTest(pod_class, rules.enduring, rules.ignored))
        if rules.apart:
            tests.append(_AntiAffinityTest(pod_class, rules.apart))
        if rules.spread:
            tests.append(_SpreadTest(pod_class, rules.spread))
        return tests

    def _rules_of(self, template: Template) -> "_TemplateRules":
        """Only what the pods' profile filters by; all for a scheduler that is not known here."""
        pipeline = self._cluster.pipeline(template.spec.scheduler_name)

        def counts(plugin: str) -> bool:
            return pipeline is None or pipeline.filters_with(plugin)

        per_term = self._cluster.config.affinity_per_term
        affinity = _affinity_rules(template, per_term=per_term) if counts(relations.NAME) else None
        return _TemplateRules(
            nodes=tuple(self._node_tests(template)) if counts(selection.NAME) else (),
            enduring=affinity[0] if affinity else (),
            ignored=affinity[1] if affinity else (),
            apart=_matched(_anti_affinity_rules(template)) if counts(relations.NAME) else (),
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
        own = template.spec.topology_spread_constraints
        indices = (
            [i for i, each in enumerate(own) if each.when_unsatisfiable == "DoNotSchedule"]
            if own
            else range(len(template.hard_spread))
        )
        place = "spec.topologySpreadConstraints" if own else "defaultTopologySpreadConstraints"
        for index, spread in zip(indices, template.hard_spread, strict=True):
            alike = (spread.counter, spread.eligibility, spread.key, spread.min_domains)
            level = self._levels.get(alike)
            if level is None:
                level = self._levels[alike] = _Level.of(spread)
            yield _RuledSpread(Rule(spreading.NAME, f"{place}[{index}]", "Ignored"), spread, level)


class _TemplateRules(NamedTuple):
    """The required rules of a template."""

    nodes: "tuple[_NodeTest, ...]"
    enduring: "_Ruled"
    """Affinity that is required during execution."""
    ignored: "_Ruled"
    """Affinity that is not."""
    apart: "_Ruled"
    """Anti-affinity."""
    spread: "tuple[_RuledSpread, ...]"


def key_of(pod: Pod) -> ObjectName:
    """A pod's namespace and name."""
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


def node_rules(spec: PodSpec, rules: NodeRules) -> Iterator[tuple[Rule, RequiredNodes]]:
    """Each rule of a pod on the node's labels, by itself."""
    if not rules.required.anything:
        return
    if rules.required.selector:
        required = rules.required._replace(affinities=())
        yield Rule(selection.NAME, "spec.nodeSelector", "Ignored"), required
    affinity = spec.affinity and spec.affinity.node_affinity
    if not affinity:
        return
    variants: tuple[tuple[str, Execution, NodeSelector | None], ...] = (
        (_REQUIRED, "Required", affinity.required_during_scheduling_required_during_execution),
        (_IGNORED, "Ignored", affinity.required_during_scheduling_ignored_during_execution),
    )
    for name, execution, selector in variants:
        if selector is not None:
            rule = Rule(selection.NAME, f"spec.affinity.nodeAffinity.{name}", execution)
            required = RequiredNodes((), (selector,), rules.required.empty_term_matches_all)
            yield rule, required


# Pod affinity and anti-affinity


_Ruled = tuple[tuple[Rule, AffinityTerm], ...]


def _affinity_rules(template: Template, *, per_term: bool) -> tuple[_Ruled, _Ruled]:
    """The terms that are required during execution, and the others."""
    affinity = template.spec.affinity
    if not template.affinity or not affinity or not affinity.pod_affinity:
        return (), ()
    enduring, ignored = _terms(affinity.pod_affinity)
    if per_term:
        lasting, others = template.enduring_affinity, template.affinity[len(enduring) :]
    else:
        lasting = _by_key(enduring, template.enduring_affinity)
        others = _by_key(ignored, template.affinity)
    return (
        _ruled(f"podAffinity.{_REQUIRED}", lasting, "Required"),
        _ruled(f"podAffinity.{_IGNORED}", others, "Ignored"),
    )


def _anti_affinity_rules(template: Template) -> _Ruled:
    affinity = template.spec.affinity
    if not template.anti_affinity or not affinity or not affinity.pod_anti_affinity:
        return ()
    first = len(_terms(affinity.pod_anti_affinity)[0])
    return (
        *_ruled(f"podAntiAffinity.{_REQUIRED}", template.anti_affinity[:first], "Required"),
        *_ruled(f"podAntiAffinity.{_IGNORED}", template.anti_affinity[first:], "Ignored"),
    )


def _matched(rules: _Ruled) -> _Ruled:
    """Without those that match nobody at all, which hold wherever the pod is."""
    return tuple((rule, term) for rule, term in rules if term.counter.total)


def _terms(
    affinity: PodAffinity,
) -> tuple[tuple[PodAffinityTerm, ...], tuple[PodAffinityTerm, ...]]:
    """The terms required during execution, and those ignored then: the order of compiling."""
    return (
        affinity.required_during_scheduling_required_during_execution or (),
        affinity.required_during_scheduling_ignored_during_execution or (),
    )


def _by_key(
    written: Sequence[PodAffinityTerm], compiled: Sequence[AffinityTerm]
) -> tuple[AffinityTerm, ...]:
    """The counter of each term as written, where there is one for each topology key."""
    by_key = {term.counter.key.name: term for term in compiled}
    return tuple(by_key[term.topology_key] for term in written)


def _ruled(place: str, terms: Sequence[AffinityTerm], execution: Execution) -> _Ruled:
    return tuple(
        (Rule(relations.NAME, f"spec.affinity.{place}[{index}]", execution), term)
        for index, term in enumerate(terms)
    )


class _AffinityTest:
    """Terms that are required during execution are judged by themselves.

    The others are judged as at scheduling, together with those: where each list holds by itself
    but no pod matches both, it is the others that are broken, for they are what adds to the rest.
    """

    def __init__(self, pod_class: PodClass, enduring: _Ruled, ignored: _Ruled) -> None:
        self._class = pod_class
        self._enduring = enduring
        self._ignored = ignored
        self._lasting = [term for _, term in enduring]
        self._all = pod_class.template.affinity

    def breaches(self, slot: int) -> Iterator[Breach]:
        unmet = unmet_terms(self._class, self._lasting, slot)
        yield from self._told(self._enduring, unmet)
        if not self._ignored:
            return
        at_scheduling = unmet_terms(self._class, self._all, slot)
        if not at_scheduling:
            return
        own = [each for each in at_scheduling if any(each is term for _, term in self._ignored)]
        if own or unmet:
            yield from self._told(self._ignored, own)
        else:
            yield from self._told(self._ignored, [term for _, term in self._ignored])

    def suspects(self, slots: Ints) -> Mask:
        """Where some term is not met by others; the first-pod rule may excuse that."""
        own = self._class
        return _lonely(
            (*self._lasting, *self._all), slots, lambda term: own in term.matcher.classes
        )

    def _told(self, ruled: _Ruled, unmet: Sequence[AffinityTerm]) -> Iterator[Breach]:
        for rule, term in ruled if unmet else ():
            if any(term is each for each in unmet):
                yield Breach(rule, relations.AFFINITY)


def unmet_terms(
    pod_class: PodClass, terms: Sequence[AffinityTerm], slot: int
) -> Sequence[AffinityTerm]:
    """The terms that a pod of the class on that node does not find met by other pods.

    While no other pod in the cluster matches, a pod that matches all terms itself only needs the
    topology keys (the first-pod rule).
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
    def __init__(self, pod_class: PodClass, terms: _Ruled) -> None:
        self._terms = [(*each, pod_class in each[1].matcher.classes) for each in terms]

    def breaches(self, slot: int) -> Iterator[Breach]:
        for rule, term, itself in self._terms:
            key = term.counter.key
            domain = int(key.domain_of[slot])
            if domain != NO_DOMAIN and term.counter.counts[domain] > itself:
                crowd = Crowd(term.matcher, key, domain)
                yield Breach(rule, relations.ANTI_AFFINITY, crowd=crowd)

    def suspects(self, slots: Ints) -> Mask:
        itself = {id(term): matched for _, term, matched in self._terms}
        terms = [term for _, term, _ in self._terms]
        return _crowded(terms, slots, lambda term: itself[id(term)])


def _lonely(
    terms: Iterable[AffinityTerm], slots: Ints, itself: Callable[[AffinityTerm], Mask | bool]
) -> Mask:
    """Where the domain holds no pod that some term matches, but `itself` if that is matched."""
    lonely = np.zeros(len(slots), dtype=np.bool_)
    for term in {id(each): each for each in terms}.values():
        lonely |= term.counter.counts.take(term.counter.key.domain_of[slots]) <= itself(term)
    return lonely


def _crowded(
    terms: Iterable[AffinityTerm], slots: Ints, itself: Callable[[AffinityTerm], Mask | bool]
) -> Mask:
    """Where the domain holds any pod that some term matches, besides `itself`."""
    crowded = np.zeros(len(slots), dtype=np.bool_)
    for term in terms:
        crowded |= term.counter.counts.take(term.counter.key.domain_of[slots]) > itself(term)
    return crowded


# Topology spread


class _Level(NamedTuple):
    """The least count over the eligible domains of a constraint, 0 while there are too few."""

    least: int
    enough_domains: bool

    @classmethod
    def of(cls, spread: SpreadRule) -> "_Level":
        existing = spread.eligibility.nodes_of[spread.key.name].counts[:-1] > 0
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
        """With one pod less in the domain, where it is counted, and then itself again."""
        spread, least = ruled.spread, ruled.level.least
        if spread.counter is None:
            return itself - least
        others = int(spread.counter.counts[spread.key.domain_of[slot]])
        if itself and not self._terminating and spread.eligibility.admits(slot):
            others -= 1
            if ruled.level.enough_domains:
                least = min(least, others)
        return others + itself - least
