"""Binds a pod to a named node, and evicts a pod at a client's request."""

from service.engine import check
from service.model.core.errors import BindingRefused, Conflict, EvictionBlocked
from service.model.pods.pod import Pod
from service.model.registry.manifests import PodManifest
from service.model.workloads.disruption_budget import PodDisruptionBudgetStatus
from service.scheduler.decide.admission.ignored_fields import warnings_of
from service.scheduler.decide.admission.pod_admission import (
    admit,
    knows_scheduler,
    unknown_scheduler,
)
from service.scheduler.decide.claims.device_claims import allocate_devices
from service.scheduler.decide.claims.volume_bindings import bind_volumes
from service.scheduler.decide.context import DecisionContext
from service.scheduler.decide.disruption_budgets import exhausted_budgets
from service.scheduler.decide.move_reservations import note_arrival
from service.scheduler.decide.object_writes import answer_with, check_preconditions, not_found
from service.scheduler.decide.placing.pod_placement import RESERVED
from service.scheduler.decide.status.pod_conditions import (
    EVICTION_REASON,
    GATED,
    record_evicted,
    record_forced,
    record_scheduled,
    with_binding,
    with_eviction,
)
from service.scheduler.protocol.answers import ObjectAnswer
from service.scheduler.protocol.intents import BindPod, EvictPod, Preconditions
from service.scheduler.replica.replica import Stored

EVICTION_MESSAGE = "Eviction API: evicting"
"""kube-apiserver's message for an eviction by a client."""


def bind_pod(context: DecisionContext, intent: BindPod) -> ObjectAnswer:
    """Bind a pending pod to a node; a pod already on that node stays unchanged.

    Raises:
        NotFound: the pod or the node does not exist.
        RevisionConflict: the pod has another uid.
        Conflict: the pod is placed on another node, is being deleted, has ended, or
            has another node reserved.
        BindingRefused: filters refuse the node, and the binding is not forced.
        Denied: admission refuses the pod.
    """
    stored, manifest = _stored_pod(context, intent.namespace, intent.name, intent.uid)
    if manifest.has_ended_with_its_node:
        raise Conflict(f"The pod has ended, as {manifest.pod.node_name} was deleted.")
    if manifest.pod.node_name == intent.node_name:
        return answer_with(context, stored)
    if manifest.pod.node_name is not None:
        raise Conflict(f"The pod is placed on {manifest.pod.node_name}.")
    if (intent.namespace, intent.name) in context.replica.reservations:
        raise Conflict(f"{RESERVED}.")
    if not manifest.pod.wants_node:
        raise Conflict("The pod is being deleted, or has ended, so it cannot be bound.")
    if context.replica.get("Node", "", intent.node_name) is None:
        raise not_found("Node", "", intent.node_name)
    admit(context.replica, manifest.pod, manifest.pod)
    reasons = _reasons(context, manifest, intent)
    context.warn(warnings_of(context, manifest))
    bind_volumes(context, manifest.pod, intent.node_name, forced=intent.force)
    placed = allocate_devices(
        context, manifest, intent.node_name, manifest.uid, forced=intent.force
    )
    placed = with_binding(context, placed, intent.node_name, manifest.uid)
    note_arrival(context.replica, placed.pod)
    answer = _put(context, placed)
    record_scheduled(context, manifest, intent.node_name, manifest.uid)
    if reasons:
        record_forced(context, manifest, intent.node_name, reasons)
    return answer


def evict_pod(context: DecisionContext, intent: EvictPod) -> ObjectAnswer:
    """Mark a pod as terminating; an already terminating pod stays unchanged.

    Raises:
        NotFound: the pod does not exist.
        RevisionConflict: the pod has another uid or resourceVersion.
        EvictionBlocked: a disruption budget does not allow it now.
    """
    stored, manifest = _stored_pod(context, intent.namespace, intent.name, intent.uid)
    check_preconditions(Preconditions(resource_version=intent.resource_version), stored)
    if manifest.pod.terminating:
        return answer_with(context, stored)
    _ask_budgets(context, manifest.pod)
    answer = _put(context, with_eviction(context, manifest, EVICTION_REASON, EVICTION_MESSAGE))
    record_evicted(context, manifest, "EvictionAPI", EVICTION_MESSAGE)
    return answer


def _ask_budgets(context: DecisionContext, pod: Pod) -> None:
    """Refuse to evict a placed pod if a budget forbids it, as kube-apiserver does.

    If several budgets select the pod, all of them have to allow the eviction, as in a drain;
    Kubernetes always refuses then.
    """
    if pod.node_name is None or pod.finished:
        return
    causes = [
        _eviction_cause(name, status)
        for name, status in exhausted_budgets(context.replica.cluster, pod)
    ]
    if causes:
        raise EvictionBlocked(causes)


def _eviction_cause(name: str, status: PodDisruptionBudgetStatus) -> str:
    """Say in kube-apiserver's words why a budget forbids an eviction."""
    if status.current_healthy > status.desired_healthy:
        return f"The disruption budget {name} does not allow evicting pods currently"
    return (
        f"The disruption budget {name} needs {status.desired_healthy} healthy pods "
        f"and has {status.current_healthy} currently"
    )


def _stored_pod(
    context: DecisionContext, namespace: str, name: str, uid: str | None
) -> tuple[Stored, PodManifest]:
    stored = context.replica.get("Pod", namespace, name)
    if stored is None:
        raise not_found("Pod", namespace, name)
    assert isinstance(stored.manifest, PodManifest)
    check_preconditions(Preconditions(uid=uid), stored)
    return stored, stored.manifest


def _reasons(
    context: DecisionContext, manifest: PodManifest, intent: BindPod
) -> dict[str, list[str]]:
    """Return the filters' reasons against the node.

    Raises:
        BindingRefused: filters refuse the node, and the binding is not forced.
    """
    pod, cluster = manifest.pod, context.replica.cluster
    if not knows_scheduler(cluster, pod):
        if intent.force:
            return {"SchedulerName": [f"{pod.spec.scheduler_name} is no profile"]}
        raise unknown_scheduler(cluster, pod)
    reasons = check(cluster, pod, intent.node_name)
    if pod.spec.scheduling_gates:
        reasons["SchedulingGates"] = [GATED]
    if reasons and not intent.force:
        reason_list = ", ".join(reason for messages in reasons.values() for reason in messages)
        raise BindingRefused(f"{intent.node_name} does not fit the pod: {reason_list}.", reasons)
    return reasons


def _put(context: DecisionContext, manifest: PodManifest) -> ObjectAnswer:
    entry = context.replica.put(manifest)
    assert entry.after is not None
    return answer_with(context, entry.after)
