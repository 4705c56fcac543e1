"""Counts how many more pods of a template fit, by placing them on a fork until one is refused."""

from collections import Counter

from msgspec import UNSET
from msgspec.structs import replace

from service.engine import Explanation, Summary
from service.model.core.errors import MoorageError
from service.scheduler.decide.context import Decision, DecisionContext, Steps
from service.scheduler.decide.placing.pod_placement import candidates_of, explanation_of, place_pod
from service.scheduler.plans.fork import Fork
from service.scheduler.protocol.answers import CapacityAnswer
from service.scheduler.protocol.intents import FindCapacity, PlacePods
from service.scheduler.protocol.placements import PlacementResult


def find_capacity(context: DecisionContext, intent: FindCapacity) -> Decision[CapacityAnswer]:
    """Count the pods that get nodes before one is refused, and restore the replica.

    Raises:
        InvalidManifest, PodDiffers: the pods cannot be placed as sent.
    """
    fork = Fork(context)
    try:
        answer = yield from _counted(fork, intent)
    except MoorageError:
        yield from fork.restore()
        raise
    yield from fork.restore()
    context.events.clear()
    return answer


def _counted(fork: Fork, intent: FindCapacity) -> Steps[CapacityAnswer]:
    context, placed = fork.context, Counter[str]()
    refused: PlacementResult | None = None
    explanation: Explanation | Summary | None = None
    for pod in intent.pods:
        request = PlacePods(pods=(pod,), path="template", dry_run=True, caller=intent.caller)
        candidate = candidates_of(context, request)[0]
        result = place_pod(context, request, candidate)
        if result.node_name is None:
            refused = result
            if result.outcome == "Unschedulable":
                why = PlacePods(explain=intent.explain)
                explanation = explanation_of(context, why, candidate.pod)
            break
        placed[result.node_name] += 1
        yield from fork.pause()
        if context.is_late():
            break
    answer = _answer(fork, intent, placed, refused)
    return answer if explanation is None else replace(answer, explanation=explanation)


def _answer(
    fork: Fork, intent: FindCapacity, placed: Counter[str], refused: PlacementResult | None
) -> CapacityAnswer:
    domains, without = Counter[str](), 0
    for name, count in placed.items() if intent.topology_key else ():
        node = fork.replica.cluster.node(name)
        assert node is not None
        value = node.labels.get(intent.topology_key or "")
        if value is None:
            without += count
        else:
            domains[value] += count
    return CapacityAnswer(
        revision=fork.revision,
        kubernetes=fork.replica.config.kubernetes,
        fits=placed.total(),
        limited=refused is not None,
        reason=None if refused is None else refused.reason or refused.outcome,
        message=None if refused is None else refused.message,
        domains=dict(sorted(domains.items())) if intent.topology_key else UNSET,
        without_key=without if intent.topology_key else UNSET,
    )
