"""Describes preemption in answers: the pods that leave a node, or would have to."""

from msgspec.structs import replace

from service.engine import NoPreemption, Preemption, Refusal, Victims
from service.scheduler.protocol.placements import PlacementResult, PodRef, Proposal, ProposedVictims


def with_proposal(
    result: PlacementResult, refusal: Refusal, preemption: Preemption | NoPreemption
) -> PlacementResult:
    """Add the outcome of preemption to a refused pod's result, or why preemption does not help."""
    message = preemption.message_after(refusal.message)
    if isinstance(preemption, NoPreemption):
        return replace(result, message=message, preemption=None)
    return replace(result, message=message, preemption=_proposal(preemption))


def _proposal(preemption: Preemption) -> Proposal:
    proposal = Proposal(
        node_name=preemption.node_name,
        victims=_references(preemption.victims),
        budget_violations=preemption.victims.violations,
    )
    if preemption.candidates is None:
        return proposal
    candidates = {
        name: _proposed(preemption.candidates[name]) for name in sorted(preemption.candidates)
    }
    return replace(proposal, candidates=candidates)


def _proposed(victims: Victims) -> ProposedVictims:
    return ProposedVictims(victims=_references(victims), budget_violations=victims.violations)


def _references(victims: Victims) -> list[PodRef]:
    return [PodRef(namespace=pod.namespace, name=pod.name) for pod in victims.pods]
