"""Conditions and events of pods, in Kubernetes' wording."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Literal

import msgspec
from msgspec.structs import replace

from service.model.log.events import Event, EventReason, EventType
from service.model.pods.pod_fields import PodCondition
from service.model.registry.manifests import PodManifest
from service.scheduler.decide.context import DecisionContext
from service.scheduler.decide.status.references import BEGIN, END

GATED = "Scheduling is blocked due to non-empty scheduling gates"
"""kube-scheduler's message for a pod with `schedulingGates`."""


GATED_REASON = "SchedulingGated"
EVICTION_REASON = "EvictionByEvictionAPI"
"""kube-apiserver's reason for an eviction by a client."""


def with_binding(
    context: DecisionContext, manifest: PodManifest, node_name: str, uid: str
) -> PodManifest:
    """Return the pod as placed on a node now, with the condition PodScheduled=True."""
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
        # This is the hot path: a new pod has no status into which the condition must be merged.
        return replace(placed, status=_scheduled_alone(context.now))
    return placed.with_nomination(None).with_condition(_scheduled(context.now))


def _scheduled(now: str) -> PodCondition:
    return PodCondition(type="PodScheduled", status="True", last_transition_time=now)


@lru_cache(maxsize=8)
def _scheduled_alone(now: str) -> bytes:
    """Render the status of a newly placed pod; pods placed in the same second share the bytes."""
    return b'{"conditions":[%b]}' % msgspec.json.encode(_scheduled(now))


def with_waiting_condition(
    context: DecisionContext, manifest: PodManifest, reason: str, message: str
) -> PodManifest:
    """Return the pod with PodScheduled=False, unchanged if already so (rule P18)."""
    old = _condition(manifest, "PodScheduled")
    said = (old.status, old.reason, reasons_in(old.message or "")) if old else None
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


def with_eviction(
    context: DecisionContext, manifest: PodManifest, reason: str, message: str
) -> PodManifest:
    """Return the pod marked for termination, with the condition DisruptionTarget.

    A pod that ended with its node keeps its condition, which says why it ended.
    """
    marked = manifest.with_deletion(context.now)
    if manifest.has_ended_with_its_node:
        return marked
    return marked.with_condition(_disrupted(context, reason, message))


def with_failure(
    context: DecisionContext, manifest: PodManifest, reason: str, message: str
) -> PodManifest:
    """Return the pod as Failed, with the condition DisruptionTarget."""
    ended = manifest.with_status(manifest.status_fields() | {"phase": "Failed"})
    return ended.with_condition(_disrupted(context, reason, message))


def placed_at(manifest: PodManifest) -> str:
    """Return when the pod was placed (RFC 3339), from its condition or else its creation time."""
    condition = _condition(manifest, "PodScheduled")
    if condition is not None and condition.status == "True" and condition.last_transition_time:
        return condition.last_transition_time
    return manifest.pod.created


def _disrupted(context: DecisionContext, reason: str, message: str) -> PodCondition:
    return PodCondition(
        type="DisruptionTarget",
        status="True",
        reason=reason,
        message=message,
        last_transition_time=context.now,
    )


def reasons_in(message: str) -> frozenset[str]:
    """Return the reasons in `0/5 nodes are available: 2 reason, 3 other reason.`, without counts.

    If the sentence is part of a reference to a pod, the words before it count as a reason, too.
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


Rule = Literal[
    "NodeAffinity",
    "PodAffinity",
    "PodAntiAffinity",
    "EvictionAPI",
    "Preemption",
    "NoExecuteTaint",
    "DeletedNode",
    "Drain",
    "Replace",
    "Rebalance",
]


def record_scheduled(
    context: DecisionContext, manifest: PodManifest, node_name: str, uid: str
) -> None:
    """Record that a pod was placed on a node."""
    pod = manifest.pod
    message = f"Successfully assigned {pod.namespace}/{pod.name} to {node_name}"
    _record_event(context, manifest, "Normal", "Scheduled", message, uid=uid)


def record_failed(context: DecisionContext, manifest: PodManifest, message: str) -> None:
    """Record that a stored pod was tried and got no node; skip gated pods, which are not tried.

    Events with the same reasons are equal, even if the numbers of nodes differ.
    """
    if message != GATED:
        words = "\n".join(sorted(reasons_in(message)))
        _record_event(context, manifest, "Warning", "FailedScheduling", message, words=words)


def record_forced(
    context: DecisionContext,
    manifest: PodManifest,
    node_name: str,
    reasons: Mapping[str, Sequence[str]],
) -> None:
    """Record that a pod was bound to a node despite filters that refuse it there."""
    failures = ", ".join(
        f"{plugin}: {reason}" for plugin, messages in reasons.items() for reason in messages
    )
    message = f"Bound to {node_name} by force, where it does not fit: {failures}."
    _record_event(context, manifest, "Warning", "BindingForced", message, audit=True)


def record_evicted(
    context: DecisionContext, manifest: PodManifest, rule: Rule, message: str
) -> None:
    """Record an `Evicted` event for a pod, with `message` as the reason."""
    _record_event(
        context, manifest, "Warning", "Evicted", message, words=rule, audit=True, rule=rule
    )


def record_eviction_blocked(
    context: DecisionContext, manifest: PodManifest, rule: Rule, budget: str, message: str
) -> None:
    """Record that a budget blocks a pod's eviction, with `message` as its reason."""
    event_message = (
        f"Cannot evict pod as it would violate the pod's disruption budget {budget}: {message}"
    )
    words = f"{rule} {budget}"
    _record_event(
        context, manifest, "Warning", "EvictionBlocked", event_message, words=words, audit=True
    )


def _record_event(  # noqa: PLR0913 - all that an event says, by name
    context: DecisionContext,
    manifest: PodManifest,
    type_: EventType,
    reason: EventReason,
    message: str,
    *,
    uid: str = "",
    words: str = "",
    audit: bool = False,
    rule: str = "",
) -> None:
    pod = manifest.pod
    event = Event(
        namespace=pod.namespace,
        pod=pod.name,
        uid=uid or pod.uid,
        type=type_,
        reason=reason,
        message=message,
        words=words,
        revision=context.replica.revision,
        first=context.now,
        last=context.now,
        audit=audit,
        rule=rule,
    )
    context.events.append(event)
