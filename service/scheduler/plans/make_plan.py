"""Makes a plan: applies changes to a fork, seeks the goal, measures the effect, and undoes all."""

from msgspec.structs import replace

from service.engine import Cluster
from service.model.core.errors import Forbidden, InvalidManifest, MoorageError
from service.scheduler.decide.context import Decision, DecisionContext, Steps
from service.scheduler.plans.changes import ForkEditor
from service.scheduler.plans.drain.drain import DrainPlan
from service.scheduler.plans.fork import Fork
from service.scheduler.plans.place import (
    GoalPod,
    PlacePlan,
    goal_pods_of,
    refuse_too_many,
)
from service.scheduler.plans.plan_totals import align_resources, count
from service.scheduler.plans.preview.comparison import ComparePlan
from service.scheduler.plans.rebalance.moves import arrive
from service.scheduler.plans.rebalance.objectives import objective_totals
from service.scheduler.plans.rebalance.rebalance import RebalancePlan
from service.scheduler.plans.remove.removal import RemovePlan
from service.scheduler.plans.repair.repair import FitPlan
from service.scheduler.plans.replace.replacement import ReplacePlan
from service.scheduler.protocol.intents import MakePlan
from service.scheduler.protocol.plans import (
    Compare,
    Counted,
    Drain,
    Fit,
    Place,
    Planned,
    Rebalance,
    Remove,
    Replace,
)


def plan_among_placements(context: DecisionContext, intent: MakePlan) -> Decision[Planned]:
    """Make a small plan on the replica that placements use, like a dry run."""
    return make_plan(replace(context, is_late=_never), intent)


def _never() -> bool:
    return False


def make_plan(context: DecisionContext, intent: MakePlan) -> Decision[Planned]:
    """Plan the consequences of an intent's changes, and restore the replica.

    Raises:
        InvalidManifest, NotFound, PodDiffers, Forbidden: a change is impossible, or the
            goal's pods cannot be placed as sent.
    """
    fork = Fork(context)
    try:
        plan = yield from _plan(fork, intent)
    except MoorageError:
        yield from _restored(fork)
        raise
    yield from _restored(fork)
    return plan


def _plan(fork: Fork, intent: MakePlan) -> Steps[Planned]:
    explains = intent.explain != "None"
    before = yield from _counted(fork, intent, rules=explains)
    cluster = fork.replica.cluster
    editor = ForkEditor(fork, intent.caller)
    changed = yield from editor.make(intent.changes)
    reached = yield from _reached(fork, cluster, intent, editor)
    after = yield from _counted(fork, intent, rules=explains)
    before, after = align_resources(before, after)
    return Planned(
        revision=fork.revision,
        kubernetes=fork.replica.config.kubernetes,
        complete=reached.complete,
        changed=changed,
        steps=reached.steps,
        unplaced=reached.unplaced,
        before=before,
        after=after,
        compared=reached.compared if isinstance(reached, ComparePlan) else None,
        differences=reached.differences if isinstance(reached, ComparePlan) else None,
        repairs=reached.repairs if isinstance(reached, FitPlan) else None,
        unfinished=reached.unfinished if isinstance(reached, FitPlan) else None,
    )


def _counted(fork: Fork, intent: MakePlan, *, rules: bool) -> Steps[Counted]:
    counted = yield from count(fork.replica.cluster, rules=rules)
    if not isinstance(intent.goal, Rebalance):
        return counted
    objectives = yield from objective_totals(fork, intent.goal)
    return replace(counted, objectives=objectives)


def _reached(
    fork: Fork, before: Cluster, intent: MakePlan, editor: ForkEditor
) -> Steps[
    PlacePlan | DrainPlan | RemovePlan | ReplacePlan | RebalancePlan | FitPlan | ComparePlan
]:
    """Pursue the goal as far as possible, and return the resulting plan.

    `before` is the cluster as it was before settings were changed.
    """
    goal = intent.goal
    try:
        if isinstance(goal, Drain):
            drain = DrainPlan(fork, intent, goal)
            yield from drain.drain()
            return drain
        if isinstance(goal, Remove):
            removals = RemovePlan(fork, intent, goal)
            yield from removals.remove()
            return removals
        if isinstance(goal, Replace):
            replacing = ReplacePlan(fork, intent, goal)
            yield from replacing.replace()
            return replacing
        if isinstance(goal, Rebalance):
            yield from arrive(fork)
            rebalancing = RebalancePlan(fork, intent, goal)
            yield from rebalancing.rebalance()
            return rebalancing
        if isinstance(goal, Fit):
            fit_goal = FitPlan(fork, intent, goal)
            yield from fit_goal.fit(editor.displaced)
            return fit_goal
        if isinstance(goal, Compare):
            comparing = ComparePlan(fork, before, intent, goal)
            yield from comparing.compare()
            return comparing
        goal_pods = yield from _goal_pods(fork, goal, editor)
    except InvalidManifest as error:
        raise error.under("goal") from None
    except Forbidden as forbidden:
        raise forbidden.under("goal") from None
    placing = PlacePlan(fork, intent, goal)
    yield from placing.place(goal_pods)
    return placing


def _goal_pods(fork: Fork, goal: Place, editor: ForkEditor) -> Steps[list[GoalPod]]:
    goal_pods = yield from goal_pods_of(fork, goal, editor.displaced)
    refuse_too_many(fork.context, goal_pods, "displaced" if goal.displaced else goal.path)
    return goal_pods


def _restored(fork: Fork) -> Steps[None]:
    yield from fork.restore()
    fork.context.events.clear()
