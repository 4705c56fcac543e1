"""A placement request as a whole: one by one or as a group, for real or as a dry run."""

from collections.abc import Sequence

from msgspec.structs import replace

from service.engine import compare_cluster
from service.model.errors import FieldError, InvalidManifest
from service.model.multi_cluster.multi_cluster_criteria import ClusterComparison
from service.scheduler.decide.admission.generated_names import with_names
from service.scheduler.decide.admission.ignored_field_warnings import warnings_of
from service.scheduler.decide.context import Decision, DecisionContext
from service.scheduler.decide.placing.all_or_nothing import place_as_group
from service.scheduler.decide.placing.one_by_one import place_one_by_one
from service.scheduler.decide.placing.one_pod import Candidate, candidates_of
from service.scheduler.decide.placing.split_groups import group_comparison, reservation_comparison
from service.scheduler.protocol.intents import PlacePods
from service.scheduler.protocol.placements import PlacementAnswer, PlacementResult


def place_pods(context: DecisionContext, intent: PlacePods) -> Decision[PlacementAnswer]:
    """Place the pods of an intent.

    Raises:
        InvalidManifest: the explanation would be too long.
        InvalidManifest, NotFound, PodDiffers, Forbidden: one of the pods cannot be placed as it was
            sent; then none is.
    """
    _refuse_long_explanation(context, intent)
    if intent.undrawn:
        intent = replace(intent, pods=with_names(context, intent.pods))
    candidates = candidates_of(context, intent)
    place = place_as_group if intent.all_or_nothing else place_one_by_one
    before = context.replica.revision
    mark = context.replica.mark() if intent.dry_run else None
    compared = _compared(context, candidates) if intent.compare else None
    answer = yield from place(context, intent, candidates)
    # Without a function: there are no warnings about most pods, and nothing is to be done for them.
    if any(
        [each.manifest.template.warnings or each.manifest.status for each in candidates]  # noqa: C419
    ):
        _warn(context, intent, candidates)
    if context.warnings is not None:
        answer = replace(answer, warnings=context.told())
    if compared is not None:
        answer = replace(answer, results=list(map(_with, answer.results, compared)))
    if mark is not None:
        context.replica.undo(mark)
        context.events.clear()
        results = [replace(result, uid=None) for result in answer.results]
        return replace(answer, revision=context.replica.revision, results=results)
    return replace(answer, committed=context.replica.revision > before)


def _compared(context: DecisionContext, candidates: Sequence[Candidate]) -> list[ClusterComparison]:
    """Compare the cluster for each pod, as it is before any of them is placed."""
    replica = context.replica
    return [
        replace(
            compare_cluster(replica.cluster, each.pod),
            group=group_comparison(replica, each),
            reserved=reservation_comparison(replica, each),
        )
        for each in candidates
    ]


def _with(result: PlacementResult, comparison: ClusterComparison) -> PlacementResult:
    return replace(result, comparison=comparison)


def _warn(context: DecisionContext, intent: PlacePods, candidates: Sequence[Candidate]) -> None:
    """Warn about pods; the warnings of a template are the same for all of its replicas."""
    for index, candidate in enumerate(candidates[:1] if intent.path == "template" else candidates):
        found = warnings_of(context, candidate.manifest)
        context.warn(found, intent.place_of(index))


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
