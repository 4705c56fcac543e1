"""Makes a plan and carries it out in one decision, and so in one commit.

Like every decision, the plan rests on exactly the state that it extends. So planning and execution
need no checks in between, and after a lost race the plan is made again. A plan that its caller has
already seen is carried out only if it is unchanged.
"""

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from service.model.core.errors import Conflict, Forbidden, InvalidManifest
from service.model.registry.manifests import PodManifest
from service.scheduler.decide.context import Decision, DecisionContext, Steps
from service.scheduler.decide.object_writes import delete_stored
from service.scheduler.decide.placing.placement_request import place_pods
from service.scheduler.plans.fork import Fork
from service.scheduler.plans.make_plan import plan_among_placements
from service.scheduler.plans.selection import field_error, pods_of
from service.scheduler.protocol.callers import Caller
from service.scheduler.protocol.intents import CommitPlan, MakePlan, PlacePods
from service.scheduler.protocol.plans import (
    Compare,
    Drain,
    Fit,
    Place,
    Planned,
    PlanStepKey,
    Rebalance,
    Remove,
    RemovePods,
    Replace,
)

_TOLD_MAX = 5
_EVICTING = "its commit marks placed pods as to be stopped."
_EDITING = "its commit deletes pods that wait for a node."


def commit_plan(context: DecisionContext, intent: CommitPlan) -> Decision[Planned]:
    """Make a plan, and carry out all of it if it reaches its goal.

    Raises:
        InvalidManifest: Moorage cannot carry out such a plan, or not in one commit.
        Conflict: the plan is not the expected one.
        Forbidden: the caller may not carry out its steps.
        NotFound, PodDiffers: for the same reasons as in `make_plan`.
    """
    plan = intent.plan
    _refuse_others(context, plan)
    planned = yield from plan_among_placements(context.speculative(), plan)
    if intent.expected is not None:
        _refuse_changed(intent.expected, [PlanStepKey.of(step) for step in planned.steps])
    if not planned.complete:
        return planned
    if len(planned.steps) > context.limits.plan_committed_max:
        raise _too_many(context, len(planned.steps))
    for index, change in enumerate(plan.changes):
        assert isinstance(change, RemovePods)
        pods = yield from pods_of(Fork(context), change.pods, plan.caller)
        try:
            yield from _delete(context, pods, plan.caller)
        except Forbidden as forbidden:
            raise forbidden.under(f"changes[{index}]") from None
    if isinstance(plan.goal, Remove):
        yield from _remove(context, planned, plan.caller)
    elif isinstance(plan.goal, Place):
        yield from _place(context, planned, plan, plan.goal)
    return replace(planned, revision=context.replica.revision, status="Committed")


def _refuse_others(context: DecisionContext, plan: MakePlan) -> None:
    for index, change in enumerate(plan.changes):
        if not isinstance(change, RemovePods):
            message = "cannot be committed; only RemovePods can"
            raise field_error(f"changes[{index}].op", message, type(change).__name__)
    if isinstance(plan.goal, Fit):
        raise field_error("goal.type", "only tells what would help, so there is nothing to commit")
    if isinstance(plan.goal, Compare):
        raise field_error("goal.type", "only compares, so there is nothing to commit")
    if isinstance(plan.goal, Rebalance):
        raise field_error("goal.type", "only tells which moves would help, so nothing is committed")
    if isinstance(plan.goal, Drain | Replace):
        raise field_error("goal.type", "is carried out by a plan that is kept, not by one commit")
    if isinstance(plan.goal, Place) and plan.goal.displaced:
        raise field_error("goal.displaced", "cannot be committed, as no node is removed")
    if isinstance(plan.goal, Remove) and plan.goal.count > context.limits.plan_committed_max:
        raise _too_many(context, plan.goal.count)


def _too_many(context: DecisionContext, pods: int) -> InvalidManifest:
    most = context.limits.plan_committed_max
    return field_error("goal", f"is about {pods} pods, over the limit of {most} in one commit")


def _refuse_changed(expected: Sequence[PlanStepKey], steps: Sequence[PlanStepKey]) -> None:
    """Refuse a plan that differs from the expected one, listing the differences.

    Raises:
        Conflict: the plan differs.
    """
    if list(expected) == list(steps):
        return
    known, now = set(expected), set(steps)
    removed = [f"no more: {_format_step(step)}" for step in expected if step not in now]
    new = [f"now: {_format_step(step)}" for step in steps if step not in known]
    differences = [*removed, *new] or ["its steps have another order"]
    rest = f"; and {len(differences) - _TOLD_MAX} more" if len(differences) > _TOLD_MAX else ""
    raise Conflict(
        f"The plan is another one now, and nothing was done. {'; '.join(differences[:_TOLD_MAX])}{rest}."
    )


def _format_step(step: PlanStepKey) -> str:
    return f"{step.action} {step.namespace}/{step.name}" + (f" on {step.to}" if step.to else "")


def _delete(context: DecisionContext, pods: Iterable[PodManifest], caller: Caller) -> Steps[None]:
    for pod in pods:
        stored = context.replica.get(pod.kind, pod.namespace, pod.name)
        assert stored is not None
        delete_stored(context, stored, caller)
        yield


def _remove(context: DecisionContext, planned: Planned, caller: Caller) -> Steps[None]:
    """Mark placed pods for termination, and delete pods that are waiting for a node."""
    for step in planned.steps:
        stored = context.replica.get(PodManifest.kind, step.namespace or "", step.name)
        assert stored is not None
        manifest = stored.manifest
        assert isinstance(manifest, PodManifest)
        if manifest.pod.node_name is None:
            caller.require("edit", manifest.namespace, _EDITING)
            delete_stored(context, stored, caller)
        else:
            caller.require("evict", manifest.namespace, _EVICTING)
            context.replica.put(manifest.with_deletion(context.now))
        yield


def _place(context: DecisionContext, planned: Planned, plan: MakePlan, goal: Place) -> Steps[None]:
    request = PlacePods(pods=goal.pods, pod_refs=goal.pod_refs, path=goal.path, caller=plan.caller)
    answer = yield from place_pods(context, request)
    nodes = {(step.namespace, step.name): step.to for step in planned.steps}
    for result in answer.results:
        got = result.outcome == "AlreadyPlaced" or result.node_name == nodes.get(
            (result.namespace, result.name)
        )
        if not got:
            raise Conflict(
                f"{result.namespace}/{result.name} does not get the node that was planned for it, "
                "and nothing was done."
            )
