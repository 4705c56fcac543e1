"""Decides a placement request pod by pod, either for real or as a dry run.

Placing all pods or none is in `group_placement`.
"""

from collections.abc import Sequence
from typing import NamedTuple

from msgspec.structs import replace

from service.engine import Explanation, Placement, Refusal, Summary, compare_cluster
from service.model.cluster.comparison import ClusterComparison
from service.model.core.errors import FieldError, InvalidManifest
from service.model.core.primitives import ObjectName
from service.scheduler.decide.admission.admission_policies import ask_about_new
from service.scheduler.decide.admission.generated_names import with_names
from service.scheduler.decide.admission.ignored_fields import warnings_of
from service.scheduler.decide.context import Decision, DecisionContext, Steps
from service.scheduler.decide.groups.group_membership import members_of
from service.scheduler.decide.placing.gangs import Gang
from service.scheduler.decide.placing.group_placement import place_as_group
from service.scheduler.decide.placing.group_reservations import (
    group_comparison,
    reservation_comparison,
)
from service.scheduler.decide.placing.pod_placement import (
    Candidate,
    already_placed,
    candidates_of,
    denied_result,
    explanation_of,
    left_waiting,
    place_pod,
)
from service.scheduler.decide.placing.step_size import StepSize
from service.scheduler.decide.status.pod_conditions import GATED_REASON
from service.scheduler.protocol.intents import PlacePods
from service.scheduler.protocol.placements import PlacementAnswer, PlacementResult
from service.scheduler.replica.pod_groups import GroupRef, group_of


def place_pods(context: DecisionContext, intent: PlacePods) -> Decision[PlacementAnswer]:
    """Place the pods of an intent.

    Raises:
        InvalidManifest: the explanation would be too long.
        InvalidManifest, NotFound, PodDiffers, Forbidden: one of the pods cannot be placed
            as sent, so none is placed.
    """
    _refuse_long_explanation(context, intent)
    if intent.undrawn:
        intent = replace(intent, pods=with_names(context, intent.pods))
    candidates = candidates_of(context, intent)
    if context.replica.config.policies:
        new = [candidate.manifest for candidate in candidates if candidate.stored is None]
        ask_about_new(context.replica, new)
    place = place_as_group if intent.all_or_nothing else place_one_by_one
    before = context.replica.revision
    mark = context.replica.mark() if intent.dry_run else None
    compared = (yield from _compared(context, candidates)) if intent.compare else None
    answer = yield from place(context, intent, candidates)
    # Inline, since most pods have no warnings and this runs for each of them.
    if any(
        [  # noqa: C419
            candidate.manifest.template.warnings or candidate.manifest.status
            for candidate in candidates
        ]
    ):
        _warn(context, intent, candidates)
    if context.warnings is not None:
        answer = replace(answer, warnings=context.answer_warnings())
    if compared is not None:
        answer = replace(answer, results=list(map(_with, answer.results, compared)))
    if mark is not None:
        yield from context.replica.undoing(mark)
        context.events.clear()
        results = [replace(result, uid=None) for result in answer.results]
        return replace(answer, revision=context.replica.revision, results=results)
    return replace(answer, committed=context.replica.revision > before)


def _compared(
    context: DecisionContext, candidates: Sequence[Candidate]
) -> Steps[list[ClusterComparison]]:
    """Return how this cluster compares with others for each pod, before any pod is placed."""
    replica, compared, step = context.replica, list[ClusterComparison](), StepSize()
    for candidate in candidates:
        comparison = compare_cluster(replica.cluster, candidate.pod)
        group, reserved = (
            group_comparison(replica, candidate),
            reservation_comparison(replica, candidate),
        )
        compared.append(replace(comparison, group=group, reserved=reserved))
        if step.is_over(candidate.pod):
            yield
    return compared


def _with(result: PlacementResult, comparison: ClusterComparison) -> PlacementResult:
    return replace(result, comparison=comparison)


def _warn(context: DecisionContext, intent: PlacePods, candidates: Sequence[Candidate]) -> None:
    """Warn about pods, only once for all replicas of a template."""
    for index, candidate in enumerate(candidates[:1] if intent.path == "template" else candidates):
        warnings = warnings_of(context, candidate.manifest)
        context.warn(warnings, intent.place_of(index))


def _refuse_long_explanation(context: DecisionContext, intent: PlacePods) -> None:
    """Refuse a full explanation of too many pod-node pairs."""
    if intent.explain != "Full":
        return
    pods, nodes = len(intent.pods) + len(intent.pod_refs), len(context.replica.keys("Node"))
    most = context.limits.explained_pairs_max
    if pods * nodes > most:
        message = f"a full explanation of {pods} pods on {nodes} nodes has {pods * nodes} verdicts, over the limit of {most}"
        raise InvalidManifest([FieldError(_explain_path(intent), message)])


def _explain_path(intent: PlacePods) -> str:
    """Return the request field that asked for the explanation, for errors."""
    return "explain" if intent.path in ("pods", "podRefs", "template") else intent.path


def place_one_by_one(
    context: DecisionContext, intent: PlacePods, candidates: list[Candidate]
) -> Decision[PlacementAnswer]:
    """Place the pods of a BestEffort request one by one; failures do not stop the others.

    When the first member of a PodGroup is reached, all its members in the request are placed,
    together with those that are already pending.
    """
    results: dict[ObjectName, PlacementResult] = {}
    step = StepSize()
    members: dict[GroupRef, list[Candidate]] = {}
    pods = [candidate.manifest.pod for candidate in candidates]
    keys = [(pod.namespace, pod.name) for pod in pods]
    for key, pod, candidate in zip(keys, pods, candidates, strict=True):
        in_group = candidate.manifest.is_in_group and not intent.without_groups
        group = group_of(candidate.manifest) if in_group else None
        if candidate.is_placed or group is None:
            results[key] = place_pod(context, intent, candidate)
        elif key not in results:
            members = members or _by_group(candidates)
            results.update((yield from _place_members(context, intent, group, members[group])))
        if len(keys) > 1 and step.is_over(pod):
            yield
    return PlacementAnswer(
        revision=context.replica.revision,
        committed=False,
        attempts=context.attempts,
        kubernetes=context.replica.config.kubernetes,
        results=list(map(results.__getitem__, keys)),
    )


def _by_group(candidates: Sequence[Candidate]) -> dict[GroupRef, list[Candidate]]:
    """Group the pods by PodGroup, ignoring pods without one."""
    members: dict[GroupRef, list[Candidate]] = {}
    for candidate in candidates:
        group = group_of(candidate.manifest) if candidate.manifest.is_in_group else None
        if group is not None:
            members.setdefault(group, []).append(candidate)
    return members


class _Before(NamedTuple):
    """The revision, and a pod's explanation, from before any member of its group was placed."""

    revision: int
    explanation: Explanation | Summary | None


def _place_members(
    context: DecisionContext, intent: PlacePods, group: GroupRef, requested: Sequence[Candidate]
) -> Steps[dict[ObjectName, PlacementResult]]:
    """Place a group's members in the request, perhaps together with other pending members."""
    members = members_of(context.replica, group)
    fresh = [candidate for candidate in requested if not candidate.is_placed]
    known = {candidate.key for candidate in fresh}
    others = [Candidate(manifest, manifest) for manifest in members.waiting]
    waiting = [candidate for candidate in others if candidate.key not in known]
    before, step = {}, StepSize()
    for candidate in fresh:
        explanation = explanation_of(context, intent, candidate.pod)
        before[candidate.key] = _Before(context.replica.revision, explanation)
        if step.is_over(candidate.pod):
            yield
    gang = Gang(context, members, [*fresh, *waiting])
    yield from gang.assemble()
    alone = {candidate.key for candidate in gang.alone}
    within = gang.within() if alone else None
    results: dict[ObjectName, PlacementResult] = {}
    for candidate in requested:
        if step.is_over(candidate.pod):
            yield
        if candidate.is_placed:
            results[candidate.key] = already_placed(context, intent, candidate)
        elif candidate.key in alone:
            results[candidate.key] = place_pod(context, intent, candidate, within)
        else:
            results[candidate.key] = _result(
                context, intent, gang, candidate, before[candidate.key]
            )
    return results


def _result(
    context: DecisionContext, intent: PlacePods, gang: Gang, candidate: Candidate, before: _Before
) -> PlacementResult:
    refused = gang.denied.get(candidate.key)
    if candidate.key in gang.placed:
        return _placed(intent, candidate, *gang.placed[candidate.key], before)
    if refused is not None and refused.reason != GATED_REASON:
        return denied_result(context, candidate, refused, before.explanation)
    if refused is not None:
        message = refused.detail
        return left_waiting(
            context, intent, candidate, message, before.explanation, reason=GATED_REASON
        )
    assert isinstance(gang.refusal, Refusal)
    message = gang.with_timeout(gang.refusal.message)
    result = left_waiting(context, intent, candidate, message, before.explanation)
    return result if gang.reason is None else replace(result, reason=gang.reason)


def _placed(
    intent: PlacePods, candidate: Candidate, placement: Placement, uid: str, before: _Before
) -> PlacementResult:
    return PlacementResult(
        namespace=candidate.pod.namespace,
        name=candidate.pod.name,
        uid=None if intent.dry_run else uid,
        outcome="Placed",
        node_name=placement.node_name,
        score=placement.score,
        planned_revision=before.revision,
        explanation=before.explanation,
    )
