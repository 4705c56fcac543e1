"""Moving pods off nodes in waves, tried out on a fork.

The pods of a wave leave at once, and those that come in their place have their nodes before the
next wave begins. No disruption budget allows less than a wave takes, and after it no rule is broken
that was not broken before. A pod that leaves frees its room at once, so nothing is there twice.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from msgspec import UNSET
from msgspec.structs import replace

from service.engine.placing.signature import pod_signature
from service.engine.rules.violations import Violation
from service.engine.state.pods.classes import PodClass
from service.model.manifests.manifest import PodManifest
from service.model.plans.plans import ProtectedPods
from service.scheduler.decide.context import Steps
from service.scheduler.decide.disruption_budgets import Allowances
from service.scheduler.decide.placing.placement_request import place_one_by_one
from service.scheduler.decide.placing.pod_placement import Candidate, place_pod
from service.scheduler.decide.status.references import pod_named
from service.scheduler.plans.broken_rules import AffectedPods, BrokenRules
from service.scheduler.plans.changes import unbound
from service.scheduler.plans.drained_pods import DrainUnit
from service.scheduler.plans.fork import Fork
from service.scheduler.plans.protected_pods import is_protected
from service.scheduler.protocol.intents import PlacePods
from service.scheduler.protocol.placements import PlacementResult
from service.scheduler.protocol.plans import Unplaced
from service.scheduler.replica.pod_groups import group_of
from service.scheduler.replica.replica import Mark

_COMES_BACK = "It tolerates that its node takes no new pods, so it would come back there."
_ASKED = PlacePods(dry_run=True)


class Move(NamedTuple):
    """A pod that leaves its node, and the node of the one that comes in its place."""

    pod: PodManifest
    to: str


class Kept(NamedTuple):
    """Why pods do not leave their nodes."""

    reason: str
    message: str
    budget: str | None = None
    """The disruption budget that does not allow it."""


PROTECTED = Kept("Protected", "The plan's bounds say that it stays where it is.")
MOVES_OVER = Kept("MovesMax", "It was not tried: `movesMax` was reached.")
EVICTIONS_OVER = Kept("EvictionsMax", "It was not tried: `evictionsMax` was reached.")


def told_of(pod: PodManifest, kept: Kept) -> Unplaced:
    """Say of a pod that it stays where it is, or gets no node, and why."""
    return Unplaced(
        namespace=pod.namespace,
        name=pod.name,
        from_node=pod.pod.node_name or UNSET,
        reason=kept.reason,
        message=kept.message,
    )


class Limited(NamedTuple):
    """What ends moving before all is tried, and who does not move."""

    moves_max: int | None = None
    over: Kept = MOVES_OVER
    """What is told of pods that do not move as so many have moved."""
    protect: ProtectedPods | None = None
    first_whole: bool = False
    """Whether the first unit moves even if it alone has more pods than may move."""
    is_late: Callable[[], bool] = bool


class Waves:
    """Moves units off nodes, wave by wave; the fork is then as it is after the last wave."""

    def __init__(
        self, fork: Fork, nodes: frozenset[str], units: Sequence[DrainUnit], limited: Limited
    ) -> None:
        self._fork = fork
        self._nodes = nodes
        self._limited = limited
        self._moves_left = limited.moves_max
        self._allowances = Allowances(fork.replica.cluster)
        self._rules = BrokenRules(fork.replica.cluster)
        self._refused: dict[object, Kept] = {}
        """What was said of single pods that were refused since the fork last changed, by verdict."""
        self._apart: set[DrainUnit] = set()
        """The units that move one at a time, as with others they have broken a rule."""
        self.waiting = list(units)
        """The units that have not moved."""
        self.kept: dict[DrainUnit, Kept] = {}
        """Why they have not, as far as it was tried."""

    def keep_room(self, leaving: Iterable[PodManifest]) -> Steps[None]:
        """Place what will come in place of pods that leave already, so that others do not take its room."""
        self._allowances.look(pod.pod for unit in self.waiting for pod in unit.pods)
        for each in leaving:
            if group_of(each) is None:
                start = self._fork.try_out()
                left = unbound(each)
                left = replace(left, pod=replace(left.pod, terminating=False))
                self._fork.replica.put(left)
                found = place_pod(self._fork.context, _ASKED, Candidate(left, left))
                if found.node_name is None:
                    self._fork.replica.undo(start)
                yield from self._fork.step()

    def next_wave(self) -> Steps[list[Move]]:
        """Move as many units as may move at once; none if there are none that can."""
        moves = yield from self._many_at_once()
        return moves or (yield from self._one())

    def _many_at_once(self) -> Steps[list[Move]]:
        start = self._fork.try_out()
        while units := [each for each in self.waiting if each not in self._apart]:
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
        """Move the first of the units that move one at a time and break no rule by that."""
        for unit in [each for each in self.waiting if each in self._apart]:
            start = self._fork.try_out()
            moved, moves = yield from self._move([unit])
            broken = yield from self._broken_by(moves, start)
            if broken is None:  # Now it is known; the fork is as it was.
                moved, moves = yield from self._move([unit])
                broken = yield from self._broken_by(moves, start)
            if broken:
                self.kept[unit] = breaking(broken[0], {each.namespace for each in unit.pods})
            elif moves:
                self._accept(moved)
                return moves
        return []

    def _broken_by(self, moves: Sequence[Move], start: Mark) -> Steps[list[Violation] | None]:
        """Return the rules that moves have broken, and take the moves back if there are any.

        None: it was not known which rules had been broken before; the moves have to be made again.
        """
        broken = []
        if moves:
            broken = yield from self._rules.newly_broken(self._classes(moves))
        if not broken:
            return []
        yield from self._take_back(start, len(moves))
        if self._rules.looked:
            return broken
        yield from self._rules.look()
        return None

    def _move(self, units: Sequence[DrainUnit]) -> Steps[tuple[list[DrainUnit], list[Move]]]:
        """Move what can be moved; who has found no place tries again after others have moved."""
        moved: list[DrainUnit] = []
        moves: list[Move] = []
        left, before = list(units), -1
        while left and len(moved) > before:
            before, failed = len(moved), []
            for unit in left:
                found = yield from self._try(unit)
                if isinstance(found, Kept):
                    self.kept[unit] = found
                    if found.budget is None:
                        failed.append(unit)
                else:
                    moved.append(unit)
                    moves += found
            left = failed
        return moved, moves

    def _try(self, unit: DrainUnit) -> Steps[list[Move] | Kept]:
        if self._limited.is_late():
            return Kept("SecondsOver", "It was not tried: the plan's time was over.")
        pods = [each.pod for each in unit.pods]
        if any(is_protected(each, self._limited.protect) for each in pods):
            return PROTECTED
        if self._exceeds(unit):
            return self._limited.over
        budget = self._allowances.blocking(pods)
        if budget is not None:
            return kept_by_budget(budget)
        found = yield from self._place(unit)
        if not isinstance(found, Kept):
            self._refused.clear()
            self._allowances.take(pods)
            if self._moves_left is not None:
                self._moves_left -= len(pods)
        return found

    def _exceeds(self, unit: DrainUnit) -> bool:
        limited = self._limited
        if self._moves_left is None or (
            limited.first_whole and self._moves_left == limited.moves_max
        ):
            return False
        return len(unit.pods) > self._moves_left

    def _place(self, unit: DrainUnit) -> Steps[list[Move] | Kept]:
        """Find nodes for all pods of a unit, as if they had left, or leave the fork as it was."""
        if self._refused and unit.group is None:
            known = self._refused.get(self._verdict_key(unit))
            if known is not None:
                return known
        start = self._fork.try_out()
        results = yield from self._placed(unit)
        kept = next((k for k in map(self._kept_by, results) if k is not None), None)
        if kept is None:
            yield from self._fork.step()
            return [
                Move(each, result.node_name or "")
                for each, result in zip(unit.pods, results, strict=True)
            ]
        self._fork.replica.undo(start)
        if unit.group is None and kept.message != _COMES_BACK:
            self._refused[self._verdict_key(unit)] = kept
        yield
        return kept

    def _verdict_key(self, unit: DrainUnit) -> object:
        """Return a key that is equal for single pods of which the same is true: those of one node.

        Without its pod, another node leaves other counts behind.
        """
        pod = unit.pods[0].pod
        return pod.node_name, pod_signature(self._fork.replica.cluster, unbound(unit.pods[0]).pod)

    def _placed(self, unit: DrainUnit) -> Steps[list[PlacementResult]]:
        context = self._fork.context
        left = [unbound(each) for each in unit.pods]
        for each in left:
            context.replica.put(each)
        candidates = [Candidate(each, each) for each in left]
        if unit.group is None:
            return [place_pod(context, _ASKED, candidates[0])]
        answer = yield from place_one_by_one(context, _ASKED, candidates)
        return list(answer.results)

    def _kept_by(self, result: PlacementResult) -> Kept | None:
        if result.node_name is None:
            return Kept(result.reason or result.outcome, result.message or "")
        if result.node_name in self._nodes:
            return Kept("Unschedulable", _COMES_BACK)
        return None

    def _accept(self, moved: Iterable[DrainUnit]) -> None:
        gone = set(moved)
        self._allowances.renew()
        self.waiting = [each for each in self.waiting if each not in gone]
        for each in gone:
            self.kept.pop(each, None)

    def _take_back(self, start: Mark, moves: int) -> Steps[None]:
        yield from self._fork.take_back(start)
        self._refused.clear()
        self._allowances.give_back()
        if self._moves_left is not None:
            self._moves_left += moves

    def _classes(self, moves: Iterable[Move]) -> set[PodClass]:
        cluster = self._fork.replica.cluster
        return {cluster.class_of(each.pod.pod) for each in moves}

    def _concerned(
        self, broken: Sequence[Violation], moved: Sequence[DrainUnit]
    ) -> list[DrainUnit]:
        """Return the units that may have broken a rule; all if it cannot be told."""
        cluster = self._fork.replica.cluster
        owners = {cluster.class_of(each.pod).template for each in broken}
        found = [
            unit
            for unit in moved
            if any(map(AffectedPods({cluster.class_of(p.pod) for p in unit.pods}).are_of, owners))
        ]
        return found or list(moved)


def kept_by_budget(budget: str) -> Kept:
    """Say that a disruption budget, in the namespace of the pods, keeps them on their nodes."""
    message = f"The disruption budget {budget} does not allow that it leaves."
    return Kept("DisruptionBudget", message, budget)


def breaking(violation: Violation, namespaces: set[str]) -> Kept:
    """Say that a rule keeps pods in some namespaces where they are: without them it would be broken."""
    pod = violation.pod
    owner = pod_named(pod.namespace, pod.name, namespaces)
    return Kept(
        "BreaksRule", f"If it left, {violation.breach.rule.path} of {owner} would not hold."
    )
