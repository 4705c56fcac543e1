"""Matchers: the pods that a term or a spread constraint applies to, in an internable form.

Equal matchers that are written differently (as labels or expressions, in any order) become equal
values, so that they share their counters.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from service.model.core.primitives import LabelSelector
from service.model.pods.pod import PodAffinityTerm


class Requirement(NamedTuple):
    """One requirement on labels; NotIn and DoesNotExist also hold if the key is absent."""

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
"""A set of requirements that must all hold. An empty set matches everything; None instead of a
selector matches nothing."""

EVERYTHING: Selector = frozenset()


def compile_selector(selector: LabelSelector | None) -> Selector | None:
    """Compile a selector's labels and expressions to one set of requirements, or None to None."""
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
    """The union of the named namespaces and those with labels that the selector matches.

    Namespaces that `excepted` matches are excluded from both. A namespace that was never stored has
    no labels.

    Kubernetes treats terms in two ways: it resolves the selector in a term of an incoming pod to
    the names of stored namespaces (`stored_only`), but evaluates the selector of a placed pod on
    the labels. The results differ if a selector matches absent labels.
    """

    names: frozenset[str]
    selector: Selector | None
    stored_only: bool = False
    excepted: Selector | None = None

    def holds(self, namespace: str, labels: Mapping[str, str] | None) -> bool:
        return self.names_or_selects(namespace, labels) and not self.excepts(labels)

    def excepts(self, labels: Mapping[str, str] | None) -> bool:
        """Return whether a namespace with these labels is excepted."""
        if self.excepted is None:
            return False
        return all(requirement.holds(labels or {}) for requirement in self.excepted)

    def names_or_selects(self, namespace: str, labels: Mapping[str, str] | None) -> bool:
        """Return whether the rule holds for a namespace, ignoring exceptions."""
        if namespace in self.names:
            return True
        if self.selector is None or (labels is None and self.stored_only):
            return False
        return all(requirement.holds(labels or {}) for requirement in self.selector)


class Subject(NamedTuple):
    """The attributes of a pod that matchers read."""

    namespace: str
    namespace_labels: Mapping[str, str] | None
    """The labels of the pod's namespace, or None if it is not stored."""
    labels: Mapping[str, str]
    terminating: bool


class TermMatcher(NamedTuple):
    """Matches pods with certain labels in certain namespaces."""

    namespaces: NamespaceRule
    selector: Selector | None
    daemons: frozenset[str] = frozenset()
    """The daemon namespaces; the rule does not apply between their pods and all other pods."""
    of_daemon: bool = False
    """Whether the pod that has the rule is in a daemon namespace."""
    terminating_too: bool = True

    def matches(self, subject: Subject) -> bool:
        """Return whether the rule applies to a pod."""
        return not self._exempts(subject) and self._selects(subject)

    def exempts_daemon(self, subject: Subject) -> bool:
        """Return whether the rule fails to apply to a pod only because daemons are exempt."""
        return self._exempts(subject) and self._selects(subject)

    def excepts(self, subject: Subject) -> bool:
        """Return whether the rule fails to apply to a pod only because of an excepted namespace."""
        rule, labels = self.namespaces, subject.namespace_labels
        return (
            rule.excepts(labels)
            and not self._exempts(subject)
            and self._describes(subject)
            and rule.names_or_selects(subject.namespace, labels)
        )

    def _exempts(self, subject: Subject) -> bool:
        """Return whether exactly one of the rule's owner and the pod is a daemon."""
        return (subject.namespace in self.daemons) != self.of_daemon

    def _selects(self, subject: Subject) -> bool:
        return self.namespaces.holds(
            subject.namespace, subject.namespace_labels
        ) and self._describes(subject)

    def _describes(self, subject: Subject) -> bool:
        """Return whether the rule would apply to a pod in any namespace."""
        return (
            self.selector is not None
            and (self.terminating_too or not subject.terminating)
            and all(requirement.holds(subject.labels) for requirement in self.selector)
        )

    @property
    def reads_namespace_labels(self) -> bool:
        return bool(self.namespaces.selector or self.namespaces.excepted)


Matcher = frozenset[TermMatcher]
"""Term matchers that a pod must match together; usually there is only one."""


def matches(matcher: Matcher, subject: Subject) -> bool:
    """Return whether a pod matches every term matcher."""
    return all(term.matches(subject) for term in matcher)


def label_pairs(matcher: Matcher) -> Iterable[tuple[str, str]] | None:
    """Return label pairs such that every matching pod has at least one of them, or None."""
    best: Requirement | None = None
    for term in matcher:
        for requirement in term.selector or ():
            if requirement.operator == "In" and (
                best is None or len(requirement.values) < len(best.values)
            ):
                best = requirement
    return None if best is None else [(best.key, value) for value in best.values]


def named_namespaces(matcher: Matcher) -> frozenset[str] | None:
    """Return the only namespaces with pods that can match, or None if namespace labels decide."""
    for term in matcher:
        if term.namespaces.selector is None:
            return term.namespaces.names
    return None


MATCHER_BYTES, REQUIREMENT_BYTES, VALUE_BYTES = 1_024, 512, 384
"""The approximate sizes in bytes of a matcher, of a requirement, and of a value with its index
entry."""


def size_in_bytes(matcher: Matcher) -> int:
    """Return the approximate size of a matcher in bytes."""
    size = MATCHER_BYTES
    for term in matcher:
        rule = term.namespaces
        size += VALUE_BYTES * len(rule.names)
        for selector in (term.selector, rule.selector, rule.excepted):
            for requirement in selector or ():
                size += REQUIREMENT_BYTES + VALUE_BYTES * len(requirement.values)
    return size


def for_incoming(term: TermMatcher, *, negation_selects_all: bool = False) -> TermMatcher:
    """Convert the matcher of a placed pod's term to the matcher of an incoming pod's term.

    With `negation_selects_all`, a namespace selector that holds for absent labels selects all
    namespaces, as in the code of some versions of kube-scheduler: these evaluate it once more, on
    no labels, after they have resolved it to names.
    """
    rule = term.namespaces
    if not rule.selector or not all(requirement.holds({}) for requirement in rule.selector):
        return term
    if negation_selects_all:
        return term._replace(namespaces=rule._replace(selector=EVERYTHING))
    return term._replace(namespaces=rule._replace(stored_only=True))


def compile_namespaces(selector: LabelSelector | None, own_namespace: str) -> NamespaceRule:
    """Compile a spread constraint's namespaces: the selected ones, or the pod's own by default."""
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

    The term applies to the namespaces in its list and those that its selector selects, or to the
    pod's own namespace if both are absent or empty. With `empty_list_means_all`, a list that is
    present but empty means all namespaces. Without `reads_selector`, the selector is treated as
    absent.
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
