"""Whether required rules of pods hold that stay where they are while other pods move.

Filters see to it that a pod that comes obeys its own rules, and the anti-affinity of others. But a
pod that leaves may be the one that the affinity of another needs, or may leave the pods of a
topology spread constraint behind in other domains.
"""

from collections.abc import Collection, Iterable

from service.engine import Cluster
from service.engine.questions.violations import Inspection, Violation, key_of
from service.engine.state.classes import PodClass
from service.engine.state.spread import SpreadRule
from service.model.objects import ObjectName
from service.scheduler.decide.context import Steps

_STEP_CLASSES = 4

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
        concerned = [
            each
            for each in self._cluster.placed_classes()
            if _may_need_others(each) and needs_any(each, moved)
        ]
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


def _may_need_others(pod_class: PodClass) -> bool:
    template = pod_class.template
    if pod_class.terminating:
        return False
    return bool(template.affinity or template.enduring_affinity or template.hard_spread)


def needs_any(pod_class: PodClass, others: Iterable[PodClass]) -> bool:
    """Whether affinity or spread of a class counts pods of any of the others."""
    template = pod_class.template
    terms = (*template.affinity, *template.enduring_affinity)
    return any(
        any(each in term.matcher.classes for term in terms)
        or any(_counts(rule, pod_class, each) for rule in template.hard_spread)
        for each in others
    )


def _counts(rule: SpreadRule, owner: PodClass, other: PodClass) -> bool:
    """Whether a constraint may count a class; where it reaches other namespaces, this is not asked."""
    reached = rule.namespaces is not None or other.namespace == owner.namespace
    return reached and rule.counts(other.labels)


def _broken(violation: Violation) -> Broken:
    return key_of(violation.pod), violation.breach.rule.path
