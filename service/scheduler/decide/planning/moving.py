"""The next moves of a plan that rebalances and is carried out: judged anew on the state of now.

What to move is searched beside placements, on a state that may be over when the moves are made. So
each wave is tried out once more: its pods are where they were, their new nodes take them although
all pods that are leaving still have their room, budgets allow it as things are, no rule is broken,
and the objectives are better. A wave of which that is not true any more is left out; the next
search plans it anew, or something else.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from msgspec.structs import replace

from service.model.manifest import PodManifest
from service.model.objects import Pod
from service.scheduler.decide.context import DecisionContext, Steps
from service.scheduler.decide.disruption_budgets import Allowances
from service.scheduler.decide.move_reservations import give_up, reservations_in
from service.scheduler.decide.placing.one_pod import Candidate, place_pod
from service.scheduler.decide.planning.changing import unbound
from service.scheduler.decide.planning.fork import Fork
from service.scheduler.decide.planning.leaving import units_of
from service.scheduler.decide.planning.newly_broken_rules import BrokenRules
from service.scheduler.decide.planning.protected_pods import is_protected
from service.scheduler.decide.planning.rebalancing import Measured, Rebalancing
from service.scheduler.decide.planning.waves import PROTECTED, Kept, Move, breaking, kept_by_budget
from service.scheduler.protocol.intents import MakePlan, PlacePods
from service.scheduler.protocol.plans import PlanStep, Rebalance, Search
from service.scheduler.replica.kinds import MoveReservation

_ASKED = PlacePods(dry_run=True)
_NO_ROOM = Kept("Unschedulable", "The node that was found for it does not take it now.")
_BESIDE = "\0moving"
"""Is added to the name of a pod that is on the fork twice, on its old and its new node."""


class Moving(NamedTuple):
    """What may move now, and what else is told of a look at a plan."""

    moves: Sequence[Move] = ()
    kept: Sequence[tuple[PodManifest, Kept]] = ()
    """Pods that were to move and cannot now, and why."""
    measured: Measured = ()
    """The objectives once the moves are made, those that are under way included."""


def next_moves(
    context: DecisionContext, search: Search, steps: Sequence[PlanStep]
) -> Steps[Moving]:
    """Find out which of the steps of a search may be taken now, at most as many as it asked for."""
    # Hints and events of what is only tried out are nobody's business.
    fork = Fork(replace(context, hints={}, events=[], budget_cache=None))
    judge = _Judge(fork, search)
    yield from judge.begin(steps)
    for _, wave in groupby(steps, key=lambda each: each.wave):
        yield from judge.look(list(wave))
    measured = yield from judge.measured()
    yield from fork.restore()
    return Moving(judge.moves, judge.kept, measured)


def measure(context: DecisionContext, goal: Rebalance) -> Steps[Measured]:
    """Return the objectives as they are, with all moves that are under way made."""
    fork = Fork(replace(context, hints={}, events=[], budget_cache=None))
    yield from arrive(fork)
    measured = yield from Rebalancing(fork, MakePlan(goal=goal), goal).measured()
    yield from fork.restore()
    return measured


def arrive(fork: Fork) -> Steps[None]:
    """Have what comes in place of pods that are moved come on a fork, where room is kept for it."""
    for each in _under_way(fork):
        replica = fork.replica
        stored = replica.pod(each.namespace, each.name)
        if stored is None or stored.pod.terminating:
            replica.put(replace(each.pod, pod=_placed(each.pod.pod, each.node_name)))
        give_up(replica, each)
        yield from fork.pause()


def _under_way(fork: Fork) -> list[MoveReservation]:
    """Return the moves that are under way to nodes that are there."""
    replica = fork.replica
    return [
        each
        for each in reservations_in(replica)
        if not each.came_to and replica.cluster.node(each.node_name) is not None
    ]


class _Judge:
    """Tries waves out on a fork, one on top of the other."""

    def __init__(self, fork: Fork, search: Search) -> None:
        self._fork = fork
        self._search = search
        cluster = fork.replica.cluster
        self._allowances = Allowances(cluster)
        self._rules = BrokenRules(cluster)
        intent = MakePlan(goal=search.goal, bounds=search.bounds)
        self._objectives = Rebalancing(fork, intent, search.goal)
        self.moves: list[Move] = []
        self.kept: list[tuple[PodManifest, Kept]] = []

    def begin(self, steps: Sequence[PlanStep]) -> Steps[None]:
        """Have the moves that are under way be at both of their nodes, and note which rules are broken then.

        What budgets allow is noted before, while whoever is leaving is not followed by anybody.
        """
        self._allowances.look(each.pod for each in self._pods(steps))
        for each in _under_way(self._fork):
            cluster = self._fork.replica.cluster
            cluster.put_pod(_beside(_placed(each.pod.pod, each.node_name)))
            cluster.reserve(each.pod.pod, None)
            yield
        yield from self._rules.look()

    def measured(self) -> Steps[Measured]:
        """Return the objectives on the fork."""
        return (yield from self._objectives.measured())

    def look(self, wave: Sequence[PlanStep]) -> Steps[None]:
        """Make the moves of a wave on the fork, if they may be made now; else note why not."""
        pods = list(self._pods(wave))
        if len(pods) != len(wave) or len(self.moves) + len(wave) > (
            self._search.goal.moves_max or 0
        ):
            return
        start = self._fork.try_out()
        before = yield from self.measured()
        kept = yield from self._moved(pods, wave)
        if kept is None and (yield from self.measured()) >= before:
            yield from self._fork.take_back(start)
            return
        if kept is not None:
            yield from self._fork.take_back(start)
            self.kept += [(each, kept) for each in pods]
            return
        self._allowances.take([each.pod for each in pods])
        self.moves += [Move(each, step.to or "") for each, step in zip(pods, wave, strict=True)]
        for each in pods:  # Whoever leaves has its room until it is gone.
            leaving = replace(each.pod, terminating=True)
            self._fork.replica.cluster.put_pod(_beside(leaving))

    def _pods(self, wave: Sequence[PlanStep]) -> Iterator[PodManifest]:
        """Yield the pods of a wave that are where they were, and may leave by themselves."""
        for step in wave:
            found = self._fork.replica.pod(step.namespace or "", step.name)
            if found is None or found.pod.node_name != step.from_node or found.pod.finished:
                continue
            if any(each.group is None for each in units_of([found])):
                yield found

    def _moved(self, pods: Sequence[PodManifest], wave: Sequence[PlanStep]) -> Steps[Kept | None]:
        """Move pods to the nodes of a wave, or say why they do not; then the fork has to be taken back."""
        if any(is_protected(each.pod, self._search.bounds.protect) for each in pods):
            return PROTECTED
        budget = self._allowances.blocking([each.pod for each in pods])
        if budget is not None:
            return kept_by_budget(budget)
        cluster = self._fork.replica.cluster
        classes = {cluster.class_of(each.pod) for each in pods}
        left = [unbound(each) for each in pods]
        for each in left:
            self._fork.replica.put(each)
        for each, step in zip(left, wave, strict=True):
            if cluster.node(step.to or "") is None:
                return _NO_ROOM
            self._fork.context.remember(each.namespace, each.name, step.to or "")
            result = place_pod(self._fork.context, _ASKED, Candidate(each, each))
            yield from self._fork.step()
            if result.node_name != step.to:
                return _NO_ROOM
        broken = yield from self._rules.newly_broken(classes)
        if broken:
            return breaking(broken[0], {each.namespace for each in pods})
        return None


def _placed(pod: Pod, node_name: str) -> Pod:
    return replace(pod, node_name=node_name, terminating=False)


def _beside(pod: Pod) -> Pod:
    return replace(pod, name=pod.name + _BESIDE)
