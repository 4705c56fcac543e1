"""Whether required rules of pods hold that stay where they are while other pods move.

Filters see to it that a pod that comes obeys its own rules, and the anti-affinity of others. But a
pod that leaves may be the one that the affinity of another needs, or may leave the pods of a
topology spread constraint behind in other domains.
"""

from collections.abc import Collection, Iterable

from service.engine import Cluster
from service.engine.rules.violations import Inspection, Violation, key_of
from service.engine.state.pods.classes import MatcherEntry, PodClass, Template
from service.model.objects.pods_and_nodes import ObjectName
from service.scheduler.decide.context import Steps

_STEP_CLASSES = 4
_STEP_LOOKS = 2_000

Broken = tuple[ObjectName, str]
"""A pod, and the path of its rule that does not hold."""


class BrokenRules:
    """The rules that do not hold on a fork, and what moves add to them."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._known: set[Broken] = set()
        self.looked = False
        """Whether it is known which rules were broken before; seldom anybody needs to know."""

    def look(self) -> Steps[None]:
        """Note which rules are broken already; those are no reason for a pod to stay."""
        self.looked = True
        found = yield from self._violations(
            filter(_may_need_others, self._cluster.placed_classes())
        )
        self._known = {_broken(each) for each in found}

    def newly_broken(self, moved: Collection[PodClass]) -> Steps[list[Violation]]:
        """Return the violations that moves of pods of some classes have added, or may have."""
        needs = AffectedPods(moved)
        concerned = []
        for index, pod_class in enumerate(self._cluster.placed_classes()):
            if _may_need_others(pod_class) and needs.are_of(pod_class.template):
                concerned.append(pod_class)
            if index % _STEP_LOOKS == _STEP_LOOKS - 1:
                yield
        found = yield from self._violations(concerned)
        return [each for each in found if _broken(each) not in self._known]

    def _violations(self, classes: Iterable[PodClass]) -> Steps[list[Violation]]:
        inspection = Inspection(self._cluster)
        found: list[Violation] = []
        for index, pod_class in enumerate(inspection.suspects(classes)):
            found += inspection.of(pod_class)
            if index % _STEP_CLASSES == _STEP_CLASSES - 1:
                yield
        return found


class AffectedPods:
    """Which pods have affinity or spread that counts pods of some classes."""

    def __init__(self, counted: Collection[PodClass]) -> None:
        self._matchers: set[MatcherEntry] = {
            each for pod_class in counted for each in pod_class.matched
        }
        self._labelled = list({id(each.labels): each for each in counted}.values())
        self._templates: dict[Template, bool] = {}

    def are_of(self, template: Template) -> bool:
        """Whether pods of a template may need any of the classes where they are."""
        known = self._templates.get(template)
        if known is None:
            known = self._templates[template] = self._counts(template)
        return known

    def _counts(self, template: Template) -> bool:
        terms = (*template.affinity, *template.execution_affinity)
        if any(term.matcher in self._matchers for term in terms):
            return True
        return any(
            rule.counts(each.labels)
            for rule in template.hard_spread
            for each in self._labelled
            if rule.namespaces is not None or each.namespace == template.namespace
        )


def _may_need_others(pod_class: PodClass) -> bool:
    template = pod_class.template
    if pod_class.terminating:
        return False
    return bool(template.affinity or template.execution_affinity or template.hard_spread)


def _broken(violation: Violation) -> Broken:
    return key_of(violation.pod), violation.breach.rule.path
