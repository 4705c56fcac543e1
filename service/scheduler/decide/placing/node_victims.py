"""Reports the victims that a pod would need on each node, leaving the choice to the caller."""

from service.engine import NoPreemption, Victims, preempt
from service.scheduler.decide.context import DecisionContext
from service.scheduler.decide.placing.pod_placement import candidates_of, held_back_by
from service.scheduler.protocol.intents import FindVictims
from service.scheduler.protocol.placements import NodeVictims, VictimsAnswer


def find_victims(context: DecisionContext, intent: FindVictims) -> VictimsAnswer:
    """Find the victims on every node where room can be made; none for a pod that may not be placed.

    Raises:
        InvalidManifest, PodDiffers, Forbidden: the pod cannot be placed as it was sent.
    """
    (candidate,) = candidates_of(context, intent.placement)
    revision = context.replica.revision
    if candidate.is_placed or held_back_by(context, candidate) is not None:
        return VictimsAnswer(revision=revision, nodes={})
    cluster, budgets = context.replica.cluster, context.budgets(as_given=False)
    preemption = preempt(cluster, candidate.pod, budgets, all_candidates=True)
    if isinstance(preemption, NoPreemption) or preemption.candidates is None:
        return VictimsAnswer(revision=revision, nodes={})
    nodes = {
        name: _to_answer(victims)
        for name, victims in sorted(preemption.candidates.items())
        if victims.pods
    }
    return VictimsAnswer(revision=revision, nodes=nodes)


def _to_answer(victims: Victims) -> NodeVictims:
    return NodeVictims(
        uids=tuple(pod.uid for pod in victims.pods),
        namespaces=frozenset(pod.namespace for pod in victims.pods),
        budget_violations=victims.violations,
    )
