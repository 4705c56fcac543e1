"""Which pods a term or a spread constraint speaks of, in a form that can be interned.

Equal matchers written in different ways (labels or expressions, in any order) are one value, so
that they share their counters.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from service.model.objects import LabelSelector, PodAffinityTerm


class Requirement(NamedTuple):
    """One requirement on labels; NotIn and DoesNotExist hold where the key is absent."""

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
"""All must hold; empty matches everything. A selector that matches nothing is None instead."""

EVERYTHING: Selector = frozenset()


def compile_selector(selector: LabelSelector | None) -> Selector | None:
    """Labels and expressions as one set of requirements; None stays None."""
    if selector is None:
        return None
    labels = (
        Requirement(key, "In", frozenset((value,)))
        for key, value in (selector.match_labels or {}).items()
    )
    expressions = (
        Requirement(each.key, each.operator, frozenset(each.values or ()))
        for each in selector.match_expressions or ()
    )
    return frozenset((*labels, *expressions))


class NamespaceRule(NamedTuple):
    """The union of the named namespaces and of those whose labels the selector matches.

    A namespace that was never stored has no labels. Kubernetes resolves the selector of an
    incoming pod's term to the names of stored namespaces (`stored_only`), and evaluates that of a
    placed pod's term on the labels; the two differ where a selector matches the absence of labels.
    """

    names: frozenset[str]
    selector: Selector | None
    stored_only: bool = False

    def holds(self, namespace: str, labels: Mapping[str, str] | None) -> bool:
        if namespace in self.names:
            return True
        if self.selector is None or (labels is None and self.stored_only):
            return False
        return all(each.holds(labels or {}) for each in self.selector)


class Subject(NamedTuple):
    """What matchers read of a pod."""

    namespace: str
    namespace_labels: Mapping[str, str] | None
    """None for a namespace that is not stored."""
    labels: Mapping[str, str]
    terminating: bool


class TermMatcher(NamedTuple):
    """Pods in certain namespaces with certain labels."""

    namespaces: NamespaceRule
    selector: Selector | None
    except_namespaces: frozenset[str] = frozenset()
    """Daemon namespaces, whose pods required anti-affinity neither sees nor hits."""
    terminating_too: bool = True

    def matches(self, subject: Subject) -> bool:
        return (
            self.selector is not None
            and (self.terminating_too or not subject.terminating)
            and subject.namespace not in self.except_namespaces
            and all(each.holds(subject.labels) for each in self.selector)
            and self.namespaces.holds(subject.namespace, subject.namespace_labels)
        )

    @property
    def reads_namespace_labels(self) -> bool:
        return bool(self.namespaces.selector)


Matcher = frozenset[TermMatcher]
"""Pods that every one of the term matchers matches (a set of one in most cases)."""


def matches(matcher: Matcher, subject: Subject) -> bool:
    """Whether every term matcher matches the pod."""
    return all(term.matches(subject) for term in matcher)


def label_pairs(matcher: Matcher) -> Iterable[tuple[str, str]] | None:
    """Label pairs of which a matched pod has at least one; None if there is no such set."""
    best: Requirement | None = None
    for term in matcher:
        for each in term.selector or ():
            if each.operator == "In" and (best is None or len(each.values) < len(best.values)):
                best = each
    return None if best is None else [(best.key, value) for value in best.values]


def for_incoming(term: TermMatcher) -> TermMatcher:
    """The matcher of a placed pod's term as that of an incoming pod's; mostly the same one."""
    selector = term.namespaces.selector
    if not selector or not all(each.holds({}) for each in selector):
        return term
    return term._replace(namespaces=term.namespaces._replace(stored_only=True))


def compile_term(
    term: PodAffinityTerm,
    own_namespace: str,
    *,
    empty_list_means_all: bool = False,
    except_namespaces: frozenset[str] = frozenset(),
) -> TermMatcher:
    """The matcher of one (anti)affinity term of a pod in `own_namespace`.

    Namespaces: the union of the list and of what the selector selects; the pod's own where both
    are absent or empty. With `empty_list_means_all` a list that is given and empty means all.
    """
    names = frozenset(term.namespaces or ())
    selector = compile_selector(term.namespace_selector)
    if empty_list_means_all and term.namespaces is not None and not names:
        selector = EVERYTHING
    if not names and selector is None:
        names = frozenset((own_namespace,))
    return TermMatcher(
        NamespaceRule(names, selector), compile_selector(term.label_selector), except_namespaces
    )
