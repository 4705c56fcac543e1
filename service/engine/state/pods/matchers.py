"""Matchers: the pods that a term or a spread constraint is about, in a form that can be interned.

Equal matchers that are written in different ways (labels or expressions, in any order) become equal
values, so that they share their counters.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from service.model.objects.pods_and_nodes import LabelSelector, PodAffinityTerm


class Requirement(NamedTuple):
    """One requirement on labels; NotIn and DoesNotExist hold, too, if the key is absent."""

    key: str
    operator: str
    values: frozenset[str]

    def holds(self, labels: Mapping[str, str]) -> bool:
        present = self.key in labels
        match self.operator:
            case "In":
                return present and labels[self.key] in self.values
            case "NotIn":
                return not present or labels[self.key] not in self.values
            case "Exists":
                return present
            case _:
                return not present


Selector = frozenset[Requirement]
"""All requirements must hold; an empty set matches everything. None stands for a selector that
matches nothing."""

EVERYTHING: Selector = frozenset()


def compile_selector(selector: LabelSelector | None) -> Selector | None:
    """Turn labels and expressions into one set of requirements; None stays None."""
    if selector is None:
        return None
    labels = (
        Requirement(key, "In", frozenset((value,)))
        for key, value in (selector.match_labels or {}).items()
    )
    expressions = (
        Requirement(expression.key, expression.operator, frozenset(expression.values or ()))
        for expression in selector.match_expressions or ()
    )
    return frozenset((*labels, *expressions))


class NamespaceRule(NamedTuple):
    """The union of the named namespaces and of those whose labels the selector matches.

    Those that `excepted` matches are left out of both.

    A namespace that was never stored has no labels. Kubernetes treats terms in two ways: it
    resolves the selector in a term of an incoming pod to the names of stored namespaces
    (`stored_only`), but evaluates that of a placed pod on the labels. The two differ if a selector
    matches absent labels.
    """

    names: frozenset[str]
    selector: Selector | None
    stored_only: bool = False
    excepted: Selector | None = None

    def holds(self, namespace: str, labels: Mapping[str, str] | None) -> bool:
        return self.names_or_selects(namespace, labels) and not self.excepts(labels)

    def excepts(self, labels: Mapping[str, str] | None) -> bool:
        """Return whether a namespace with these labels is left out."""
        if self.excepted is None:
            return False
        return all(each.holds(labels or {}) for each in self.excepted)

    def names_or_selects(self, namespace: str, labels: Mapping[str, str] | None) -> bool:
        """Do what `holds` does as if none were left out."""
        if namespace in self.names:
            return True
        if self.selector is None or (labels is None and self.stored_only):
            return False
        return all(each.holds(labels or {}) for each in self.selector)


class Subject(NamedTuple):
    """The parts of a pod that matchers read."""

    namespace: str
    namespace_labels: Mapping[str, str] | None
    """None if the namespace is not stored."""
    labels: Mapping[str, str]
    terminating: bool


class TermMatcher(NamedTuple):
    """Matches pods in certain namespaces with certain labels."""

    namespaces: NamespaceRule
    selector: Selector | None
    daemons: frozenset[str] = frozenset()
    """Daemon namespaces: the rule is left out between their pods and all others."""
    of_daemon: bool = False
    """Whether the pod that has the rule is itself in a daemon namespace."""
    terminating_too: bool = True

    def matches(self, subject: Subject) -> bool:
        """Return whether the rule is about a pod."""
        return not self._exempts(subject) and self._selects(subject)

    def leaves_out(self, subject: Subject) -> bool:
        """Return whether the rule would be about a pod if daemons were not exempt."""
        return self._exempts(subject) and self._selects(subject)

    def excepts(self, subject: Subject) -> bool:
        """Return whether the rule would be about a pod if its namespace were not left out."""
        rule, labels = self.namespaces, subject.namespace_labels
        return (
            rule.excepts(labels)
            and not self._exempts(subject)
            and self._describes(subject)
            and rule.names_or_selects(subject.namespace, labels)
        )

    def _exempts(self, subject: Subject) -> bool:
        """Return whether one of the two pods is a daemon and the other one is not."""
        return (subject.namespace in self.daemons) != self.of_daemon

    def _selects(self, subject: Subject) -> bool:
        return self.namespaces.holds(
            subject.namespace, subject.namespace_labels
        ) and self._describes(subject)

    def _describes(self, subject: Subject) -> bool:
        """Return whether the rule would be about a pod in any namespace."""
        return (
            self.selector is not None
            and (self.terminating_too or not subject.terminating)
            and all(each.holds(subject.labels) for each in self.selector)
        )

    @property
    def reads_namespace_labels(self) -> bool:
        return bool(self.namespaces.selector or self.namespaces.excepted)


Matcher = frozenset[TermMatcher]
"""Matches the pods that all of the term matchers match; mostly there is only one."""


def matches(matcher: Matcher, subject: Subject) -> bool:
    """Return whether every term matcher matches the pod."""
    return all(term.matches(subject) for term in matcher)


def label_pairs(matcher: Matcher) -> Iterable[tuple[str, str]] | None:
    """Return label pairs of which every matched pod has one or more, or None if there are none."""
    best: Requirement | None = None
    for term in matcher:
        for each in term.selector or ():
            if each.operator == "In" and (best is None or len(each.values) < len(best.values)):
                best = each
    return None if best is None else [(best.key, value) for value in best.values]


def named_namespaces(matcher: Matcher) -> frozenset[str] | None:
    """Return the only namespaces whose pods can match; None if labels of namespaces decide that."""
    for term in matcher:
        if term.namespaces.selector is None:
            return term.namespaces.names
    return None


MATCHER_BYTES, REQUIREMENT_BYTES, VALUE_BYTES = 1_024, 512, 384
"""About what a matcher takes, each of its requirements, and each value with its place in an index."""


def size_in_bytes(matcher: Matcher) -> int:
    """Return about how many bytes a matcher takes."""
    size = MATCHER_BYTES
    for term in matcher:
        rule = term.namespaces
        size += VALUE_BYTES * len(rule.names)
        for selector in (term.selector, rule.selector, rule.excepted):
            for each in selector or ():
                size += REQUIREMENT_BYTES + VALUE_BYTES * len(each.values)
    return size


def for_incoming(term: TermMatcher) -> TermMatcher:
    """Turn the matcher of a placed pod's term into that of an incoming pod's; often it is equal."""
    selector = term.namespaces.selector
    if not selector or not all(each.holds({}) for each in selector):
        return term
    return term._replace(namespaces=term.namespaces._replace(stored_only=True))


def compile_namespaces(selector: LabelSelector | None, own_namespace: str) -> NamespaceRule:
    """Compile the namespaces of a spread constraint: the selected ones, or else the pod's own."""
    if selector is None:
        return NamespaceRule(frozenset((own_namespace,)), None)
    return NamespaceRule(frozenset(), compile_selector(selector))


def compile_term(
    term: PodAffinityTerm,
    own_namespace: str,
    *,
    empty_list_means_all: bool = False,
    reads_selector: bool = True,
    daemons: frozenset[str] = frozenset(),
) -> TermMatcher:
    """Compile the matcher of one (anti-)affinity term of a pod in `own_namespace`.

    The namespaces are those in the list and those that the selector selects; if both are absent or
    empty, the pod's own. With `empty_list_means_all`, a list that is given but empty means all.
    Without `reads_selector`, the selector counts as absent.
    """
    names = frozenset(term.namespaces or ())
    selector = compile_selector(term.namespace_selector if reads_selector else None)
    if empty_list_means_all and term.namespaces is not None and not names:
        selector = EVERYTHING
    if not names and selector is None:
        names = frozenset((own_namespace,))
    return TermMatcher(
        NamespaceRule(names, selector, excepted=compile_selector(term.except_namespace_selector)),
        compile_selector(term.label_selector),
        daemons,
        own_namespace in daemons,
    )
