"""Warnings about pod rules that can never hold, contradict each other, or have no effect.

Warnings are based on the manifest alone, so they apply in every cluster. There is no warning if a
rule's effect depends on nodes, other pods, or the cluster's settings.
"""

from collections.abc import Iterator, Sequence
from itertools import islice, product
from typing import NamedTuple

from service.model.core.field_warnings import (
    RULE_LEAVES_OUT_ITS_POD,
    RULE_NEVER_HOLDS,
    RULE_NEVER_MATTERS,
    RULES_CONTRADICT,
    FieldWarning,
)
from service.model.core.primitives import LabelSelector, NodeSelector, NodeSelectorTerm
from service.model.core.satisfiability import (
    Requirement,
    labels_required,
    node_terms_can_match,
    selector_can_match,
)
from service.model.core.selectors import Labels, matches, node_term_is_empty
from service.model.pods.affinity import spread_selector
from service.model.pods.pod import (
    Affinity,
    NodeAffinity,
    PodAffinity,
    PodAffinityTerm,
    PodSpec,
    TopologySpreadConstraint,
)

COMBINATIONS_MAX = 1_000
"""The most combinations of node selector terms to check; with more, the check is skipped."""

_NODE = "spec.affinity.nodeAffinity"
_AFFINITY = "spec.affinity.podAffinity"
_ANTI_AFFINITY = "spec.affinity.podAntiAffinity"
_EXECUTION = "requiredDuringSchedulingRequiredDuringExecution"
_SCHEDULING = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


class _Placed(NamedTuple):
    """A required term and its path."""

    path: str
    term: PodAffinityTerm


def warnings_of_rules(spec: PodSpec) -> Iterator[FieldWarning]:
    """Yield the warnings about a valid spec's rules that do not depend on the pod's labels."""
    affinity = spec.affinity or Affinity()
    yield from _of_nodes(spec, affinity.node_affinity or NodeAffinity())
    attracting = affinity.pod_affinity or PodAffinity()
    repelling = affinity.pod_anti_affinity or PodAffinity()
    yield from _of_affinity(attracting)
    yield from _of_anti_affinity(repelling)
    yield from _contradictions(attracting, repelling)
    for index, constraint in enumerate(spec.topology_spread_constraints or ()):
        if not selector_can_match(constraint.label_selector):
            message = (
                "selects no pod, so that nothing is spread: the constraint does no more than look whether "
                "nodes have its topology key"
            )
            yield FieldWarning(_spread(index) + ".labelSelector", RULE_NEVER_MATTERS, message)


def warnings_of_own_labels(spec: PodSpec, labels: Labels) -> Iterator[FieldWarning]:
    """Yield a warning for each spread constraint that counts other pods, but not this one."""
    for index, constraint in enumerate(spec.topology_spread_constraints or ()):
        if _leaves_out(constraint, labels):
            message = "does not select the pod itself, so that pods like it are not spread among each other"
            yield FieldWarning(_spread(index) + ".labelSelector", RULE_LEAVES_OUT_ITS_POD, message)


def _leaves_out(constraint: TopologySpreadConstraint, labels: Labels) -> bool:
    selector = spread_selector(constraint, labels)
    return selector_can_match(selector) and not matches(selector, labels)


def _spread(index: int) -> str:
    return f"spec.topologySpreadConstraints[{index}]"


def _of_nodes(spec: PodSpec, rules: NodeAffinity) -> Iterator[FieldWarning]:
    selected = labels_required(dict(spec.node_selector or {}))
    required = {
        f"{_NODE}.{name}": selector
        for name, selector in (
            (_EXECUTION, rules.required_during_scheduling_required_during_execution),
            (_SCHEDULING, rules.required_during_scheduling_ignored_during_execution),
        )
        if selector is not None
    }
    hopeless = False
    for path, selector in required.items():
        alone = _terms_that_cannot_match(selector, selected)
        hopeless |= len(alone) == len(selector.node_selector_terms)
        yield from _about_terms(
            f"{path}.nodeSelectorTerms", alone, len(selector.node_selector_terms)
        )
    if hopeless:
        return
    allowed = _combinations(list(required.values()), selected)
    if allowed == []:
        message = "can never hold: no node can satisfy both of its required rules"
        yield FieldWarning(_NODE, RULE_NEVER_HOLDS, message)
    for index, preferred in enumerate(
        rules.preferred_during_scheduling_ignored_during_execution or ()
    ):
        reason = _why_idle(preferred.preference, allowed, selected)
        if reason:
            path = f"{_NODE}.{_PREFERRED}[{index}].preference"
            yield FieldWarning(path, RULE_NEVER_MATTERS, reason)


def _terms_that_cannot_match(selector: NodeSelector, selected: Sequence[Requirement]) -> list[int]:
    """Return the indices of terms that no node can match; empty terms depend on settings."""
    return [
        index
        for index, term in enumerate(selector.node_selector_terms)
        if term is not None
        and not node_term_is_empty(term)
        and not node_terms_can_match([term], selected)
    ]


def _about_terms(path: str, indices: Sequence[int], count: int) -> Iterator[FieldWarning]:
    if len(indices) == count:
        message = (
            "can never hold: no node can satisfy any of the terms together with the node selector"
        )
        yield FieldWarning(path, RULE_NEVER_HOLDS, message)
        return
    for index in indices:
        message = "matches no node, so that only the other terms count"
        yield FieldWarning(f"{path}[{index}]", RULE_NEVER_MATTERS, message)


def _combinations(
    selectors: Sequence[NodeSelector], selected: Sequence[Requirement]
) -> list[list[NodeSelectorTerm]] | None:
    """Return all combinations of one satisfiable term per selector, or None if too many.

    Null and empty terms are omitted from their combinations.
    """
    choices = [selector.node_selector_terms for selector in selectors]
    tried = list(islice(product(*choices), COMBINATIONS_MAX + 1))
    if len(tried) > COMBINATIONS_MAX:
        return None
    combined = [
        [term for term in terms if term is not None and not node_term_is_empty(term)]
        for terms in tried
    ]
    return [terms for terms in combined if node_terms_can_match(terms, selected)]


def _why_idle(
    preference: NodeSelectorTerm,
    allowed: Sequence[Sequence[NodeSelectorTerm]] | None,
    selected: Sequence[Requirement],
) -> str | None:
    """Return why a preference cannot rank any node above another, or None if it can."""
    if node_term_is_empty(preference):
        return "prefers nothing, since an empty preference matches no node"
    if not node_terms_can_match([preference], []):
        return "matches no node, so that it prefers nothing"
    if not allowed:
        return None
    if not any(node_terms_can_match([*terms, preference], selected) for terms in allowed):
        return "matches no node that the required rules allow, so that it prefers nothing"
    if all(_implies(terms, selected, preference) for terms in allowed):
        return "matches every node that the required rules allow, so that it prefers nothing"
    return None


def _implies(
    terms: Sequence[NodeSelectorTerm], selected: Sequence[Requirement], preference: NodeSelectorTerm
) -> bool:
    """Return whether the required terms state every requirement of a preference verbatim."""
    required = [
        *selected,
        *(expression for term in terms for expression in term.match_expressions or ()),
    ]
    fields = [field for term in terms for field in term.match_fields or ()]
    return all(expression in required for expression in preference.match_expressions or ()) and all(
        field in fields for field in preference.match_fields or ()
    )


def _required(path: str, rules: PodAffinity) -> list[_Placed]:
    """Return the required terms; those that also hold during execution come first."""
    lists = (
        (_EXECUTION, rules.required_during_scheduling_required_during_execution),
        (_SCHEDULING, rules.required_during_scheduling_ignored_during_execution),
    )
    return [
        _Placed(f"{path}.{name}[{index}]", term)
        for name, terms in lists
        for index, term in enumerate(terms or ())
    ]


def _of_affinity(rules: PodAffinity) -> Iterator[FieldWarning]:
    required = _required(_AFFINITY, rules)
    for path, term in required:
        if not _can_select(term) and not term.first_pod_exempt:
            message = "can never hold: no pod can be selected by the term"
            yield FieldWarning(path, RULE_NEVER_HOLDS, message)
    yield from _repeated(required)
    yield from _of_preferred(_AFFINITY, rules)


def _of_anti_affinity(rules: PodAffinity) -> Iterator[FieldWarning]:
    required = _required(_ANTI_AFFINITY, rules)
    for path, term in required:
        if not _can_select(term):
            message = "keeps no pod away, since no pod can be selected by the term"
            yield FieldWarning(path, RULE_NEVER_MATTERS, message)
    yield from _repeated(required)
    yield from _of_preferred(_ANTI_AFFINITY, rules)


def _of_preferred(path: str, rules: PodAffinity) -> Iterator[FieldWarning]:
    for index, preferred in enumerate(
        rules.preferred_during_scheduling_ignored_during_execution or ()
    ):
        if not _can_select(preferred.pod_affinity_term):
            message = "prefers nothing, since no pod can be selected by the term"
            where = f"{path}.{_PREFERRED}[{index}].podAffinityTerm"
            yield FieldWarning(where, RULE_NEVER_MATTERS, message)


def _can_select(term: PodAffinityTerm) -> bool:
    """Return whether a term can select any pod in any namespace."""
    if not selector_can_match(term.label_selector):
        return False
    if term.except_namespace_selector == LabelSelector():
        return False
    selects = term.namespace_selector
    return bool(term.namespaces) or selects is None or selector_can_match(selects)


def _repeated(required: Sequence[_Placed]) -> Iterator[FieldWarning]:
    for index, (path, term) in enumerate(required):
        earlier = next((placed.path for placed in required[:index] if placed.term == term), None)
        if earlier is not None:
            yield FieldWarning(path, RULE_NEVER_MATTERS, f"repeats {earlier}")


def _contradictions(attracting: PodAffinity, repelling: PodAffinity) -> Iterator[FieldWarning]:
    """Yield a warning for each term that attracts the pod to pods that another term repels."""
    wanted = _required(_AFFINITY, attracting)
    for path, term in _required(_ANTI_AFFINITY, repelling):
        if term.max_per_domain is not None or not _can_select(term):
            continue
        opposite = next((placed.path for placed in wanted if _same_scope(placed.term, term)), None)
        if opposite is not None:
            message = (
                f"contradicts {opposite}: at most the first of such pods can be placed, where no pod is "
                "selected yet"
            )
            yield FieldWarning(path, RULES_CONTRADICT, message)


def _same_scope(first: PodAffinityTerm, second: PodAffinityTerm) -> bool:
    """Return whether two terms select the same pods over the same topology key."""
    names = (
        "topology_key",
        "label_selector",
        "namespaces",
        "namespace_selector",
        "except_namespace_selector",
        "match_label_keys",
        "mismatch_label_keys",
    )
    return all(getattr(first, name) == getattr(second, name) for name in names)
