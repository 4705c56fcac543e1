"""Lists the required rules that placed pods break."""

from collections.abc import Mapping
from datetime import datetime
from itertools import islice

from service.engine.rules.violations import Inspection, Violation, key_of
from service.scheduler.decide.context import Decision, DecisionContext
from service.scheduler.decide.evicting.violation_sweep import (
    TimerKey,
    key_of_timer,
    timer_key,
)
from service.scheduler.decide.eviction_rate import eviction_state
from service.scheduler.protocol.answers import PodName, ViolationItem, ViolationsAnswer
from service.scheduler.protocol.intents import ReadViolations

_STEP_CLASSES = 100
"""How many classes are examined in one step before other tasks may run."""
CONFLICTS_MAX = 100
"""How many conflicting pods one violation names at most: they may be all pods of a zone."""


def read_violations(context: DecisionContext, _: ReadViolations) -> Decision[ViolationsAnswer]:
    """List each required rule that a placed pod breaks; the pod itself does not count as a match."""
    inspection = Inspection(context.replica.cluster)
    since = running_since(context)
    items: list[ViolationItem] = []
    suspects = inspection.suspects(context.replica.cluster.placed_classes())
    for index, pod_class in enumerate(suspects):
        items.extend(
            violation_item(inspection, violation, since) for violation in inspection.of(pod_class)
        )
        if index % _STEP_CLASSES == _STEP_CLASSES - 1:
            yield
    items.sort(key=lambda item: (item.namespace, item.name, item.rule))
    return ViolationsAnswer(revision=context.replica.revision, items=items)


def running_since(context: DecisionContext) -> Mapping[TimerKey, datetime]:
    """Return when each broken rule with a grace period broke."""
    return {key_of_timer(timer): timer.since for timer in eviction_state(context.replica).timers}


def violation_item(
    inspection: Inspection, violation: Violation, since: Mapping[TimerKey, datetime]
) -> ViolationItem:
    """Return a violation in the format of answers."""
    pod, breach = violation.pod, violation.breach
    assert pod.node_name is not None
    return ViolationItem(
        namespace=pod.namespace,
        name=pod.name,
        node_name=pod.node_name,
        plugin=breach.rule.plugin,
        rule=breach.rule.path,
        execution=breach.rule.execution,
        reason=breach.reason,
        conflicts_with=_conflicts(inspection, violation),
        skew=breach.skew,
        since=since.get(timer_key(violation)),
    )


def _conflicts(inspection: Inspection, violation: Violation) -> list[PodName]:
    domain_pods = violation.breach.domain_pods
    if domain_pods is None:
        return []
    others = (
        key_of(pod)
        for pod, _ in inspection.members(domain_pods)
        if key_of(pod) != key_of(violation.pod)
    )
    return [
        PodName(namespace=namespace, name=name) for namespace, name in islice(others, CONFLICTS_MAX)
    ]
