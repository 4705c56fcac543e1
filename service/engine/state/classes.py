"""Pod templates and classes: what rules read of a pod, compiled once and told to the counters.

A `Template` is what a spec means in a namespace: its rules on nodes, its terms as counters. A
`PodClass` is a template with labels; pods of one class are interchangeable for every rule. Class
and matcher meet once, when the later of the two appears; from then on placing a pod adds to the
counters that its class is known to match, and nothing is searched.
"""

from collections.abc import Callable, Iterable
from enum import Enum

from service.engine.state.counters import DomainCounter, Eligibility, SpreadCounter
from service.engine.state.matchers import Matcher, Subject, label_pairs, matches
from service.engine.state.rules import NodeRules, Use
from service.engine.state.spread import SpreadRule
from service.engine.state.topology import TopologyKey
from service.model.objects import Affinity, PodSpec


class Role(Enum):
    """What a term that placed pods own means for a pod that it matches."""

    FORBIDS = "required anti-affinity"
    ATTRACTS_HARD = "required affinity, which counts as a preference of the configured weight"
    ATTRACTS = "preferred affinity"
    REPELS = "preferred anti-affinity"


class OwnedTerm:
    """One term, as owned by placed pods: how many owners each domain holds."""

    __slots__ = ("counter", "matcher", "role", "weight")

    def __init__(self, role: Role, matcher: "MatcherEntry", key: TopologyKey, weight: int) -> None:
        self.role = role
        self.matcher = matcher
        self.weight = weight
        self.counter = DomainCounter(key)


class MatcherEntry:
    """An interned matcher: the classes it matches, the counters of them, the terms that use it."""

    __slots__ = ("classes", "counters", "matcher", "templates", "terms")

    def __init__(self, matcher: Matcher) -> None:
        self.matcher = matcher
        self.classes: dict[PodClass, None] = {}
        self.counters: dict[object, DomainCounter] = {}
        self.terms: list[OwnedTerm] = []
        self.templates = 0
        """Templates that use the matcher; without any it is forgotten."""

    @property
    def reads_namespace_labels(self) -> bool:
        return any(term.reads_namespace_labels for term in self.matcher)

    def counter(self, kind: object, make: Callable[[], DomainCounter]) -> DomainCounter:
        """The counter of that kind; a new one starts from the pods that are placed already."""
        found = self.counters.get(kind)
        if found is None:
            found = self.counters[kind] = make()
            for pod_class in self.classes:
                for slot, pods in pod_class.nodes.items():
                    found.add(slot, pods)
        return found

    def drop_counters(self, eligibility: Eligibility) -> None:
        """Stop counting over a set of nodes that no constraint uses any more."""
        self.counters = {
            kind: counter
            for kind, counter in self.counters.items()
            if not (isinstance(counter, SpreadCounter) and counter.eligibility is eligibility)
        }

    def term(self, role: Role, key: TopologyKey, weight: int) -> OwnedTerm:
        """The term of that kind that placed pods own; made on first use."""
        for term in self.terms:
            if (term.role, term.counter.key, term.weight) == (role, key, weight):
                return term
        term = OwnedTerm(role, self, key, weight)
        self.terms.append(term)
        return term


class AffinityTerm:
    """A term of an incoming pod: pods that match, per domain of a key."""

    __slots__ = ("counter", "matcher", "weight")

    def __init__(self, matcher: MatcherEntry, counter: DomainCounter, weight: int = 0) -> None:
        self.matcher = matcher
        self.counter = counter
        self.weight = weight
        """Negative for anti-affinity; 0 for a required term."""


class Template:
    """A pod's spec in a namespace, compiled against one cluster."""

    __slots__ = (
        "affinity",
        "anti_affinity",
        "classes",
        "enduring",
        "enduring_affinity",
        "entries",
        "hard_spread",
        "identity",
        "namespace",
        "owned",
        "preferred",
        "rules",
        "soft_spread",
        "spec",
        "use",
    )

    def __init__(
        self, spec: PodSpec, namespace: str, rules: NodeRules, use: Use, identity: object
    ) -> None:
        self.spec = spec
        self.identity = identity
        self.classes = 0
        self.entries: list[MatcherEntry] = []
        self.namespace = namespace
        self.rules = rules
        self.use = use
        self.affinity: tuple[AffinityTerm, ...] = ()
        self.enduring = _endures(spec.affinity)
        """Whether any rule is required during execution."""
        self.enduring_affinity: tuple[AffinityTerm, ...] = ()
        """The affinity that is required during execution, with nothing else asked of the pods."""
        self.anti_affinity: tuple[AffinityTerm, ...] = ()
        self.preferred: tuple[AffinityTerm, ...] = ()
        self.hard_spread: tuple[SpreadRule, ...] = ()
        self.soft_spread: tuple[SpreadRule, ...] = ()
        self.owned: tuple[OwnedTerm, ...] = ()


class PodClass:
    """Pods that no rule can tell apart, and where they are placed."""

    __slots__ = (
        "hard_self",
        "identity",
        "labels",
        "matched",
        "namespace",
        "nodes",
        "pods",
        "template",
        "terminating",
    )

    def __init__(self, template: Template, labels: dict[str, str], *, terminating: bool) -> None:
        self.template = template
        self.hard_self = tuple(rule.counts(labels) for rule in template.hard_spread)
        """For each hard spread rule, whether the pod itself counts."""
        self.namespace = template.namespace
        self.labels = labels
        self.terminating = terminating
        self.identity: object = None
        self.matched: list[MatcherEntry] = []
        self.nodes: dict[int, int] = {}
        """Placed pods of this class per slot."""
        self.pods = 0
        """Known pods of this class, placed or not."""

    def count(self, slot: int, pods: int) -> None:
        """Tell every counter concerned of pods that come to (or leave) a node."""
        for entry in self.matched:
            for counter in entry.counters.values():
                counter.add(slot, pods)
        for term in self.template.owned:
            term.counter.add(slot, pods)

    def matches_all(self, terms: Iterable[AffinityTerm]) -> bool:
        """Whether pods of this class match every one of the terms themselves."""
        return all(self in term.matcher.classes for term in terms)


class MatchIndex:
    """Who matches whom: every matcher knows its classes, every class its matchers.

    Indexed by label pairs, so that a newcomer is compared only with those it can match.
    """

    def __init__(self) -> None:
        self.entries: dict[Matcher, MatcherEntry] = {}
        self._entries_by_pair: dict[tuple[str, str], list[MatcherEntry]] = {}
        self._entries_without_pair: list[MatcherEntry] = []
        self._classes: dict[PodClass, None] = {}
        self._classes_by_pair: dict[tuple[str, str], dict[PodClass, None]] = {}
        self._classes_by_namespace: dict[str, dict[PodClass, None]] = {}
        self.namespace_labels: dict[str, dict[str, str]] = {}

    @property
    def indexed(self) -> int:
        """How many places matchers have in the index of label pairs."""
        return sum(map(len, self._entries_by_pair.values()))

    def entry(self, matcher: Matcher) -> MatcherEntry:
        """The interned matcher; a new one meets the classes that are known."""
        found = self.entries.get(matcher)
        if found is not None:
            return found
        entry = self.entries[matcher] = MatcherEntry(matcher)
        pairs = label_pairs(matcher)
        if pairs is None:
            self._entries_without_pair.append(entry)
            candidates: Iterable[PodClass] = self._classes
        else:
            pairs = list(pairs)
            for pair in pairs:
                self._entries_by_pair.setdefault(pair, []).append(entry)
            candidates = [each for p in pairs for each in self._classes_by_pair.get(p, ())]
        for pod_class in candidates:
            self._meet(entry, pod_class)
        return entry

    @property
    def classes(self) -> Iterable[PodClass]:
        """All classes that are known."""
        return self._classes

    def join(self, pod_class: PodClass) -> None:
        """A new class (with no pods placed yet) meets the matchers that are known."""
        self._classes[pod_class] = None
        self._classes_by_namespace.setdefault(pod_class.namespace, {})[pod_class] = None
        for pair in pod_class.labels.items():
            self._classes_by_pair.setdefault(pair, {})[pod_class] = None
        self._meet_all(pod_class)

    def leave(self, pod_class: PodClass) -> None:
        """Forget a class that has no pods."""
        assert not pod_class.nodes
        del self._classes[pod_class]
        _discard(self._classes_by_namespace, pod_class.namespace, pod_class)
        for pair in pod_class.labels.items():
            _discard(self._classes_by_pair, pair, pod_class)
        for entry in pod_class.matched:
            del entry.classes[pod_class]

    def release(self, entries: Iterable[MatcherEntry]) -> None:
        """One template less uses these matchers; forget those that nothing uses."""
        for entry in entries:
            entry.templates -= 1
            if not entry.templates:
                self._forget(entry)

    def _forget(self, entry: MatcherEntry) -> None:
        del self.entries[entry.matcher]
        for pod_class in entry.classes:
            pod_class.matched.remove(entry)
        pairs = label_pairs(entry.matcher)
        if pairs is None:
            self._entries_without_pair.remove(entry)
        for pair in pairs or ():
            self._entries_by_pair[pair].remove(entry)

    def relabel_namespace(self, name: str, labels: dict[str, str] | None) -> None:
        """Give a namespace other labels (None: not stored) and re-derive what depends on them."""
        if self.namespace_labels.get(name) == labels:
            return
        if labels is None:
            del self.namespace_labels[name]
        else:
            self.namespace_labels[name] = labels
        for pod_class in self._classes_by_namespace.get(name, ()):
            self._rematch(pod_class)

    def _rematch(self, pod_class: PodClass) -> None:
        before = pod_class.matched
        pod_class.matched = []
        for entry in before:
            del entry.classes[pod_class]
        self._meet_all(pod_class)
        for entry in before:
            if pod_class not in entry.classes:
                _recount(entry, pod_class, -1)
        for entry in pod_class.matched:
            if entry not in before:
                _recount(entry, pod_class, 1)

    def _meet_all(self, pod_class: PodClass) -> None:
        for entry in self._entries_without_pair:
            self._meet(entry, pod_class)
        for pair in pod_class.labels.items():
            for entry in self._entries_by_pair.get(pair, ()):
                self._meet(entry, pod_class)

    def _meet(self, entry: MatcherEntry, pod_class: PodClass) -> None:
        if pod_class not in entry.classes and matches(entry.matcher, self.subject(pod_class)):
            entry.classes[pod_class] = None
            pod_class.matched.append(entry)

    def subject(self, pod_class: PodClass) -> Subject:
        return Subject(
            pod_class.namespace,
            self.namespace_labels.get(pod_class.namespace),
            pod_class.labels,
            pod_class.terminating,
        )


def _endures(affinity: Affinity | None) -> bool:
    parts = affinity and (affinity.node_affinity, affinity.pod_affinity, affinity.pod_anti_affinity)
    return any(
        each.required_during_scheduling_required_during_execution
        for each in parts or ()
        if each is not None
    )


def _recount(entry: MatcherEntry, pod_class: PodClass, sign: int) -> None:
    for counter in entry.counters.values():
        for slot, pods in pod_class.nodes.items():
            counter.add(slot, sign * pods)


def _discard(index: dict, key: object, pod_class: PodClass) -> None:  # type: ignore[type-arg]
    members = index[key]
    del members[pod_class]
    if not members:
        del index[key]
