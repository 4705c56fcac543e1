"""Makes a plan: changes a fork, seeks the goal on it, counts the effect, and undoes everything."""

from msgspec.structs import replace

from service.model.core.errors import Forbidden, InvalidManifest, MoorageError
from service.scheduler.decide.context import Decision, DecisionContext, Steps
from service.scheduler.plans.changes import Changing
from service.scheduler.plans.drain.drain import Draining
from service.scheduler.plans.fork import Fork
from service.scheduler.plans.place import (
    Placing,
    Wanted,
    refuse_too_many,
    wanted_by,
)
from service.scheduler.plans.plan_totals import align_resources, count
from service.scheduler.plans.rebalance.moves import arrive
from service.scheduler.plans.rebalance.objectives import objective_totals
from service.scheduler.plans.rebalance.rebalance import Rebalancing
from service.scheduler.plans.remove.removal import Removals
from service.scheduler.plans.repair.repair import FitGoal
from service.scheduler.plans.replace.replacement import Replacing
from service.scheduler.protocol.intents import MakePlan
from service.scheduler.protocol.plans import (
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
    """Make a small plan on the replica that placements are decided on, like a dry run."""
    return make_plan(replace(context, is_late=_never), intent)


def _never() -> bool:
    return False


def make_plan(context: DecisionContext, intent: MakePlan) -> Decision[Planned]:
    """Plan the consequences of an intent's changes, and restore the replica.

    Raises:
        InvalidManifest, NotFound, PodDiffers, Forbidden: a change cannot be made, or the pods of
            the
            goal cannot be placed as they were sent.
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
    changing = Changing(fork, intent.caller)
    changed = yield from changing.make(intent.changes)
    reached = yield from _reached(fork, intent, changing)
    after = yield from _counted(fork, intent, rules=explains)
    before, after = align_resources(before, after)
    return Planned(
        revision=fork.revision,
        complete=reached.complete,
        changed=changed,
        steps=reached.steps,
        unplaced=reached.unplaced,
        before=before,
        after=after,
        repairs=reached.repairs if isinstance(reached, FitGoal) else None,
        unfinished=reached.unfinished if isinstance(reached, FitGoal) else None,
    )


def _counted(fork: Fork, intent: MakePlan, *, rules: bool) -> Steps[Counted]:
    counted = yield from count(fork.replica.cluster, rules=rules)
    if not isinstance(intent.goal, Rebalance):
        return counted
    objectives = yield from objective_totals(fork, intent.goal)
    return replace(counted, objectives=objectives)


def _reached(
    fork: Fork, intent: MakePlan, changing: Changing
) -> Steps[Placing | Draining | Removals | Replacing | Rebalancing | FitGoal]:
    """Seek the goal, as far as it can be reached."""
    goal = intent.goal
    try:
        if isinstance(goal, Drain):
            draining = Draining(fork, intent, goal)
            yield from draining.drain()
            return draining
        if isinstance(goal, Remove):
            removals = Removals(fork, intent, goal)
            yield from removals.remove()
            return removals
        if isinstance(goal, Replace):
            replacing = Replacing(fork, intent, goal)
            yield from replacing.replace()
            return replacing
        if isinstance(goal, Rebalance):
            yield from arrive(fork)
            rebalancing = Rebalancing(fork, intent, goal)
            yield from rebalancing.rebalance()
            return rebalancing
        if isinstance(goal, Fit):
            fit_goal = FitGoal(fork, intent, goal)
            yield from fit_goal.fit(changing.displaced)
            return fit_goal
        goal_pods = yield from _wanted(fork, goal, changing)
    except InvalidManifest as error:
        raise error.under("goal") from None
    except Forbidden as forbidden:
        raise forbidden.under("goal") from None
    placing = Placing(fork, intent, goal)
    yield from placing.place(goal_pods)
    return placing


def _wanted(fork: Fork, goal: Place, changing: Changing) -> Steps[list[Wanted]]:
    goal_pods = yield from wanted_by(fork, goal, changing.displaced)
    refuse_too_many(fork.context, goal_pods, "displaced" if goal.displaced else goal.path)
    return goal_pods


def _restored(fork: Fork) -> Steps[None]:
    yield from fork.restore()
    fork.context.events.clear()
