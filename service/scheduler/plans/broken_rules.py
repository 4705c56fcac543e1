"""Which required rules of staying pods break when other pods move.

Filters ensure that an arriving pod obeys its own rules, and the anti-affinity of others. But a
leaving pod may be needed by another pod's affinity, or may unbalance a topology spread constraint.
"""

from collections.abc import Collection, Iterable

from service.engine import Cluster
from service.engine.rules.violations import Inspection, Violation, key_of
from service.engine.state.pods.classes import MatcherEntry, PodClass, Template
from service.model.core.primitives import ObjectName
from service.scheduler.decide.context import Steps

_STEP_CLASSES = 4
_STEP_LOOKS = 2_000

Broken = tuple[ObjectName, str]
"""A pod, and the path of its broken rule."""


class BrokenRules:
    """Tracks the rules that are already broken on a fork, to find those that moves break."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._known: set[Broken] = set()
        self.observed = False
        """Whether the previously broken rules are known; they are seldom needed."""

    def observe(self) -> Steps[None]:
        """Record the rules already broken, which do not keep pods from leaving."""
        self.observed = True
        violations = yield from self._violations(
            filter(_may_need_others, self._cluster.placed_classes())
        )
        self._known = {_broken(violation) for violation in violations}

    def newly_broken(self, moved: Collection[PodClass]) -> Steps[list[Violation]]:
        """Return the violations that moving pods of these classes added, or may have added."""
        needs = AffectedPods(moved)
        concerned = []
        for index, pod_class in enumerate(self._cluster.placed_classes()):
            if _may_need_others(pod_class) and needs.are_of(pod_class.template):
                concerned.append(pod_class)
            if index % _STEP_LOOKS == _STEP_LOOKS - 1:
                yield
        violations = yield from self._violations(concerned)
        return [violation for violation in violations if _broken(violation) not in self._known]

    def _violations(self, classes: Iterable[PodClass]) -> Steps[list[Violation]]:
        inspection = Inspection(self._cluster)
        violations: list[Violation] = []
        for index, pod_class in enumerate(inspection.suspects(classes)):
            violations += inspection.of(pod_class)
            if index % _STEP_CLASSES == _STEP_CLASSES - 1:
                yield
        return violations


class AffectedPods:
    """Finds pods whose affinity or spread constraints count pods of certain classes."""

    def __init__(self, counted: Collection[PodClass]) -> None:
        self._matchers: set[MatcherEntry] = {
            matcher for pod_class in counted for matcher in pod_class.matched
        }
        self._labelled = list({id(pod_class.labels): pod_class for pod_class in counted}.values())
        self._templates: dict[Template, bool] = {}

    def are_of(self, template: Template) -> bool:
        """Return whether pods of a template may depend on where pods of these classes are."""
        known = self._templates.get(template)
        if known is None:
            known = self._templates[template] = self._counts(template)
        return known

    def _counts(self, template: Template) -> bool:
        terms = (*template.affinity, *template.execution_affinity)
        if any(term.matcher in self._matchers for term in terms):
            return True
        return any(
            rule.counts(pod_class.labels)
            for rule in template.hard_spread
            for pod_class in self._labelled
            if rule.namespaces is not None or pod_class.namespace == template.namespace
        )


def _may_need_others(pod_class: PodClass) -> bool:
    template = pod_class.template
    if pod_class.terminating:
        return False
    return bool(template.affinity or template.execution_affinity or template.hard_spread)


def _broken(violation: Violation) -> Broken:
    return key_of(violation.pod), violation.breach.rule.path
