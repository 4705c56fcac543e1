"""The events that decisions record of their pods, in Kubernetes' words."""

from collections.abc import Mapping, Sequence
from typing import Literal

from service.model.log.events import Event, EventReason, EventType
from service.model.manifests.manifest import PodManifest
from service.scheduler.decide.conditions_and_events.conditions import GATED, reasons_in
from service.scheduler.decide.context import DecisionContext

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


def tell_scheduled(
    context: DecisionContext, manifest: PodManifest, node_name: str, uid: str
) -> None:
    """Record that a pod was placed on a node."""
    pod = manifest.pod
    message = f"Successfully assigned {pod.namespace}/{pod.name} to {node_name}"
    _tell(context, manifest, "Normal", "Scheduled", message, uid=uid)


def tell_failed(context: DecisionContext, manifest: PodManifest, message: str) -> None:
    """Record that a stored pod was tried and got no node; nothing if gates hold it, as none failed.

    Events are the same if their reasons are, even if more or fewer nodes have these reasons.
    """
    if message != GATED:
        words = "\n".join(sorted(reasons_in(message)))
        _tell(context, manifest, "Warning", "FailedScheduling", message, words=words)


def tell_forced(
    context: DecisionContext,
    manifest: PodManifest,
    node_name: str,
    reasons: Mapping[str, Sequence[str]],
) -> None:
    """Record that a pod was bound to a node although filters refuse it there."""
    told = ", ".join(f"{plugin}: {each}" for plugin, found in reasons.items() for each in found)
    message = f"Bound to {node_name} by force, where it does not fit: {told}."
    _tell(context, manifest, "Warning", "BindingForced", message, audit=True)


def tell_evicted(context: DecisionContext, manifest: PodManifest, rule: Rule, message: str) -> None:
    """Record that a pod is to be stopped; the message says why."""
    _tell(context, manifest, "Warning", "Evicted", message, words=rule, audit=True, rule=rule)


def tell_eviction_blocked(
    context: DecisionContext, manifest: PodManifest, rule: Rule, budget: str, message: str
) -> None:
    """Record that a pod is not stopped because of a disruption budget; the message says why it should be."""
    told = f"Cannot evict pod as it would violate the pod's disruption budget {budget}: {message}"
    words = f"{rule} {budget}"
    _tell(context, manifest, "Warning", "EvictionBlocked", told, words=words, audit=True)


def _tell(  # noqa: PLR0913 - all that an event says, by name
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
