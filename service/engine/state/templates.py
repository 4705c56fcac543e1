"""From a pod to its class: the spec's terms and constraints become counters, once per template."""

from collections import OrderedDict
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from service.engine.state.classes import (
    AffinityTerm,
    MatcherEntry,
    MatchIndex,
    OwnedTerm,
    PodClass,
    Role,
    Template,
)
from service.engine.state.columns import Mask
from service.engine.state.counters import DomainCounter, Eligibility, SpreadCounter
from service.engine.state.matchers import (
    Matcher,
    NamespaceRule,
    Selector,
    TermMatcher,
    compile_selector,
    compile_term,
    for_incoming,
)
from service.engine.state.nodes import HOSTNAME, NodeTable
from service.engine.state.rules import RequiredNodes, RulesInterner
from service.engine.state.selectors import required_mask
from service.engine.state.spread import SpreadRule
from service.engine.state.taints import untolerated_hard
from service.engine.state.topology import TopologyKey
from service.model.config import ClusterConfig
from service.model.objects import (
    Affinity,
    LabelSelector,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodSpec,
    Toleration,
    TopologySpreadConstraint,
)
from service.model.selectors import spread_selector

IDLE_CLASSES_MAX = 16_384
"""Classes without a pod that are kept, the least recently used going first."""

EligibilityKey = tuple[tuple[str, ...], RequiredNodes | None, tuple[Toleration, ...] | None]


class Eligibilities:
    """Interned sets of nodes that spreading counts over."""

    def __init__(self, nodes: NodeTable) -> None:
        self._nodes = nodes
        self._known: dict[str, tuple[EligibilityKey, Eligibility]] = {}

    def __len__(self) -> int:
        return len(self._known)

    def get(
        self,
        keys: Iterable[TopologyKey],
        required: RequiredNodes | None,
        tolerations: tuple[Toleration, ...] | None,
    ) -> Eligibility:
        """Nodes with all the keys that `required` lets in and whose taints are tolerated.

        None for either means that the constraint's policy ignores it.
        """
        keys = sorted(keys, key=lambda key: key.name)
        rule: EligibilityKey = (tuple(key.name for key in keys), required, tolerations)
        identity = repr(rule)
        found = self._known.get(identity)
        if found is None:
            found = self._known[identity] = (rule, Eligibility(keys, self._nodes.size))
            for slot in np.flatnonzero(self._admits(rule, np.arange(self._nodes.size))):
                found[1].enter(int(slot))
        found[1].users += 1
        return found[1]

    def release(self, eligibility: Eligibility) -> bool:
        """One user less; True if nothing uses the set any more and it is forgotten."""
        eligibility.users -= 1
        if eligibility.users:
            return False
        self._known = {k: each for k, each in self._known.items() if each[1] is not eligibility}
        return True

    def resize(self) -> None:
        for _, eligibility in self._known.values():
            eligibility.resize(self._nodes.size)

    def enter(self, slot: int) -> None:
        """A node with its columns written joins the sets that let it in."""
        row = np.array([slot])
        for rule, eligibility in self._known.values():
            if self._admits(rule, row)[0]:
                eligibility.enter(slot)

    def leave(self, slot: int) -> None:
        for _, eligibility in self._known.values():
            eligibility.leave(slot)

    def _admits(self, rule: EligibilityKey, rows: npt.NDArray[np.intp]) -> Mask:
        names, required, tolerations = rule
        mask: Mask = self._nodes.alive[rows]
        for name in names:
            mask = mask & (self._nodes.key(name).domain_of[rows] >= 0)
        if required is not None and required.anything:
            mask = mask & required_mask(self._nodes, required, rows)
        if tolerations is not None:
            mask = mask & ~untolerated_hard(self._nodes, tolerations, rows)
        return mask


class Compiler:
    """Templates and classes of one cluster under one configuration."""

    def __init__(
        self,
        config: ClusterConfig,
        nodes: NodeTable,
        acquaintance: MatchIndex,
        eligibilities: Eligibilities,
    ) -> None:
        self._config = config
        self._nodes = nodes
        self._acquaintance = acquaintance
        self._eligibilities = eligibilities
        self._rules = RulesInterner(empty_term_matches_all=config.empty_term_matches_all)
        self._daemons = frozenset(config.daemon_namespaces)
        self._profiles = config.scheduler_profiles()
        self._templates: dict[object, Template] = {}
        self._classes: dict[object, PodClass] = {}
        self._last: tuple[Pod, PodClass] | None = None
        """The last pod asked about: it is mostly asked about again at once, bound to a node."""
        self._idle: OrderedDict[PodClass, object] = OrderedDict()
        self.enduring: dict[PodClass, None] = {}
        """Classes of known pods with rules that are required during execution."""

    def interned(self) -> dict[str, int]:
        """How many classes and templates are known."""
        return {"classes": len(self._classes), "templates": len(self._templates)}

    def class_of(self, pod: Pod) -> PodClass:
        """The class of a pod; compiled on first sight."""
        if self._last is not None and _alike(self._last[0], pod):
            return self._last[1]
        labels = pod.labels
        identity = (
            id(pod.spec),
            pod.namespace,
            frozenset(labels.items()),
            pod.terminating,
            pod.required_node_name,
        )
        found = self._classes.get(identity)
        if found is None:
            template = self._template(pod)
            found = PodClass(template, dict(labels), terminating=pod.terminating)
            self._classes[identity] = found
            self._acquaintance.join(found)
            self._rest(found, identity)
        elif found in self._idle:
            self._idle.move_to_end(found)
        self._last = (pod, found)
        return found

    def hold(self, pod_class: PodClass) -> None:
        """One more known pod of the class."""
        pod_class.pods += 1
        if pod_class.pods == 1:
            pod_class.identity = self._idle.pop(pod_class)
            if pod_class.template.enduring:
                self.enduring[pod_class] = None

    def drop(self, pod_class: PodClass) -> None:
        """One pod of the class less; a class without any may be forgotten some time."""
        pod_class.pods -= 1
        if pod_class.pods == 0:
            self.enduring.pop(pod_class, None)
            self._rest(pod_class, pod_class.identity)

    def _rest(self, pod_class: PodClass, identity: object) -> None:
        self._idle[pod_class] = identity
        if len(self._idle) > IDLE_CLASSES_MAX:
            oldest, name = self._idle.popitem(last=False)
            self._last = None
            del self._classes[name]
            self._acquaintance.leave(oldest)
            self._release(oldest.template)

    def _release(self, template: Template) -> None:
        template.classes -= 1
        if template.classes == 0:
            del self._templates[template.identity]
            self._rules.release(template.rules)
            for rule in (*template.hard_spread, *template.soft_spread):
                if self._eligibilities.release(rule.eligibility):
                    for entry in template.entries:
                        entry.drop_counters(rule.eligibility)
            self._acquaintance.release(template.entries)

    def _template(self, pod: Pod) -> Template:
        spec = pod.spec
        labels = frozenset(pod.labels.items()) if self._reads_labels(spec) else None
        identity = (id(spec), pod.namespace, labels, pod.required_node_name)
        template = self._templates.get(identity)
        if template is None:
            profile = self._profiles.get(spec.scheduler_name)
            needs = self._rules.needs_of(spec)
            rules = self._rules.rules_of(pod, needs, profile.added_affinity if profile else None)
            template = Template(spec, pod.namespace, rules, needs.use, identity)
            builder = _TemplateBuilder(self._config, self._nodes, self._acquaintance, template)
            builder.build(pod, self._eligibilities, self._defaults(spec), self._daemons)
            self._nodes.track(name for name, _ in (*rules.needs.amounts, *template.use.amounts))
            self._templates[identity] = template
        template.classes += 1
        return template

    def _reads_labels(self, spec: PodSpec) -> bool:
        """Whether compiling looks at the pod's own labels."""
        constraints = spec.topology_spread_constraints
        if not constraints:
            return bool(self._defaults(spec))
        return any(each.match_label_keys for each in constraints)

    def _defaults(self, spec: PodSpec) -> tuple[TopologySpreadConstraint, ...]:
        """The constraints of the pod's profile for pods that have none of their own."""
        profile = self._profiles.get(spec.scheduler_name)
        return profile.default_constraints if profile else ()


def _alike(one: Pod, other: Pod) -> bool:
    """Whether two pods are certainly of one class, by the identity of what they share."""
    return (
        one.spec is other.spec
        and one.labels is other.labels
        and one.namespace == other.namespace
        and one.terminating == other.terminating
        and one.required_node_name == other.required_node_name
    )


class _TemplateBuilder:
    """Fills one template; interns its matchers and counters."""

    def __init__(
        self,
        config: ClusterConfig,
        nodes: NodeTable,
        acquaintance: MatchIndex,
        template: Template,
    ) -> None:
        self._config = config
        self._nodes = nodes
        self._acquaintance = acquaintance
        self._template = template

    def build(
        self,
        pod: Pod,
        eligibilities: Eligibilities,
        defaults: tuple[TopologySpreadConstraint, ...],
        daemons: frozenset[str],
    ) -> None:
        affinity, own = pod.spec.affinity, pod.spec.topology_spread_constraints
        if affinity is not None and (affinity.pod_affinity or affinity.pod_anti_affinity):
            self._terms(affinity, daemons)
        constraints = own or (_selecting_alike(defaults, pod) if defaults else ())
        if constraints:
            self._spread(pod, constraints, eligibilities)

    def _terms(self, affinity: Affinity, daemons: frozenset[str]) -> None:
        template = self._template
        attract = affinity.pod_affinity or PodAffinity()
        repel = affinity.pod_anti_affinity or PodAffinity()
        required = self._matchers(_required(attract), frozenset())
        forbidden = self._matchers(_required(repel), daemons)
        template.affinity = tuple(self._required_affinity(required))
        enduring = attract.required_during_scheduling_required_during_execution or ()
        template.enduring_affinity = tuple(
            self._required_affinity(self._matchers(enduring, frozenset()))
        )
        template.anti_affinity = tuple(
            self._term(frozenset((matcher,)), key) for matcher, key in forbidden
        )
        wanted = self._weighted(attract, 1)
        unwanted = self._weighted(repel, -1)
        template.preferred = tuple(
            self._term(frozenset((matcher,)), key, weight)
            for matcher, key, weight in (*wanted, *unwanted)
        )
        template.owned = (
            *(self._owned(Role.FORBIDS, *each) for each in forbidden),
            *(self._owned(Role.ATTRACTS_HARD, *each) for each in required),
            *(self._owned(Role.ATTRACTS, *each) for each in wanted),
            *(self._owned(Role.REPELS, m, key, -weight) for m, key, weight in unwanted),
        )

    def _matchers(
        self, terms: Sequence[PodAffinityTerm], daemons: frozenset[str]
    ) -> list[tuple[TermMatcher, str]]:
        return [(self._matcher(term, daemons), term.topology_key) for term in terms]

    def _weighted(self, affinity: PodAffinity, sign: int) -> list[tuple[TermMatcher, str, int]]:
        return [
            (
                self._matcher(each.pod_affinity_term, frozenset()),
                each.pod_affinity_term.topology_key,
                sign * each.weight,
            )
            for each in affinity.preferred_during_scheduling_ignored_during_execution or ()
        ]

    def _matcher(self, term: PodAffinityTerm, daemons: frozenset[str]) -> TermMatcher:
        return compile_term(
            term,
            self._template.namespace,
            empty_list_means_all=self._config.empty_namespaces_mean_all,
            except_namespaces=daemons,
        )

    def _required_affinity(self, terms: list[tuple[TermMatcher, str]]) -> list[AffinityTerm]:
        """As in Kubernetes one placed pod must match all terms to count for any of them."""
        if self._config.affinity_per_term:
            return [self._term(frozenset((matcher,)), key) for matcher, key in terms]
        together = frozenset(matcher for matcher, _ in terms)
        return [self._term(together, key) for key in dict.fromkeys(key for _, key in terms)]

    def _term(self, matcher: Matcher, key: str, weight: int = 0) -> AffinityTerm:
        entry = self._entry(frozenset(for_incoming(each) for each in matcher))
        topology = self._nodes.key(key)
        counter = entry.counter(key, lambda: DomainCounter(topology))
        return AffinityTerm(entry, counter, weight)

    def _owned(self, role: Role, matcher: TermMatcher, key: str, weight: int = 0) -> OwnedTerm:
        return self._entry(frozenset((matcher,))).term(role, self._nodes.key(key), weight)

    def _entry(self, matcher: Matcher) -> MatcherEntry:
        entry = self._acquaintance.entry(matcher)
        if entry not in self._template.entries:
            self._template.entries.append(entry)
            entry.templates += 1
        return entry

    def _spread(
        self,
        pod: Pod,
        constraints: tuple[TopologySpreadConstraint, ...],
        eligibilities: Eligibilities,
    ) -> None:
        for when, attribute in (("DoNotSchedule", "hard"), ("ScheduleAnyway", "soft")):
            chosen = [each for each in constraints if each.when_unsatisfiable == when]
            keys = [self._nodes.key(each.topology_key) for each in chosen]
            rules = tuple(
                self._rule(pod, each, keys, eligibilities, soft=attribute == "soft")
                for each in chosen
            )
            setattr(self._template, f"{attribute}_spread", rules)

    def _rule(
        self,
        pod: Pod,
        constraint: TopologySpreadConstraint,
        keys: list[TopologyKey],
        eligibilities: Eligibilities,
        *,
        soft: bool,
    ) -> SpreadRule:
        rules = self._template.rules
        eligibility = eligibilities.get(
            keys,
            rules.required if constraint.node_affinity_policy == "Honor" else None,
            rules.tolerations if constraint.node_taints_policy == "Honor" else None,
        )
        selector = compile_selector(spread_selector(constraint, pod.labels))
        per_node = soft and constraint.topology_key == HOSTNAME
        key = self._nodes.key(constraint.topology_key)
        return SpreadRule(
            key=key,
            counter=self._spread_counter(selector, key, eligibility, per_node=per_node),
            per_node=per_node,
            eligibility=eligibility,
            max_skew=constraint.max_skew,
            min_domains=constraint.min_domains or 1,
            selector=selector,
        )

    def _spread_counter(
        self,
        selector: Selector | None,
        key: TopologyKey,
        eligibility: Eligibility,
        *,
        per_node: bool,
    ) -> DomainCounter | None:
        if not selector:
            return None
        own = NamespaceRule(frozenset((self._template.namespace,)), None)
        entry = self._entry(frozenset((TermMatcher(own, selector, terminating_too=False),)))
        if per_node:
            return entry.counter(self._nodes.itself, lambda: DomainCounter(self._nodes.itself))
        return entry.counter((key.name, eligibility), lambda: SpreadCounter(key, eligibility))


def _required(affinity: PodAffinity) -> tuple[PodAffinityTerm, ...]:
    """Both required variants filter alike at scheduling."""
    return (
        *(affinity.required_during_scheduling_required_during_execution or ()),
        *(affinity.required_during_scheduling_ignored_during_execution or ()),
    )


def _selecting_alike(
    constraints: tuple[TopologySpreadConstraint, ...], pod: Pod
) -> tuple[TopologySpreadConstraint, ...]:
    """Default constraints for one pod: where they have no selector they count pods labelled alike.

    Kubernetes takes the selector of the pod's service or replica set, which Moorage doesn't know.
    """
    selector = LabelSelector(match_labels=dict(pod.labels))
    return tuple(
        each if each.label_selector is not None else replace(each, label_selector=selector)
        for each in constraints
    )
