"""The conditions that Moorage writes into a pod's status, in Kubernetes' words."""

from functools import lru_cache

import msgspec
from msgspec.structs import replace

from service.model.manifest import PodCondition, PodManifest
from service.scheduler.decide.context import DecisionContext
from service.scheduler.decide.references import BEGIN, END

GATED = "Scheduling is blocked due to non-empty scheduling gates"
"""kube-scheduler's message for a pod with `schedulingGates`."""


GATED_REASON = "SchedulingGated"


def bound(context: DecisionContext, manifest: PodManifest, node_name: str, uid: str) -> PodManifest:
    """The pod placed on a node now, with condition PodScheduled=True."""
    pod = manifest.pod
    placed = replace(
        manifest,
        created=manifest.created or context.now,
        pod=replace(
            pod,
            uid=uid,
            created=pod.created or context.now,
            node_name=node_name,
            required_node_name=None,
        ),
    )
    if manifest.status is None:
        # The hot path: a new pod has no status that the condition could have to be merged into.
        return replace(placed, status=_scheduled_alone(context.now))
    return placed.with_condition(_scheduled(context.now))


def _scheduled(now: str) -> PodCondition:
    return PodCondition(type="PodScheduled", status="True", last_transition_time=now)


@lru_cache(maxsize=8)
def _scheduled_alone(now: str) -> bytes:
    """The status of a pod that has just been placed: in memory once for all of the second."""
    return b'{"conditions":[%b]}' % msgspec.json.encode(_scheduled(now))


def waiting(
    context: DecisionContext, manifest: PodManifest, reason: str, message: str
) -> PodManifest:
    """The pod with condition PodScheduled=False; itself where it says that already (P18)."""
    old = _condition(manifest, "PodScheduled")
    said = (old.status, old.reason, reasons_in(old.message)) if old else None
    if said == ("False", reason, reasons_in(message)):
        return manifest
    return manifest.with_condition(
        PodCondition(
            type="PodScheduled",
            status="False",
            reason=reason,
            message=message,
            last_transition_time=context.now,
        )
    )


def evicted(
    context: DecisionContext, manifest: PodManifest, reason: str, message: str
) -> PodManifest:
    """The pod marked as to be stopped, with condition DisruptionTarget."""
    condition = PodCondition(
        type="DisruptionTarget",
        status="True",
        reason=reason,
        message=message,
        last_transition_time=context.now,
    )
    return manifest.with_deletion(context.now).with_condition(condition)


def reasons_in(message: str) -> frozenset[str]:
    """The reasons in `0/5 nodes are available: 2 reason, 3 other reason.`, without the counts.

    Where such words are within a reference to a pod, that is one reason more.
    """
    before, _, reasons = message.partition(": ")
    if not reasons:
        return frozenset({message})
    if before.rfind(BEGIN) > before.rfind(END):
        return reasons_in(reasons) | {before}
    parts = reasons.rstrip(".").split(", ")
    return frozenset(part.lstrip("0123456789 ") for part in parts)


def _condition(manifest: PodManifest, kind: str) -> PodCondition | None:
    conditions = manifest.status_fields().get("conditions")
    for condition in conditions if isinstance(conditions, list) else ():
        if isinstance(condition, dict) and condition.get("type") == kind:
            return msgspec.convert(condition, PodCondition)
    return None
