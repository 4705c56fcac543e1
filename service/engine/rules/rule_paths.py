"""The required rules of a pod, each with its location in the manifest or the configuration."""

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple, TypeAlias

from service.engine.plugins import (
    inter_pod_affinity as relations,
    node_affinity as selection,
    pod_topology_spread as spreading,
)
from service.engine.state.nodes.node_rules import (
    NodeRules,
    RequiredNodes,
)
from service.engine.state.pods.classes import (
    AffinityTerm,
    OwnedTerm,
    PodClass,
    Role,
    Template,
)
from service.engine.state.pods.spread import SpreadRule
from service.model.core.primitives import NodeSelector
from service.model.pods.pod import PodAffinity, PodAffinityTerm, PodSpec

Execution = Literal["Ignored", "Required"]
_IGNORED = "requiredDuringSchedulingIgnoredDuringExecution"
_REQUIRED = "requiredDuringSchedulingRequiredDuringExecution"


class Rule(NamedTuple):
    """One required rule of a pod; `path` is its location in the manifest or the configuration."""

    plugin: str
    path: str
    execution: Execution

    @property
    def is_about_nodes(self) -> bool:
        """Whether the rule selects nodes."""
        return self.plugin == selection.NAME

    @property
    def is_about_pods(self) -> bool:
        """Whether the rule requires or forbids other pods in the same domain."""
        return self.plugin == relations.NAME

    @property
    def is_about_spread(self) -> bool:
        """Whether the rule limits the skew between domains."""
        return self.plugin == spreading.NAME


RuledTerms: TypeAlias = tuple[tuple[Rule, AffinityTerm], ...]
"""Compiled terms, each with its rule."""


def node_rules(spec: PodSpec, rules: NodeRules) -> Iterator[tuple[Rule, RequiredNodes]]:
    """Yield each rule of a pod about its node's labels."""
    if not rules.required.restricts:
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


def affinity_rules(template: Template, *, per_term: bool) -> tuple[RuledTerms, RuledTerms]:
    """Return the affinity terms that are required during execution, and those that are not."""
    affinity = template.spec.affinity
    if not template.affinity or not affinity or not affinity.pod_affinity:
        return (), ()
    during_execution, ignored = written_terms(affinity.pod_affinity)
    if per_term:
        required, others = template.execution_affinity, template.affinity[len(during_execution) :]
    else:
        required = terms_by_key(during_execution, template.execution_affinity)
        others = terms_by_key(ignored, template.affinity)
    return (
        _with_rules(f"podAffinity.{_REQUIRED}", required, "Required"),
        _with_rules(f"podAffinity.{_IGNORED}", others, "Ignored"),
    )


def exempt_rules(template: Template) -> Iterator[tuple[Rule, AffinityTerm]]:
    """Yield each required affinity term that exempts the first pod, with its rule."""
    affinity = template.spec.affinity
    if affinity and affinity.pod_affinity:
        _, ruled = affinity_rules(template, per_term=template.affinity_per_term)
        for term, ruled_term in zip(written_terms(affinity.pod_affinity)[1], ruled, strict=True):
            if term.first_pod_exempt:
                yield ruled_term


def anti_affinity_rules(template: Template) -> RuledTerms:
    """Return each required anti-affinity term with its rule, in compilation order."""
    affinity = template.spec.affinity
    if not template.anti_affinity or not affinity or not affinity.pod_anti_affinity:
        return ()
    first = len(written_terms(affinity.pod_anti_affinity)[0])
    return (
        *_with_rules(f"podAntiAffinity.{_REQUIRED}", template.anti_affinity[:first], "Required"),
        *_with_rules(f"podAntiAffinity.{_IGNORED}", template.anti_affinity[first:], "Ignored"),
    )


def owned_rules(pod_class: PodClass) -> Iterator[tuple[Rule, OwnedTerm]]:
    """Yield the required anti-affinity of a class's pods, as the terms that other pods face."""
    template = pod_class.template
    forbidding = [term for term in template.owned if term.role is Role.FORBIDS]
    for (rule, _), term in zip(anti_affinity_rules(template), forbidding, strict=True):
        yield rule, term


def spread_rules(template: Template) -> Iterator[tuple[Rule, SpreadRule]]:
    """Yield each hard topology spread constraint, set by the pod or by the configuration."""
    own = template.spec.topology_spread_constraints
    place = "spec.topologySpreadConstraints" if own else "defaultTopologySpreadConstraints"
    for spread in template.hard_spread:
        yield Rule(spreading.NAME, f"{place}[{spread.index}]", "Ignored"), spread


def written_terms(
    affinity: PodAffinity,
) -> tuple[tuple[PodAffinityTerm, ...], tuple[PodAffinityTerm, ...]]:
    """Return the terms required during execution, then all others, in the order of templates."""
    return (
        affinity.required_during_scheduling_required_during_execution or (),
        affinity.required_during_scheduling_ignored_during_execution or (),
    )


def terms_by_key(
    written: Sequence[PodAffinityTerm], compiled: Sequence[AffinityTerm]
) -> tuple[AffinityTerm, ...]:
    """Return the compiled term of each written term; there is one per topology key."""
    by_key = {term.counter.key.name: term for term in compiled}
    return tuple(by_key[term.topology_key] for term in written)


def _with_rules(place: str, terms: Sequence[AffinityTerm], execution: Execution) -> RuledTerms:
    return tuple(
        (Rule(relations.NAME, f"spec.affinity.{place}[{index}]", execution), term)
        for index, term in enumerate(terms)
    )
