"""Preemption: evicts victims and nominates a node for an unschedulable pod.

Both are decided and committed together, so no victim is evicted without a pod that waits for its
room, and a decision repeated after a lost race finds victims that are already terminating.
"""

from collections.abc import Collection

from service.engine import NoPreemption, Preemption, preempt
from service.model.pods.pod import Pod
from service.model.pods.status import PREEMPTED_REASON
from service.model.registry.manifests import PodManifest
from service.scheduler.decide.context import DecisionContext
from service.scheduler.decide.status.pod_conditions import (
    record_evicted,
    with_eviction,
)
from service.scheduler.protocol.intents import PlacePods


def find_room(context: DecisionContext, intent: PlacePods, pod: Pod) -> Preemption | NoPreemption:
    """Find the node where making room for a pod costs least, without changing anything.

    If the intent evicts, only pods that the caller may evict are considered.
    """
    cluster = context.replica.cluster
    return preempt(
        cluster,
        pod,
        context.budgets(as_given=intent.budgets_as_given),
        within=_evictable(intent),
        scope=intent.preemption_scope,
        all_candidates=intent.explain == "Full",
    )


def find_room_for_queue(context: DecisionContext, pod: Pod) -> Preemption | NoPreemption:
    """Find room for a pending pod, like `find_room`; only priority decides which pods may leave."""
    cluster = context.replica.cluster
    budgets = context.budgets(as_given=False)
    return preempt(cluster, pod, budgets, scope=context.replica.config.queue_preemption_scope)


def to_be_evicted(preemption: Preemption | NoPreemption) -> int:
    """Return how many victims are not terminating yet."""
    if isinstance(preemption, NoPreemption):
        return 0
    return sum(not pod.terminating for pod in preemption.victims.pods)


def _evictable(intent: PlacePods) -> Collection[str] | None:
    """Return the namespaces whose pods may be victims, or None for all."""
    if intent.preemption != "Evict":
        return None
    return intent.caller.principal.namespaces("evict", intent.caller.cluster)


def make_room(
    context: DecisionContext, manifest: PodManifest, preemption: Preemption | NoPreemption
) -> PodManifest:
    """Evict the victims, and return the pod with its nominated node, for the caller to store.

    If no room can be made, the pod loses any earlier nomination.
    """
    if isinstance(preemption, NoPreemption):
        return manifest.with_nomination(None) if preemption.ends_nomination else manifest
    for victim in preemption.victims.pods:
        if not victim.terminating:
            _evict(context, victim, manifest.pod)
    _end_lower_nominations(context, manifest.pod, preemption.node_name)
    return manifest.with_nomination(preemption.node_name)


def _evict(context: DecisionContext, victim: Pod, preemptor: Pod) -> None:
    stored = context.replica.pod(victim.namespace, victim.name)
    assert stored is not None
    # The victim's owner may not be allowed to see the other pod, so the message does not name it.
    message = f"{preemptor.spec.scheduler_name}: preempting to accommodate a higher priority pod"
    context.replica.put(with_eviction(context, stored, PREEMPTED_REASON, message))
    record_evicted(context, stored, "Preemption", message)


def _end_lower_nominations(context: DecisionContext, pod: Pod, node_name: str) -> None:
    """End lower-priority nominations on a node, since those pods may no longer fit there."""
    nominated = context.replica.cluster.nominated.get(node_name, {})
    for key in [key for key, nomination in nominated.items() if nomination.priority < pod.priority]:
        stored = context.replica.pod(*key)
        assert stored is not None
        context.replica.put(stored.with_nomination(None))
