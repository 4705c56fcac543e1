"""The next moves of a stored rebalancing plan, rechecked on the current state.

The search for moves runs in parallel with placements, so its state may be outdated when moves are
made. Each wave is therefore tried again: its pods must be unmoved, their new nodes must have room
in addition to all leaving pods, budgets must allow the moves, no rule may break, and the objectives
must improve. Waves that fail are dropped, and the next search plans again.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from msgspec.structs import replace

from service.model.pods.pod import Pod
from service.model.registry.manifests import PodManifest
from service.scheduler.decide.context import DecisionContext, Steps
from service.scheduler.decide.disruption_budgets import Allowances
from service.scheduler.decide.move_reservations import give_up, reservations_in
from service.scheduler.decide.placing.pod_placement import Candidate, place_pod
from service.scheduler.plans.bounds import is_protected
from service.scheduler.plans.broken_rules import BrokenRules
from service.scheduler.plans.drained_pods import units_of
from service.scheduler.plans.fork import Fork
from service.scheduler.plans.rebalance.objectives import objective_totals
from service.scheduler.plans.waves import (
    PROTECTED,
    Blocked,
    Move,
    blocked_by_budget,
    blocked_by_rule,
)
from service.scheduler.protocol.intents import PlacePods
from service.scheduler.protocol.plans import PlanStep, Rebalance, Search
from service.scheduler.replica.stored_kinds import MoveReservation

_ASKED = PlacePods(dry_run=True)
_NO_ROOM = Blocked("Unschedulable", "The node that was found for it does not take it now.")
_BESIDE = "\0moving"
"""A name suffix for a pod that is on the fork twice, on its old and its new node."""


Measured = tuple[tuple[int, ...], ...]
"""The value of each objective, with any tie-break; lower is better."""


class Moves(NamedTuple):
    """The pods that move now, and those that cannot."""

    moves: Sequence[Move] = ()
    blocked: Sequence[tuple[PodManifest, Blocked]] = ()
    """The pods that should move but currently cannot, with reasons."""


def next_moves(context: DecisionContext, search: Search, steps: Sequence[PlanStep]) -> Steps[Moves]:
    """Return the steps found by a search that can be taken now, at most as many as requested.

    No step is returned if all together no longer improve the objectives. A wave that makes room for
    others may be taken before the others are possible.
    """
    fork = Fork(context.speculative())
    waves = yield from _worthwhile(fork, search.goal, steps)
    yield from fork.restore()
    if not waves:
        return Moves()
    fork = Fork(context.speculative())
    judge = _Judge(fork, search)
    yield from judge.begin(waves)
    for wave in waves:
        yield from judge.try_wave(wave)
    yield from fork.restore()
    return Moves(judge.moves, judge.blocked)


def measure(context: DecisionContext, goal: Rebalance) -> Steps[Measured]:
    """Return the objectives' values as if all moves in progress were complete."""
    fork = Fork(context.speculative())
    yield from arrive(fork)
    measured = yield from _measured(fork, goal)
    yield from fork.restore()
    return measured


def _measured(fork: Fork, goal: Rebalance) -> Steps[Measured]:
    totals = yield from objective_totals(fork, goal)
    return tuple(
        tuple(
            sum(values.values()) for values in (total.value, total.tie_break) if values is not None
        )
        for total in totals
    )


def _worthwhile(
    fork: Fork, goal: Rebalance, steps: Sequence[PlanStep]
) -> Steps[list[list[PlanStep]]]:
    """Return the waves that can be made in sequence, if they improve the objectives."""
    yield from arrive(fork)
    before = yield from _measured(fork, goal)
    made = []
    for _, wave_steps in groupby(steps, key=lambda step: step.wave):
        wave = list(wave_steps)
        pods = list(_pods(fork, wave))
        start = fork.try_out()
        if len(pods) == len(wave) and (yield from _placed_anew(fork, pods, wave)):
            made.append(wave)
        else:
            yield from fork.take_back(start)
    better = made and (yield from _measured(fork, goal)) < before
    return made if better else []


def _pods(fork: Fork, steps: Iterable[PlanStep]) -> Iterator[PodManifest]:
    """Yield the pods that are still on their source node and can be evicted without their group."""
    for step in steps:
        pod = fork.replica.pod(step.namespace or "", step.name)
        if pod is None or pod.pod.node_name != step.from_node or pod.pod.finished:
            continue
        if any(unit.group is None for unit in units_of([pod])):
            yield pod


def _placed_anew(fork: Fork, pods: Sequence[PodManifest], wave: Sequence[PlanStep]) -> Steps[bool]:
    """Move pods together to the nodes of their steps; return whether all got their nodes."""
    cluster = fork.replica.cluster
    unbound_pods = [pod.without_node() for pod in pods]
    for pod in unbound_pods:
        fork.replica.put(pod)
    for pod, step in zip(unbound_pods, wave, strict=True):
        if cluster.node(step.to or "") is None:
            return False
        fork.context.remember(pod.namespace, pod.name, step.to or "")
        result = place_pod(fork.context, _ASKED, Candidate(pod, pod))
        yield from fork.step()
        if result.node_name != step.to:
            return False
    return True


def arrive(fork: Fork) -> Steps[None]:
    """Complete the moves in progress on a fork: place replacements in their reserved room."""
    for reservation in _under_way(fork):
        replica = fork.replica
        stored = replica.pod(reservation.namespace, reservation.name)
        if stored is None or stored.pod.terminating:
            replica.put(
                replace(reservation.pod, pod=_placed(reservation.pod.pod, reservation.node_name))
            )
        give_up(replica, reservation)
        yield from fork.pause()


def _under_way(fork: Fork) -> list[MoveReservation]:
    """Return the moves in progress to existing nodes."""
    replica = fork.replica
    return [
        reservation
        for reservation in reservations_in(replica)
        if not reservation.came_to and replica.cluster.node(reservation.node_name) is not None
    ]


class _Judge:
    """Tries waves on a fork, one on top of another, while leaving pods keep their room."""

    def __init__(self, fork: Fork, search: Search) -> None:
        self._fork = fork
        self._most = search.goal.moves_max or 0
        self._protect = search.bounds.protect
        self._allowances = Allowances(fork.replica.cluster)
        self._rules = BrokenRules(fork.replica.cluster)
        self.moves: list[Move] = []
        self.blocked: list[tuple[PodManifest, Blocked]] = []

    def begin(self, waves: Iterable[Sequence[PlanStep]]) -> Steps[None]:
        """Place moving pods on both their nodes, and record which rules are broken in that state.

        Budgets are recorded first, before leaving pods have replacements.
        """
        for wave in waves:
            self._allowances.observe(pod.pod for pod in _pods(self._fork, wave))
        for reservation in _under_way(self._fork):
            cluster = self._fork.replica.cluster
            cluster.put_pod(_beside(_placed(reservation.pod.pod, reservation.node_name)))
            cluster.reserve(reservation.pod.pod, None)
            yield
        yield from self._rules.observe()

    def try_wave(self, wave: Sequence[PlanStep]) -> Steps[None]:
        """Make a wave's moves on the fork if possible now, or else record why not."""
        pods = list(_pods(self._fork, wave))
        if len(pods) != len(wave) or len(self.moves) + len(wave) > self._most:
            return
        start = self._fork.try_out()
        reason = yield from self._moved(pods, wave)
        if reason is not None:
            yield from self._fork.take_back(start)
            self.blocked += [(pod, reason) for pod in pods]
            return
        self._allowances.take([pod.pod for pod in pods])
        self.moves += [Move(pod, step.to or "") for pod, step in zip(pods, wave, strict=True)]
        for pod in pods:
            leaving = replace(pod.pod, terminating=True)
            self._fork.replica.cluster.put_pod(_beside(leaving))

    def _moved(
        self, pods: Sequence[PodManifest], wave: Sequence[PlanStep]
    ) -> Steps[Blocked | None]:
        """Move pods to a wave's nodes, or return what blocks them; the caller restores the fork."""
        if any(is_protected(pod.pod, self._protect) for pod in pods):
            return PROTECTED
        budget = self._allowances.blocking([pod.pod for pod in pods])
        if budget is not None:
            return blocked_by_budget(budget)
        classes = {self._fork.replica.cluster.class_of(pod.pod) for pod in pods}
        if not (yield from _placed_anew(self._fork, pods, wave)):
            return _NO_ROOM
        broken = yield from self._rules.newly_broken(classes)
        if broken:
            return blocked_by_rule(broken[0], {pod.namespace for pod in pods})
        return None


def _placed(pod: Pod, node_name: str) -> Pod:
    return replace(pod, node_name=node_name, terminating=False)


def _beside(pod: Pod) -> Pod:
    return replace(pod, name=pod.name + _BESIDE)
