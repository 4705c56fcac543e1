"""The first-pod exemption: affinity terms with `firstPodExempt` wait for a sibling, a pod of the same controller.

A term with `firstPodExempt` does not apply to a pod until one of its siblings is placed. The
siblings of a pod are the pods in its namespace that also have such a term and have the same
controller. For a pod without a controller, they are the pods with the same labels and no
controller. This identity becomes a label of their classes, under a key that no manifest can have,
so that siblings are counted like pods that match a selector.
"""

import msgspec

from service.engine.state.pods.matchers import Matcher, NamespaceRule, Requirement, TermMatcher
from service.model.pods.pod import Affinity, Pod

SIBLING_LABEL = " siblings"
"""The key of the label, which no manifest can have because it is not a valid label key."""


def exempts_first(affinity: Affinity) -> bool:
    """Return whether an affinity term exempts the first pod among siblings."""
    rules = affinity.pod_affinity
    terms = rules and rules.required_during_scheduling_ignored_during_execution
    return any(term.first_pod_exempt for term in terms or ())


def sibling_key_of(pod: Pod) -> str | None:
    """Return a key shared only by a pod and its siblings, or None if no first pod is exempt."""
    if pod.spec.affinity is None or not exempts_first(pod.spec.affinity):
        return None
    identity = sorted(pod.labels.items()) if pod.controller is None else pod.controller
    return msgspec.json.encode(identity).decode()


def are_siblings(one: Pod, other: Pod) -> bool:
    """Return whether two pods are siblings, as the module's docstring defines."""
    sibling_key = sibling_key_of(one)
    return (
        sibling_key is not None
        and one.namespace == other.namespace
        and sibling_key == sibling_key_of(other)
    )


def siblings_in(namespace: str, sibling_key: str) -> Matcher:
    """Return the matcher of a pod's siblings, which also matches the pod itself."""
    selector = frozenset((Requirement(SIBLING_LABEL, "In", frozenset((sibling_key,))),))
    return frozenset((TermMatcher(NamespaceRule(frozenset((namespace,)), None), selector),))
