"""Siblings: the pods that the template of one controller stands for.

Terms of affinity with `firstPodExempt` are left out for a pod as long as none of its siblings is
placed. The siblings of a pod are the pods of its namespace that have such a term, too, and the same
controller; without a controller, those that have none and the same labels. What tells them from
others becomes a label of their classes under a key that no manifest can have. So they are counted
like the pods that any selector matches.
"""

import msgspec

from service.engine.state.pods.matchers import (
    Matcher,
    NamespaceRule,
    Requirement,
    TermMatcher,
)
from service.model.objects.pods_and_nodes import Affinity, Pod

SIBLING_LABEL = " siblings"
"""The key of the label, which is no valid one."""


def exempts_first(affinity: Affinity) -> bool:
    """Return whether a term of affinity is left out for the first of a pod and its siblings."""
    rules = affinity.pod_affinity
    terms = rules and rules.required_during_scheduling_ignored_during_execution
    return any(term.first_pod_exempt for term in terms or ())


def sibling_key_of(pod: Pod) -> str | None:
    """Return what a pod has in common with its siblings alone; None if no term is left out for it."""
    if pod.spec.affinity is None or not exempts_first(pod.spec.affinity):
        return None
    told = sorted(pod.labels.items()) if pod.controller is None else pod.controller
    return msgspec.json.encode(told).decode()


def are_siblings(one: Pod, other: Pod) -> bool:
    """Return whether two pods are siblings."""
    mark = sibling_key_of(one)
    return mark is not None and one.namespace == other.namespace and mark == sibling_key_of(other)


def siblings_in(namespace: str, mark: str) -> Matcher:
    """Return the matcher of a pod's siblings, which also matches the pod itself."""
    selector = frozenset((Requirement(SIBLING_LABEL, "In", frozenset((mark,))),))
    return frozenset((TermMatcher(NamespaceRule(frozenset((namespace,)), None), selector),))
