"""What answers say of preemption: which pods leave a node, or would have to, for one that fits nowhere."""

from msgspec.structs import replace

from service.engine import NoPreemption, Preemption, Refusal, Victims
from service.scheduler.protocol.placements import (
    PlacementResult,
    PodRef,
    Proposal,
    ProposedVictims,
)


def with_proposal(
    result: PlacementResult, refusal: Refusal, found: Preemption | NoPreemption
) -> PlacementResult:
    """Add to the result of a refused pod what preemption does, or why it does not help."""
    if isinstance(found, NoPreemption):
        return replace(result, message=found.message_after(refusal.message), preemption=None)
    return replace(result, preemption=_proposal(found))


def _proposal(found: Preemption) -> Proposal:
    proposal = Proposal(
        node_name=found.node_name,
        victims=_references(found.victims),
        budget_violations=found.victims.violations,
    )
    if found.candidates is None:
        return proposal
    candidates = {name: _proposed(found.candidates[name]) for name in sorted(found.candidates)}
    return replace(proposal, candidates=candidates)


def _proposed(victims: Victims) -> ProposedVictims:
    return ProposedVictims(victims=_references(victims), budget_violations=victims.violations)


def _references(victims: Victims) -> list[PodRef]:
    return [PodRef(namespace=each.namespace, name=each.name) for each in victims.pods]
