"""Compiled pods: a `Template` for each spec, and a `PodClass` for each template with labels.

A `Template` is a spec compiled in its namespace: its rules on nodes, and counters for its terms. A
`PodClass` is a template with labels; pods of one class are interchangeable for every rule. Whether
a matcher matches a class is decided once, when the later of the two is created. From then on,
placing a pod adds to the counters that match its class, without any search.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum

from service.engine.state.devices.pod_devices import PodDevices
from service.engine.state.nodes.counters import DomainCounter, DomainLimit
from service.engine.state.nodes.node_rules import NodeRules, PodResources
from service.engine.state.nodes.topology import TopologyKey
from service.engine.state.pods.matchers import (
    Matcher,
    Subject,
    label_pairs,
    matches,
    named_namespaces,
    size_in_bytes,
)
from service.engine.state.pods.spread import SpreadRule
from service.engine.state.volumes.volume_table import PodVolumes
from service.model.core.primitives import LabelSelector, OwnerReference
from service.model.core.selectors import matches as selector_matches
from service.model.pods.pod import Affinity, PodSpec


class Role(Enum):
    """The meaning of a placed pod's term for a pod that it matches."""

    FORBIDS = "required anti-affinity"
    ATTRACTS_HARD = "required affinity, which counts as a preference of the configured weight"
    ATTRACTS = "preferred affinity"
    REPELS = "preferred anti-affinity"


class OwnedTerm:
    """A term of placed pods, with the number of its owners in each domain."""

    __slots__ = ("counter", "limit", "matcher", "role", "users", "weight")

    def __init__(
        self,
        role: Role,
        matcher: "MatcherEntry",
        key: TopologyKey,
        weight: int,
        max_per_domain: int | None,
    ) -> None:
        self.role = role
        self.matcher = matcher
        self.weight = weight
        self.counter = DomainCounter(key)
        self.users = 0
        """The number of template terms that share this one."""
        self.limit: DomainLimit | None = None
        """The domains that are full for a pod that the term matches, or None without
        `maxPerDomain`."""
        if max_per_domain is not None:
            pods = matcher.hold_counter(key.name, lambda: DomainCounter(key))
            self.limit = DomainLimit(pods, max_per_domain, self.counter)

    @property
    def preference(self) -> int:
        """The weight with which owners attract (if negative, repel) pods, or 0 if required."""
        if self.role is Role.ATTRACTS:
            return self.weight
        return -self.weight if self.role is Role.REPELS else 0

    @property
    def max_per_domain(self) -> int | None:
        return None if self.limit is None else self.limit.full_at

    @property
    def identity(self) -> "TermIdentity":
        """The interning key of the term within its matcher."""
        return self.role, self.counter.key.name, self.weight, self.max_per_domain


TermIdentity = tuple[Role, str, int, int | None]
"""The role, topology key, weight, and maximum number of pods per domain."""


class MatcherEntry:
    """An interned matcher, with its terms, its counters, and the classes that it matches."""

    __slots__ = ("_terms", "classes", "counters", "matcher", "templates", "terms")

    def __init__(self, matcher: Matcher) -> None:
        self.matcher = matcher
        self.classes: dict[PodClass, None] = {}
        self.counters: dict[object, DomainCounter] = {}
        self.terms: list[OwnedTerm] = []
        self._terms: dict[TermIdentity, OwnedTerm] = {}
        self.templates = 0
        """The number of templates that use the matcher, which is dropped once there are none."""

    @property
    def reads_namespace_labels(self) -> bool:
        return any(term.reads_namespace_labels for term in self.matcher)

    def hold_counter(self, kind: object, make: Callable[[], DomainCounter]) -> DomainCounter:
        """Return the counter of a kind and add a reference; a new one counts the placed pods."""
        counter = self.counters.get(kind)
        if counter is None:
            counter = self.counters[kind] = make()
            for pod_class in self.classes:
                for slot, pods in pod_class.nodes.items():
                    counter.add(slot, pods)
        counter.users += 1
        return counter

    def release_counter(self, kind: object) -> None:
        """Remove a reference to a counter, and drop the counter if it was the last one."""
        counter = self.counters[kind]
        counter.users -= 1
        if not counter.users:
            counter.is_dropped = True
            del self.counters[kind]

    def hold_term(
        self, role: Role, key: TopologyKey, weight: int, max_per_domain: int | None = None
    ) -> OwnedTerm:
        """Return the term of placed pods with this identity, and add a reference to it."""
        identity = role, key.name, weight, max_per_domain
        term = self._terms.get(identity)
        if term is None:
            term = self._terms[identity] = OwnedTerm(role, self, key, weight, max_per_domain)
            self.terms.append(term)
        term.users += 1
        return term

    def release_term(self, term: OwnedTerm) -> None:
        """Remove a reference to a term, and drop the term if it was the last one."""
        term.users -= 1
        if not term.users:
            term.counter.is_dropped = True
            del self._terms[term.identity]
            self.terms.remove(term)
            if term.limit is not None:
                self.release_counter(term.counter.key.name)


class AffinityTerm:
    """A term of an incoming pod, with the number of matching pods in each domain of a key."""

    __slots__ = ("counter", "matcher", "max_per_domain", "weight")

    def __init__(
        self,
        matcher: MatcherEntry,
        counter: DomainCounter,
        weight: int = 0,
        max_per_domain: int | None = None,
    ) -> None:
        self.matcher = matcher
        self.counter = counter
        self.weight = weight
        """The weight of the term, negative for anti-affinity, or 0 for a required term."""
        self.max_per_domain = max_per_domain
        """The maximum number of matching pods per domain, or None without `maxPerDomain`."""

    def limit_for(self, pod_class: "PodClass") -> DomainLimit | None:
        """Return the domains that are full for pods of a class, or None without a limit."""
        if self.max_per_domain is None:
            return None
        full_at = self.max_per_domain + 1 - (pod_class in self.matcher.classes)
        return DomainLimit(self.counter, full_at)


COUNTER_BYTES = 768
"""The approximate size in bytes of a counter, or of a term and its counter, without the counts."""

FALLBACK = "FallbackWhenFull"
"""The `whenUnsatisfiable` of a spread constraint that is hard only while there is room."""


class Template:
    """A pod's spec, compiled in its namespace for one cluster."""

    __slots__ = (
        "affinity",
        "affinity_of_first",
        "affinity_per_term",
        "anti_affinity",
        "classes",
        "counted",
        "entries",
        "excepts",
        "execution_affinity",
        "falls_back",
        "hard_spread",
        "has_execution_rules",
        "identity",
        "idle",
        "keys",
        "namespace",
        "needs",
        "owned",
        "preferred",
        "rules",
        "siblings",
        "soft_spread",
        "spec",
        "use",
        "variants",
        "weight",
    )

    def __init__(
        self, spec: PodSpec, namespace: str, rules: NodeRules, needs: PodResources, identity: object
    ) -> None:
        self.spec = spec
        self.identity = identity
        self.classes = 0
        self.idle = 0
        """The number of classes without pods."""
        self.weight = 0
        """The bytes that the template adds to `Compiler.idle_bytes` when all its classes are idle.
        """
        self.entries: dict[MatcherEntry, None] = {}
        self.counted: list[tuple[MatcherEntry, object]] = []
        """The counters that the rules read, by matcher and kind; each entry holds one reference."""
        self.keys: dict[str, None] = {}
        """The topology keys of the rules."""
        self.namespace = namespace
        self.rules = rules
        self.needs = needs
        self.use = needs.use
        self.affinity: tuple[AffinityTerm, ...] = ()
        self.siblings: AffinityTerm | None = None
        """The term that counts a pod's siblings, including itself, or None if no term exempts the
        first pod."""
        self.affinity_of_first: tuple[AffinityTerm, ...] = ()
        """The required affinity of a pod that has no placed sibling."""
        self.affinity_per_term = False
        """Whether each term is a separate requirement; otherwise, one pod has to match all of them.
        """
        self.has_execution_rules = _has_execution_rules(spec.affinity)
        """Whether any rule is required during execution."""
        self.execution_affinity: tuple[AffinityTerm, ...] = ()
        """The affinity that is required during execution, compiled without the other required
        terms."""
        self.anti_affinity: tuple[AffinityTerm, ...] = ()
        self.excepts = False
        """Whether a required anti-affinity term excepts namespaces by their labels."""
        self.preferred: tuple[AffinityTerm, ...] = ()
        self.hard_spread: tuple[SpreadRule, ...] = ()
        self.soft_spread: tuple[SpreadRule, ...] = ()
        """The constraints that score nodes, including those that filter only while there is room.
        """
        self.falls_back = any(
            constraint.when_unsatisfiable == FALLBACK
            for constraint in spec.topology_spread_constraints
        )
        """Whether a constraint filters only while some node satisfies it."""
        self.variants: dict[tuple[int, ...], PodSpec] = {}
        """The spec by the indexes of the fallback constraints made hard; all others are made soft.
        """
        self.owned: tuple[OwnedTerm, ...] = ()


class PodClass:
    """Pods that no rule distinguishes, with the nodes that they are placed on."""

    __slots__ = (
        "devices",
        "hard_self",
        "identity",
        "is_dropped",
        "kin",
        "labels",
        "matched",
        "namespace",
        "nodes",
        "owners",
        "pods",
        "relation_plugins",
        "template",
        "terminating",
        "unready",
        "volumes",
    )

    def __init__(
        self,
        template: Template,
        labels: dict[str, str],
        *,
        terminating: bool,
        volumes: PodVolumes | None = None,
        devices: PodDevices | None = None,
    ) -> None:
        self.namespace = template.namespace
        self.labels = labels
        self.terminating = terminating
        self.compiled_as(template, None)
        self.volumes = volumes
        """The volumes, or None if scheduling reads no volumes of the pods or volumes are ignored.
        """
        self.devices = devices
        """The devices, or None for pods without device claims, for placed pods, or if devices are
        not allocated."""
        self.identity: object = None
        self.kin: object = None
        """A key that is equal for the classes of the same pods before and after placement, or None
        if their class does not change."""
        self.is_dropped = False
        """Whether the class was dropped."""
        self.matched: dict[MatcherEntry, None] = {}
        self.nodes: dict[int, int] = {}
        """The number of placed pods of this class on each node, by slot."""
        self.unready = 0
        """The number of placed pods of this class that report that they are not ready."""
        self.pods = 0
        """The number of known pods of this class, placed or not."""
        self.owners: dict[OwnerReference, int] = {}
        """The number of these pods that each controller manages."""

    @property
    def is_labeled(self) -> bool:
        """Whether the pods have any labels other than the internal one that identifies siblings."""
        return len(self.labels) > (self.template.siblings is not None)

    @property
    def affinity(self) -> tuple[AffinityTerm, ...]:
        """The required affinity of a pod of the class that is placed now."""
        template = self.template
        siblings = template.siblings
        if siblings is None or siblings.counter.total:
            return template.affinity
        return template.affinity_of_first

    def compiled_as(self, template: Template, namespace_labels: Mapping[str, str] | None) -> None:
        """Replace the template with one of the same spec that differs only in its spread rules.

        Pass the current template to update the class for new namespace labels.
        """
        self.template = template
        self.relation_plugins: object = None
        """The plugins that apply to the class, cached by placements, or None before the first
        placement."""
        own = Subject(self.namespace, namespace_labels, self.labels, self.terminating)
        self.hard_self = tuple([rule.counts_owner(own) for rule in template.hard_spread])
        """Whether each hard spread rule counts the pod itself."""

    def first_for(self, terms: Sequence[AffinityTerm]) -> list[bool]:
        """Return whether a pod of the class would be the first match of each required term.

        By the first-pod rule, such a pod only needs a node with the topology key.
        """
        if self.template.affinity_per_term:
            return [not term.counter.total and self.matches_all((term,)) for term in terms]
        first = not any(term.counter.total for term in terms) and self.matches_all(terms)
        return [first] * len(terms)

    def matches_all(self, terms: Iterable[AffinityTerm]) -> bool:
        """Return whether pods of this class match all of the terms themselves."""
        return all(self in term.matcher.classes for term in terms)


class MatchIndex:
    """An index of matchers and the classes that they match.

    Both are indexed by label pairs, so that a new matcher or class is compared only with possible
    matches.
    """

    def __init__(self) -> None:
        self.entries: dict[Matcher, MatcherEntry] = {}
        self._entries_by_pair: dict[tuple[str, str], dict[MatcherEntry, None]] = {}
        self._entries_by_namespace: dict[str, dict[MatcherEntry, None]] = {}
        """The matchers without a label pair that are limited to certain namespaces, by namespace.
        """
        self._wide_entries: dict[MatcherEntry, None] = {}
        """The matchers without a label pair that may match in any namespace."""
        self.has_dropped_viewed = False
        """Whether a counter with views was dropped."""
        self._classes: dict[PodClass, None] = {}
        self._classes_by_pair: dict[tuple[str, str], dict[PodClass, None]] = {}
        self._classes_by_namespace: dict[str, dict[PodClass, None]] = {}
        self.namespace_labels: dict[str, dict[str, str]] = {}

    @property
    def indexed(self) -> int:
        """The number of entries in the index of matchers by label pair."""
        return sum(map(len, self._entries_by_pair.values()))

    def entry(self, matcher: Matcher) -> MatcherEntry:
        """Return the interned matcher; a new one is compared with all known classes."""
        known = self.entries.get(matcher)
        if known is not None:
            return known
        entry = self.entries[matcher] = MatcherEntry(matcher)
        pairs, namespaces = label_pairs(matcher), named_namespaces(matcher)
        if pairs is not None:
            pairs = list(pairs)
            for pair in pairs:
                self._entries_by_pair.setdefault(pair, {})[entry] = None
            candidates: Iterable[PodClass] = [
                pod_class for p in pairs for pod_class in self._classes_by_pair.get(p, ())
            ]
        elif namespaces is not None:
            for name in namespaces:
                self._entries_by_namespace.setdefault(name, {})[entry] = None
            candidates = [
                pod_class
                for name in namespaces
                for pod_class in self._classes_by_namespace.get(name, ())
            ]
        else:
            self._wide_entries[entry] = None
            candidates = self._classes
        for pod_class in candidates:
            self._compare(entry, pod_class)
        return entry

    def sizes(self) -> Iterator[tuple[str, int]]:
        """Yield the kind and approximate size in bytes of each matcher, counter, and term."""
        for entry in self.entries.values():
            yield "matchers", size_in_bytes(entry.matcher) + 64 * len(entry.classes)
            for counter in entry.counters.values():
                yield "counters", COUNTER_BYTES + counter.size_in_bytes
            for term in entry.terms:
                yield "terms", COUNTER_BYTES + term.counter.size_in_bytes

    def is_wide(self, entry: MatcherEntry) -> bool:
        """Return whether a matcher must be compared with every new class."""
        return entry in self._wide_entries

    @property
    def classes(self) -> Iterable[PodClass]:
        """All known classes."""
        return self._classes

    def having(self, pair: tuple[str, str]) -> Iterable[PodClass]:
        """Return the classes with a label."""
        return self._classes_by_pair.get(pair, ())

    def selected(self, namespace: str, selector: LabelSelector | None) -> list[PodClass]:
        """Return the classes of a namespace that match a selector."""
        pairs = _pairs_of(selector)
        if pairs is None:
            candidates = list(self._classes_by_namespace.get(namespace, ()))
        else:
            candidates = [pod_class for pair in pairs for pod_class in self.having(pair)]
        return [
            candidate
            for candidate in candidates
            if candidate.namespace == namespace and selector_matches(selector, candidate.labels)
        ]

    def join(self, pod_class: PodClass) -> None:
        """Add a new class without placed pods, and compare it with all known matchers."""
        self._classes[pod_class] = None
        self._apply_namespace_labels(pod_class)
        self._classes_by_namespace.setdefault(pod_class.namespace, {})[pod_class] = None
        for pair in pod_class.labels.items():
            self._classes_by_pair.setdefault(pair, {})[pod_class] = None
        self._compare_all(pod_class)

    def leave(self, pod_class: PodClass) -> None:
        """Remove a class without pods."""
        assert not pod_class.nodes
        del self._classes[pod_class]
        _discard(self._classes_by_namespace, pod_class.namespace, pod_class)
        for pair in pod_class.labels.items():
            _discard(self._classes_by_pair, pair, pod_class)
        for entry in pod_class.matched:
            del entry.classes[pod_class]

    def release(self, template: Template) -> None:
        """Drop the terms, counters, and matchers that only a dropped template used."""
        for term in template.owned:
            term.matcher.release_term(term)
            self._note(term.counter)
            if term.limit is not None:
                self._note(term.limit.pods)
        for entry, kind in template.counted:
            counter = entry.counters[kind]
            entry.release_counter(kind)
            self._note(counter)
        for entry in template.entries:
            entry.templates -= 1
            if not entry.templates:
                self._forget(entry)

    def _note(self, counter: DomainCounter) -> None:
        if counter.is_dropped and counter.is_viewed:
            self.has_dropped_viewed = True

    def _forget(self, entry: MatcherEntry) -> None:
        assert not entry.counters, "an unused matcher has no used counter"
        del self.entries[entry.matcher]
        for pod_class in entry.classes:
            del pod_class.matched[entry]
        pairs, namespaces = label_pairs(entry.matcher), named_namespaces(entry.matcher)
        if pairs is not None:
            for pair in dict.fromkeys(pairs):
                _discard(self._entries_by_pair, pair, entry)
        elif namespaces is not None:
            for name in namespaces:
                _discard(self._entries_by_namespace, name, entry)
        else:
            del self._wide_entries[entry]

    def relabel_namespace(self, name: str, labels: dict[str, str] | None) -> None:
        """Set a namespace's labels, or remove them (None), and update whatever depends on them."""
        if self.namespace_labels.get(name) == labels:
            return
        if labels is None:
            del self.namespace_labels[name]
        else:
            self.namespace_labels[name] = labels
        for pod_class in self._classes_by_namespace.get(name, ()):
            self._apply_namespace_labels(pod_class)
            self._rematch(pod_class)

    def _apply_namespace_labels(self, pod_class: PodClass) -> None:
        """Recompute whether constraints that select namespaces count the class's own pods."""
        template = pod_class.template
        if any(rule.namespaces is not None for rule in template.hard_spread):
            pod_class.compiled_as(template, self.namespace_labels.get(pod_class.namespace))

    def _rematch(self, pod_class: PodClass) -> None:
        before = pod_class.matched
        pod_class.matched = {}
        for entry in before:
            del entry.classes[pod_class]
        self._compare_all(pod_class)
        for entry in before:
            if pod_class not in entry.classes:
                _recount(entry, pod_class, -1)
        for entry in pod_class.matched:
            if entry not in before:
                _recount(entry, pod_class, 1)

    def _compare_all(self, pod_class: PodClass) -> None:
        for entry in self._wide_entries:
            self._compare(entry, pod_class)
        for entry in self._entries_by_namespace.get(pod_class.namespace, ()):
            self._compare(entry, pod_class)
        for pair in pod_class.labels.items():
            for entry in self._entries_by_pair.get(pair, ()):
                self._compare(entry, pod_class)

    def _compare(self, entry: MatcherEntry, pod_class: PodClass) -> None:
        if pod_class not in entry.classes and matches(entry.matcher, self.subject(pod_class)):
            entry.classes[pod_class] = None
            pod_class.matched[entry] = None

    def subject(self, pod_class: PodClass) -> Subject:
        return Subject(
            pod_class.namespace,
            self.namespace_labels.get(pod_class.namespace),
            pod_class.labels,
            pod_class.terminating,
        )


def _pairs_of(selector: LabelSelector | None) -> Iterable[tuple[str, str]] | None:
    """Return label pairs such that every match has exactly one of them, or None."""
    if selector is None:
        return ()
    if selector.match_labels:
        return list(selector.match_labels.items())[:1]
    for expression in selector.match_expressions or ():
        if expression.operator == "In":
            return [(expression.key, value) for value in dict.fromkeys(expression.values or ())]
    return None


def _has_execution_rules(affinity: Affinity | None) -> bool:
    parts = affinity and (affinity.node_affinity, affinity.pod_affinity, affinity.pod_anti_affinity)
    return any(
        part.required_during_scheduling_required_during_execution
        for part in parts or ()
        if part is not None
    )


def _recount(entry: MatcherEntry, pod_class: PodClass, sign: int) -> None:
    for counter in entry.counters.values():
        for slot, pods in pod_class.nodes.items():
            counter.add(slot, sign * pods)


def _discard(index: dict, key: object, member: object) -> None:  # type: ignore[type-arg]
    members = index[key]
    del members[member]
    if not members:
        del index[key]
