"""The next moves of a plan that rebalances and is carried out: judged anew on the state of now.

What to move is searched beside placements, on a state that may be over when the moves are made. So
each wave is tried out once more: its pods are where they were, their new nodes take them although
all pods that are leaving still have their room, budgets allow it as things are, no rule is broken,
and the objectives are better. A wave of which that is not true any more is left out; the next
search plans it anew, or something else.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from msgspec.structs import replace

from service.model.manifests.manifest import PodManifest
from service.model.objects.pods_and_nodes import Pod
from service.scheduler.decide.context import DecisionContext, Steps
from service.scheduler.decide.disruption_budgets import Allowances
from service.scheduler.decide.move_reservations import give_up, reservations_in
from service.scheduler.decide.placing.pod_placement import Candidate, place_pod
from service.scheduler.plans.broken_rules import BrokenRules
from service.scheduler.plans.changes import unbound
from service.scheduler.plans.drained_pods import units_of
from service.scheduler.plans.fork import Fork
from service.scheduler.plans.protected_pods import is_protected
from service.scheduler.plans.rebalance.objectives import objective_totals
from service.scheduler.plans.waves import (
    PROTECTED,
    Kept,
    Move,
    breaking,
    kept_by_budget,
)
from service.scheduler.protocol.intents import PlacePods
from service.scheduler.protocol.plans import PlanStep, Rebalance, Search
from service.scheduler.replica.stored_kinds import MoveReservation

_ASKED = PlacePods(dry_run=True)
_NO_ROOM = Kept("Unschedulable", "The node that was found for it does not take it now.")
_BESIDE = "\0moving"
"""Is added to the name of a pod that is on the fork twice, on its old and its new node."""


Measured = tuple[tuple[int, ...], ...]
"""What each objective measures, and what decides between equal values if something does; less is better."""


class Moves(NamedTuple):
    """Which pods move now, and which cannot."""

    moves: Sequence[Move] = ()
    kept: Sequence[tuple[PodManifest, Kept]] = ()
    """Pods that were to move and cannot now, and why."""


def next_moves(context: DecisionContext, search: Search, steps: Sequence[PlanStep]) -> Steps[Moves]:
    """Find out which of the steps of a search may be taken now, at most as many as it asked for.

    None is, if all together do not make the objectives better any more. A wave that only makes way
    for others may be taken before these can.
    """
    fork = Fork(context.aside())
    waves = yield from _worthwhile(fork, search.goal, steps)
    yield from fork.restore()
    if not waves:
        return Moves()
    fork = Fork(context.aside())
    judge = _Judge(fork, search)
    yield from judge.begin(waves)
    for wave in waves:
        yield from judge.look(wave)
    yield from fork.restore()
    return Moves(judge.moves, judge.kept)


def measure(context: DecisionContext, goal: Rebalance) -> Steps[Measured]:
    """Return the objectives as they are, with all moves that are under way made."""
    fork = Fork(context.aside())
    yield from arrive(fork)
    measured = yield from _measured(fork, goal)
    yield from fork.restore()
    return measured


def _measured(fork: Fork, goal: Rebalance) -> Steps[Measured]:
    totals = yield from objective_totals(fork, goal)
    return tuple(
        tuple(sum(each.values()) for each in (total.value, total.tie_break) if each is not None)
        for total in totals
    )


def _worthwhile(
    fork: Fork, goal: Rebalance, steps: Sequence[PlanStep]
) -> Steps[list[list[PlanStep]]]:
    """Return the waves that can be made one after the other, if they make the objectives better."""
    yield from arrive(fork)
    before = yield from _measured(fork, goal)
    made = []
    for _, each in groupby(steps, key=lambda step: step.wave):
        wave = list(each)
        pods = list(_pods(fork, wave))
        start = fork.try_out()
        if len(pods) == len(wave) and (yield from _placed_anew(fork, pods, wave)):
            made.append(wave)
        else:
            yield from fork.take_back(start)
    better = made and (yield from _measured(fork, goal)) < before
    return made if better else []


def _pods(fork: Fork, steps: Iterable[PlanStep]) -> Iterator[PodManifest]:
    """Yield the pods of steps that are where they were, and may leave by themselves."""
    for step in steps:
        found = fork.replica.pod(step.namespace or "", step.name)
        if found is None or found.pod.node_name != step.from_node or found.pod.finished:
            continue
        if any(each.group is None for each in units_of([found])):
            yield found


def _placed_anew(fork: Fork, pods: Sequence[PodManifest], wave: Sequence[PlanStep]) -> Steps[bool]:
    """Have pods leave together, and come to the nodes of their steps; return whether all could."""
    cluster = fork.replica.cluster
    left = [unbound(each) for each in pods]
    for each in left:
        fork.replica.put(each)
    for each, step in zip(left, wave, strict=True):
        if cluster.node(step.to or "") is None:
            return False
        fork.context.remember(each.namespace, each.name, step.to or "")
        result = place_pod(fork.context, _ASKED, Candidate(each, each))
        yield from fork.step()
        if result.node_name != step.to:
            return False
    return True


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
    """Tries waves out on a fork, one on top of the other, while whoever leaves still has its room."""

    def __init__(self, fork: Fork, search: Search) -> None:
        self._fork = fork
        self._most = search.goal.moves_max or 0
        self._protect = search.bounds.protect
        self._allowances = Allowances(fork.replica.cluster)
        self._rules = BrokenRules(fork.replica.cluster)
        self.moves: list[Move] = []
        self.kept: list[tuple[PodManifest, Kept]] = []

    def begin(self, waves: Iterable[Sequence[PlanStep]]) -> Steps[None]:
        """Have the moves that are under way be at both of their nodes, and note which rules are broken then.

        What budgets allow is noted before, while whoever is leaving is not followed by anybody.
        """
        for wave in waves:
            self._allowances.look(each.pod for each in _pods(self._fork, wave))
        for each in _under_way(self._fork):
            cluster = self._fork.replica.cluster
            cluster.put_pod(_beside(_placed(each.pod.pod, each.node_name)))
            cluster.reserve(each.pod.pod, None)
            yield
        yield from self._rules.look()

    def look(self, wave: Sequence[PlanStep]) -> Steps[None]:
        """Make the moves of a wave on the fork, if they may be made now; else note why not."""
        pods = list(_pods(self._fork, wave))
        if len(pods) != len(wave) or len(self.moves) + len(wave) > self._most:
            return
        start = self._fork.try_out()
        kept = yield from self._moved(pods, wave)
        if kept is not None:
            yield from self._fork.take_back(start)
            self.kept += [(each, kept) for each in pods]
            return
        self._allowances.take([each.pod for each in pods])
        self.moves += [Move(each, step.to or "") for each, step in zip(pods, wave, strict=True)]
        for each in pods:
            leaving = replace(each.pod, terminating=True)
            self._fork.replica.cluster.put_pod(_beside(leaving))

    def _moved(self, pods: Sequence[PodManifest], wave: Sequence[PlanStep]) -> Steps[Kept | None]:
        """Move pods to the nodes of a wave, or say why they do not; then the fork has to be taken back."""
        if any(is_protected(each.pod, self._protect) for each in pods):
            return PROTECTED
        budget = self._allowances.blocking([each.pod for each in pods])
        if budget is not None:
            return kept_by_budget(budget)
        classes = {self._fork.replica.cluster.class_of(each.pod) for each in pods}
        if not (yield from _placed_anew(self._fork, pods, wave)):
            return _NO_ROOM
        broken = yield from self._rules.newly_broken(classes)
        if broken:
            return breaking(broken[0], {each.namespace for each in pods})
        return None


def _placed(pod: Pod, node_name: str) -> Pod:
    return replace(pod, node_name=node_name, terminating=False)


def _beside(pod: Pod) -> Pod:
    return replace(pod, name=pod.name + _BESIDE)
