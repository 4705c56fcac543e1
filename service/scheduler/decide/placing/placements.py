"""A placement request as a whole: one by one or as a group, for real or as a dry run."""

from msgspec.structs import replace

from service.model.errors import FieldError, InvalidManifest
from service.scheduler.decide.context import Decision, DecisionContext
from service.scheduler.decide.placing.all_or_nothing import place_as_group
from service.scheduler.decide.placing.one_by_one import place_one_by_one
from service.scheduler.decide.placing.one_pod import candidates_of
from service.scheduler.protocol.intents import PlacePods
from service.scheduler.protocol.placements import PlacementAnswer


def place_pods(context: DecisionContext, intent: PlacePods) -> Decision[PlacementAnswer]:
    """Place the pods of an intent.

    Raises:
        InvalidManifest: the explanation would be too long.
        InvalidManifest, NotFound, PodDiffers, Forbidden: one of the pods cannot be placed as it was
            sent; then none is.
    """
    _refuse_long_explanation(context, intent)
    candidates = candidates_of(context, intent)
    place = place_as_group if intent.all_or_nothing else place_one_by_one
    mark = context.replica.mark()
    answer = yield from place(context, intent, candidates)
    if intent.dry_run:
        context.replica.undo(mark)
        context.events.clear()
        results = [replace(result, uid=None) for result in answer.results]
        return replace(answer, revision=context.replica.revision, results=results)
    return replace(answer, committed=context.replica.revision > mark.revision)


def _refuse_long_explanation(context: DecisionContext, intent: PlacePods) -> None:
    """Refuse a full explanation of too many pods on too many nodes: it says something of each pair."""
    if intent.explain != "Full":
        return
    pods, nodes = len(intent.pods) + len(intent.pod_refs), len(context.replica.keys("Node"))
    most = context.limits.explained_pairs_max
    if pods * nodes > most:
        message = f"a full explanation of {pods} pods on {nodes} nodes has {pods * nodes} verdicts, over the limit of {most}"
        raise InvalidManifest([FieldError(_asked_by(intent), message)])


def _asked_by(intent: PlacePods) -> str:
    """Name the field to blame: `explain`, or for a simulation, always explained, the pods' field."""
    return "explain" if intent.path in ("pods", "podRefs", "template") else intent.path
