"""Moves pods off nodes in waves, tried out on a fork.

The pods of a wave are evicted at once, and their replacements are placed before the next wave
begins. No wave evicts more pods than disruption budgets allow or leaves a newly broken rule behind.
A leaving pod frees its room at once, so no pod occupies two nodes.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from msgspec import UNSET
from msgspec.structs import replace

from service.engine.placing.signature import pod_signature
from service.engine.rules.violations import Violation
from service.engine.state.pods.classes import PodClass
from service.model.plans.plan import ProtectedPods
from service.model.registry.manifests import PodManifest
from service.scheduler.decide.context import Steps
from service.scheduler.decide.disruption_budgets import Allowances
from service.scheduler.decide.placing.placement_request import place_one_by_one
from service.scheduler.decide.placing.pod_placement import Candidate, place_pod
from service.scheduler.decide.status.references import pod_named
from service.scheduler.plans.bounds import is_protected
from service.scheduler.plans.broken_rules import AffectedPods, BrokenRules
from service.scheduler.plans.drained_pods import DrainUnit
from service.scheduler.plans.fork import Fork
from service.scheduler.protocol.intents import PlacePods
from service.scheduler.protocol.placements import PlacementResult
from service.scheduler.protocol.plans import Unplaced
from service.scheduler.replica.pod_groups import group_of
from service.scheduler.replica.replica import Mark

_COMES_BACK = "It tolerates that its node takes no new pods, so it would come back there."
_ASKED = PlacePods(dry_run=True)


class Move(NamedTuple):
    """A pod that leaves its node, and the node of its replacement."""

    pod: PodManifest
    to: str


class Blocked(NamedTuple):
    """Why pods do not leave their nodes."""

    reason: str
    message: str
    budget: str | None = None
    """The disruption budget that forbids the move, or None."""


PROTECTED = Blocked("Protected", "The plan's bounds say that it stays where it is.")
MOVES_OVER = Blocked("MovesMax", "It was not tried: `movesMax` was reached.")
EVICTIONS_OVER = Blocked("EvictionsMax", "It was not tried: `evictionsMax` was reached.")


def unplaced_pod(pod: PodManifest, reason: Blocked) -> Unplaced:
    """Return the result of a pod that stays on its node or gets none."""
    return Unplaced(
        namespace=pod.namespace,
        name=pod.name,
        from_node=pod.pod.node_name or UNSET,
        reason=reason.reason,
        message=reason.message,
    )


class MoveLimits(NamedTuple):
    """The limits on moving, and the protected pods."""

    moves_max: int | None = None
    over: Blocked = MOVES_OVER
    """The reason reported for pods that do not move because of the limit."""
    protect: ProtectedPods | None = None
    first_whole: bool = False
    """Whether the first unit moves even if it alone exceeds the limit."""
    is_late: Callable[[], bool] = bool


class Waves:
    """Moves units off nodes, wave by wave, leaving the fork in the state after the last wave."""

    def __init__(
        self, fork: Fork, nodes: frozenset[str], units: Sequence[DrainUnit], limited: MoveLimits
    ) -> None:
        self._fork = fork
        self._nodes = nodes
        self._limited = limited
        self._moves_left = limited.moves_max
        self._allowances = Allowances(fork.replica.cluster)
        self._rules = BrokenRules(fork.replica.cluster)
        self._refused: dict[object, Blocked] = {}
        """Why single pods were refused since the fork last changed, by signature."""
        self._apart: set[DrainUnit] = set()
        """The units that move individually, because they broke a rule together with others."""
        self.waiting = list(units)
        """The units that have not moved."""
        self.blocked: dict[DrainUnit, Blocked] = {}
        """Why waiting units have not moved, if they were tried."""

    def reserve_room(self, leaving: Iterable[PodManifest]) -> Steps[None]:
        """Place the replacements of leaving pods, so that other pods do not take their room."""
        self._allowances.observe(pod.pod for unit in self.waiting for pod in unit.pods)
        for pod in leaving:
            if group_of(pod) is None:
                start = self._fork.try_out()
                unbound_pod = pod.without_node()
                unbound_pod = replace(unbound_pod, pod=replace(unbound_pod.pod, terminating=False))
                self._fork.replica.put(unbound_pod)
                result = place_pod(self._fork.context, _ASKED, Candidate(unbound_pod, unbound_pod))
                if result.node_name is None:
                    self._fork.replica.undo(start)
                yield from self._fork.step()

    def next_wave(self) -> Steps[list[Move]]:
        """Move as many units as possible at once; return no moves if none can move."""
        moves = yield from self._many_at_once()
        return moves or (yield from self._one())

    def _many_at_once(self) -> Steps[list[Move]]:
        start = self._fork.try_out()
        while units := [unit for unit in self.waiting if unit not in self._apart]:
            moved, moves = yield from self._move(units)
            if not moves:
                return []
            broken = yield from self._broken_by(moves, start)
            if broken is None:
                continue
            if not broken:
                self._accept(moved)
                return moves
            self._apart.update(self._concerned(broken, moved))
        return []

    def _one(self) -> Steps[list[Move]]:
        """Move the first of the individually moving units whose move breaks no rule."""
        for unit in [unit for unit in self.waiting if unit in self._apart]:
            start = self._fork.try_out()
            moved, moves = yield from self._move([unit])
            broken = yield from self._broken_by(moves, start)
            if broken is None:  # It is known now; the fork is unchanged.
                moved, moves = yield from self._move([unit])
                broken = yield from self._broken_by(moves, start)
            if broken:
                self.blocked[unit] = blocked_by_rule(
                    broken[0], {pod.namespace for pod in unit.pods}
                )
            elif moves:
                self._accept(moved)
                return moves
        return []

    def _broken_by(self, moves: Sequence[Move], start: Mark) -> Steps[list[Violation] | None]:
        """Return the rules broken by moves, after taking the moves back if there are any.

        Returns None if the previously broken rules were unknown; the moves then have to be
        repeated.
        """
        broken = []
        if moves:
            broken = yield from self._rules.newly_broken(self._classes(moves))
        if not broken:
            return []
        yield from self._take_back(start, len(moves))
        if self._rules.observed:
            return broken
        yield from self._rules.observe()
        return None

    def _move(self, units: Sequence[DrainUnit]) -> Steps[tuple[list[DrainUnit], list[Move]]]:
        """Move all possible units, retrying those without a place after others have moved."""
        moved: list[DrainUnit] = []
        moves: list[Move] = []
        remaining, before = list(units), -1
        while remaining and len(moved) > before:
            before, failed = len(moved), []
            for unit in remaining:
                moves_or_reason = yield from self._try(unit)
                if isinstance(moves_or_reason, Blocked):
                    self.blocked[unit] = moves_or_reason
                    if moves_or_reason.budget is None:
                        failed.append(unit)
                else:
                    moved.append(unit)
                    moves += moves_or_reason
            remaining = failed
        return moved, moves

    def _try(self, unit: DrainUnit) -> Steps[list[Move] | Blocked]:
        if self._limited.is_late():
            return Blocked("SecondsOver", "It was not tried: the plan's time was over.")
        pods = [pod.pod for pod in unit.pods]
        if any(is_protected(pod, self._limited.protect) for pod in pods):
            return PROTECTED
        if self._exceeds(unit):
            return self._limited.over
        budget = self._allowances.blocking(pods)
        if budget is not None:
            return blocked_by_budget(budget)
        moves_or_reason = yield from self._place(unit)
        if not isinstance(moves_or_reason, Blocked):
            self._refused.clear()
            self._allowances.take(pods)
            if self._moves_left is not None:
                self._moves_left -= len(pods)
        return moves_or_reason

    def _exceeds(self, unit: DrainUnit) -> bool:
        limited = self._limited
        if self._moves_left is None or (
            limited.first_whole and self._moves_left == limited.moves_max
        ):
            return False
        return len(unit.pods) > self._moves_left

    def _place(self, unit: DrainUnit) -> Steps[list[Move] | Blocked]:
        """Find nodes for a unit's pods as if they had left, or restore the fork."""
        if self._refused and unit.group is None:
            known = self._refused.get(self._verdict_key(unit))
            if known is not None:
                return known
        start = self._fork.try_out()
        results = yield from self._placed(unit)
        reason = next((k for k in map(self._blocked_by, results) if k is not None), None)
        if reason is None:
            yield from self._fork.step()
            return [
                Move(pod, result.node_name or "")
                for pod, result in zip(unit.pods, results, strict=True)
            ]
        self._fork.replica.undo(start)
        if unit.group is None and reason.message != _COMES_BACK:
            self._refused[self._verdict_key(unit)] = reason
        yield
        return reason

    def _verdict_key(self, unit: DrainUnit) -> object:
        """Return a key shared by single pods of a node with equal results.

        Pods of different nodes differ, since each is placed as if it had left its own node.
        """
        pod = unit.pods[0].pod
        return pod.node_name, pod_signature(
            self._fork.replica.cluster, unit.pods[0].without_node().pod
        )

    def _placed(self, unit: DrainUnit) -> Steps[list[PlacementResult]]:
        context = self._fork.context
        unbound_pods = [pod.without_node() for pod in unit.pods]
        for pod in unbound_pods:
            context.replica.put(pod)
        candidates = [Candidate(pod, pod) for pod in unbound_pods]
        if unit.group is None:
            return [place_pod(context, _ASKED, candidates[0])]
        answer = yield from place_one_by_one(context, _ASKED, candidates)
        return list(answer.results)

    def _blocked_by(self, result: PlacementResult) -> Blocked | None:
        if result.node_name is None:
            return Blocked(result.reason or result.outcome, result.message or "")
        if result.node_name in self._nodes:
            return Blocked("Unschedulable", _COMES_BACK)
        return None

    def _accept(self, moved: Iterable[DrainUnit]) -> None:
        moved_units = set(moved)
        self._allowances.renew()
        self.waiting = [unit for unit in self.waiting if unit not in moved_units]
        for unit in moved_units:
            self.blocked.pop(unit, None)

    def _take_back(self, start: Mark, moves: int) -> Steps[None]:
        yield from self._fork.take_back(start)
        self._refused.clear()
        self._allowances.give_back()
        if self._moves_left is not None:
            self._moves_left += moves

    def _classes(self, moves: Iterable[Move]) -> set[PodClass]:
        cluster = self._fork.replica.cluster
        return {cluster.class_of(move.pod.pod) for move in moves}

    def _concerned(
        self, broken: Sequence[Violation], moved: Sequence[DrainUnit]
    ) -> list[DrainUnit]:
        """Return the units that may have broken a rule, or all of them if unclear."""
        cluster = self._fork.replica.cluster
        owners = {cluster.class_of(violation.pod).template for violation in broken}
        concerned = [
            unit
            for unit in moved
            if any(map(AffectedPods({cluster.class_of(p.pod) for p in unit.pods}).are_of, owners))
        ]
        return concerned or list(moved)


def blocked_by_budget(budget: str) -> Blocked:
    """Return the reason that a disruption budget in the pods' namespace blocks a move."""
    message = f"The disruption budget {budget} does not allow that it leaves."
    return Blocked("DisruptionBudget", message, budget)


def blocked_by_rule(violation: Violation, namespaces: set[str]) -> Blocked:
    """Return the reason that a rule, which would break without the pods, blocks a move."""
    pod = violation.pod
    owner = pod_named(pod.namespace, pod.name, namespaces)
    return Blocked(
        "BreaksRule", f"If it left, {violation.breach.rule.path} of {owner} would not hold."
    )
