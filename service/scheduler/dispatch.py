"""Dispatches each intent to the function that decides it.

Decisions are pure functions from an intent and a replica to an answer and tentative changes. Each
is a generator of steps (see `service.scheduler.decide.context.Decision`). No decision waits for
I/O, and the context has everything a decision needs besides its intent.
"""

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from service.scheduler.decide.computed_status import read_computed
from service.scheduler.decide.context import Decision, DecisionContext, at_once
from service.scheduler.decide.evicting.violation_sweep import evict_violating
from service.scheduler.decide.node_lifecycle.sweep import sweep_nodes
from service.scheduler.decide.object_writes import delete_object, put_object
from service.scheduler.decide.placing.group_reservations import advance_group
from service.scheduler.decide.placing.node_victims import find_victims
from service.scheduler.decide.placing.pending_pods import place_pending
from service.scheduler.decide.placing.placement_request import place_pods
from service.scheduler.decide.reading.binding_check import confirm_binding
from service.scheduler.decide.reading.explanations import explain_pod, read_topology
from service.scheduler.decide.reading.violation_list import read_violations
from service.scheduler.decide.writing.bindings import bind_pod, evict_pod
from service.scheduler.decide.writing.bulk_writes import apply_lines, apply_objects
from service.scheduler.decide.writing.config import patch_config, put_config
from service.scheduler.decide.writing.filtered_deletions import delete_objects
from service.scheduler.decide.writing.patching import apply_object, patch_object
from service.scheduler.decide.writing.status_reports import report_statuses
from service.scheduler.plans.advance import advance_plans
from service.scheduler.plans.commit_plan import commit_plan
from service.scheduler.plans.drain.cordon import (
    cordon_node,
    drain_node,
    set_plan_state,
)
from service.scheduler.plans.make_plan import plan_among_placements
from service.scheduler.protocol.answers import (
    Answer,
    DeletionResult,
    DeletionsAnswer,
    LineResult,
    LinesAnswer,
)
from service.scheduler.protocol.intents import (
    AdvanceGroup,
    AdvancePlans,
    ApplyLines,
    ApplyObjects,
    ApplyPatch,
    BindPod,
    CommitPlan,
    ConfirmBinding,
    CordonNode,
    DeleteObject,
    DeleteObjects,
    DrainNode,
    DryRun,
    EvictPod,
    EvictViolating,
    ExplainPod,
    FindVictims,
    Intent,
    MakePlan,
    PatchConfig,
    PatchObject,
    PlacePending,
    PlacePods,
    PutConfig,
    PutObject,
    ReadComputed,
    ReadTopology,
    ReadViolations,
    ReportStatus,
    SetPlanState,
    SweepNodes,
)

__all__ = ["DECISIONS", "decide", "is_advisory"]


def _dry_run(context: DecisionContext, intent: DryRun[Any]) -> Decision[Answer]:
    """Decide the wrapped intent, and undo its changes."""
    mark = context.replica.mark()
    answer = yield from decide(context, intent.intent)
    yield from context.replica.undoing(mark)
    context.events.clear()
    revision = context.replica.revision
    if isinstance(answer, LinesAnswer | DeletionsAnswer):
        results: list[Any] = [_without_later(result, revision) for result in answer.results]
        return replace(answer, revision=revision, results=results)
    return replace(answer, revision=revision)


def _without_later(result: LineResult | DeletionResult, head: int) -> LineResult | DeletionResult:
    """Return the result without its revision if the dry run's undo removes that revision."""
    is_later = result.revision is not None and result.revision > head
    return replace(result, revision=None) if is_later else result


DECISIONS: dict[type[Intent[Any]], Callable[[DecisionContext, Any], Decision[Any]]] = {
    PutObject: at_once(put_object),
    PatchObject: at_once(patch_object),
    ApplyPatch: at_once(apply_object),
    DeleteObject: at_once(delete_object),
    DeleteObjects: delete_objects,
    ReportStatus: report_statuses,
    ApplyObjects: apply_objects,
    ApplyLines: apply_lines,
    PutConfig: at_once(put_config),
    PatchConfig: at_once(patch_config),
    PlacePods: place_pods,
    AdvanceGroup: at_once(advance_group),
    FindVictims: at_once(find_victims),
    DryRun: _dry_run,
    PlacePending: place_pending,
    MakePlan: plan_among_placements,
    CommitPlan: commit_plan,
    BindPod: at_once(bind_pod),
    ConfirmBinding: at_once(confirm_binding),
    EvictPod: at_once(evict_pod),
    EvictViolating: evict_violating,
    SweepNodes: sweep_nodes,
    CordonNode: at_once(cordon_node),
    DrainNode: at_once(drain_node),
    SetPlanState: at_once(set_plan_state),
    AdvancePlans: advance_plans,
    ExplainPod: at_once(explain_pod),
    ReadTopology: read_topology,
    ReadViolations: read_violations,
    ReadComputed: at_once(read_computed),
}
"""The function that decides each kind of intent."""


def decide(context: DecisionContext, intent: Intent[Any]) -> Decision[Answer]:
    """Decide an intent step by step; changes go to the context's replica.

    Raises:
        MoorageError: the intent is refused; the caller has to undo its changes.
    """
    return DECISIONS[type(intent)](context, intent)


def is_advisory(intent: Intent[Any]) -> bool:
    """Return whether an intent changes nothing, so that it can be answered even without storage."""
    if isinstance(intent, PlacePods):
        return intent.dry_run and not intent.compare  # comparisons decide between clusters
    return isinstance(
        intent, DryRun | ExplainPod | FindVictims | MakePlan | ReadTopology | ReadViolations
    )
