"""Making room for a pod that fits nowhere: victims leave, and a node is nominated for the pod.

Both are decided together and committed together, so no victim leaves without a pod that waits for
its room, and whoever decides again after a lost race finds victims that are on their way.
"""

from collections.abc import Collection

from service.engine import NoPreemption, Preemption, preempt
from service.model.manifests.manifest import PodManifest
from service.model.objects.pods_and_nodes import Pod
from service.model.pods.status import PREEMPTED_REASON
from service.scheduler.decide.context import DecisionContext
from service.scheduler.decide.status.pod_conditions import (
    evicted,
    tell_evicted,
)
from service.scheduler.protocol.intents import PlacePods


def find_room(context: DecisionContext, intent: PlacePods, pod: Pod) -> Preemption | NoPreemption:
    """Search the node where room for a pod costs least; nothing is changed.

    If pods are to be evicted, only those count that the caller may evict.
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
    """Search as `find_room` does, at nobody's request: priority alone decides who may leave."""
    cluster = context.replica.cluster
    budgets = context.budgets(as_given=False)
    return preempt(cluster, pod, budgets, scope=context.replica.config.queue_preemption_scope)


def to_be_evicted(found: Preemption | NoPreemption) -> int:
    """How many pods have to be evicted that are not leaving already."""
    if isinstance(found, NoPreemption):
        return 0
    return sum(not each.terminating for each in found.victims.pods)


def _evictable(intent: PlacePods) -> Collection[str] | None:
    """The namespaces of which pods may be victims; None: all."""
    if intent.preemption != "Evict":
        return None
    return intent.caller.principal.namespaces("evict", intent.caller.cluster)


def make_room(
    context: DecisionContext, manifest: PodManifest, found: Preemption | NoPreemption
) -> PodManifest:
    """Mark the victims, and return the pod with the node nominated; it has still to be stored.

    If there is no room to be made anywhere, an earlier nomination of the pod ends.
    """
    if isinstance(found, NoPreemption):
        return manifest.with_nomination(None) if found.ends_nomination else manifest
    for victim in found.victims.pods:
        if not victim.terminating:
            _evict(context, victim, manifest.pod)
    _end_lower_nominations(context, manifest.pod, found.node_name)
    return manifest.with_nomination(found.node_name)


def _evict(context: DecisionContext, victim: Pod, preemptor: Pod) -> None:
    stored = context.replica.pod(victim.namespace, victim.name)
    assert stored is not None
    # The victim's owner may not be allowed to see the other pod, so it is not named.
    message = f"{preemptor.spec.scheduler_name}: preempting to accommodate a higher priority pod"
    context.replica.put(evicted(context, stored, PREEMPTED_REASON, message))
    tell_evicted(context, stored, "Preemption", message)


def _end_lower_nominations(context: DecisionContext, pod: Pod, node_name: str) -> None:
    """Let pods of lower priority search another node, as they may not fit on this one any more."""
    nominated = context.replica.cluster.nominated.get(node_name, {})
    for key in [key for key, each in nominated.items() if each.priority < pod.priority]:
        stored = context.replica.pod(*key)
        assert stored is not None
        context.replica.put(stored.with_nomination(None))
