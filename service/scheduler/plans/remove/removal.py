"""The goal that some of the selected pods go: those without which the others are left best.

No required rule of a pod that stays may be broken by it. Among the choices for which that is so,
pods without a node go first; then the topology spread constraints of the pods decide, then
preferences, then the order in which Kubernetes scales in.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from heapq import heapify, heappop, heappush
from math import comb
from typing import NamedTuple

from msgspec import UNSET

from service.engine.optimize.removal_costs import RemovalCosts
from service.engine.rules.violations import Violation
from service.engine.state.pods.classes import PodClass
from service.model.manifests.manifest import PodManifest
from service.scheduler.decide.context import Steps
from service.scheduler.decide.disruption_budgets import Allowances
from service.scheduler.plans.broken_rules import BrokenRules
from service.scheduler.plans.fork import Fork
from service.scheduler.plans.protected_pods import is_protected
from service.scheduler.plans.remove.order import RemovalOrder, removal_order_of
from service.scheduler.plans.selection import pods_of, refused
from service.scheduler.plans.waves import (
    EVICTIONS_OVER,
    PROTECTED,
    Kept,
    breaking,
    kept_by_budget,
    told_of,
)
from service.scheduler.protocol.intents import MakePlan
from service.scheduler.protocol.plans import PlanStep, Remove, Unplaced

CHOICES_MAX = 1_000
"""If there are at most so many choices, all are compared; else pods are chosen one after the other."""
_STEP_LOOKS = 200
_NO_NODE = "it has no node"
_LEAST = "the others are left best without it"
_NOT_TRIED = Kept("SecondsOver", "It was not tried: the plan's time was over.")

Cost = tuple[int, int, int]
"""Pods that have a node, and what the removal costs spread and preferences: the less, the better."""
NOTHING: Cost = (0, 0, 0)


class _Option(NamedTuple):
    """A pod that may go."""

    order: RemovalOrder
    pod: PodManifest


_Next = tuple[tuple[Cost, RemovalOrder], list[_Option]]
"""Equal pods, the first of which goes next, with what that costs."""


class _Choice(NamedTuple):
    """Pods that may go together, with what that costs."""

    cost: Cost
    orders: tuple[RemovalOrder, ...]
    options: tuple[_Option, ...]


class Removals:
    """Removes pods on a fork, and gathers the steps, and why others had to stay if too few went."""

    def __init__(self, fork: Fork, intent: MakePlan, goal: Remove) -> None:
        self._fork = fork
        self._intent = intent
        self._goal = goal
        self._rules = BrokenRules(fork.replica.cluster)
        self._allowances = Allowances(fork.replica.cluster)
        self._kept: dict[RemovalOrder, Kept] = {}
        self.steps: list[PlanStep] = []
        self.unplaced: list[Unplaced] = []

    @property
    def complete(self) -> bool:
        """Whether as many pods go as are to go."""
        return len(self.steps) >= self._goal.count

    def remove(self) -> Steps[None]:
        """Choose the pods and remove them.

        Raises:
            NotFound, Forbidden: a pod that is named is not there, or in a namespace of others.
            InvalidManifest: more pods are selected than one plan may be about.
        """
        found = yield from pods_of(self._fork, self._goal.pods, self._intent.caller)
        active = [each for each in found if not each.pod.terminating and not each.pod.finished]
        most = self._fork.context.limits.plan_pods_max
        if len(active) > most:
            raise refused("selector", f"selects {len(active)} pods, over the limit of {most}")
        yield from self._rules.look()
        self._allowances.look(each.pod for each in active)
        options = _options(active)
        self._costs = RemovalCosts(self._fork.replica.cluster, set(map(self._class_of, options)))
        chosen = yield from self._chosen(options)
        self.steps = [_removed(each.pod) for each in sorted(chosen, key=_order)]
        if not self.complete:
            gone = {each.order for each in chosen}
            left = [each for each in options if each.order not in gone]
            self.unplaced = [
                told_of(each.pod, self._kept.get(each.order, _NOT_TRIED)) for each in left
            ]

    # Choosing

    def _chosen(self, options: Sequence[_Option]) -> Steps[Sequence[_Option]]:
        """Return the pods that go; on the fork they are gone."""
        if _are_few(len(options), self._goal.count):
            found = yield from self._best_of_all(options)
        else:
            found = yield from self._one_by_one(options, careful=False)
        if found is None:
            found = yield from self._one_by_one(options, careful=True)
        assert found is not None
        return found

    def _best_of_all(self, options: Sequence[_Option]) -> Steps[Sequence[_Option] | None]:
        """Return the best choice that breaks no rule; None if there is none."""
        choices = []
        for choice in self._choices(self._equals(options), [], NOTHING):
            choices.append(choice)
            yield
        choices.sort(key=_value)
        for choice in choices:
            if self._fork.context.is_late():
                return None
            start = self._fork.try_out()
            classes = {self._class_of(each) for each in choice.options}
            for option in choice.options:
                self._go(option)
            if not (yield from self._broken(classes)):
                return choice.options
            self._fork.replica.undo(start)
        return None

    def _choices(
        self, equals: Sequence[Sequence[_Option]], taken: list[_Option], cost: Cost
    ) -> Iterator[_Choice]:
        """Yield each choice that the bounds allow, but for those that differ in equal pods alone."""
        if len(taken) == self._goal.count:
            orders = tuple(sorted(each.order for each in taken))
            yield _Choice(cost, orders, tuple(taken))
            return
        for index, members in enumerate(equals):
            option, rest = members[0], members[1:]
            if self._kept_by_bounds([*taken, option]) is not None:
                continue
            start = self._fork.try_out()
            more = _sum(cost, self._cost(option))
            self._go(option)
            left = [rest, *equals[index + 1 :]] if rest else equals[index + 1 :]
            yield from self._choices(left, [*taken, option], more)
            self._fork.replica.undo(start)

    def _one_by_one(
        self, options: Sequence[_Option], *, careful: bool
    ) -> Steps[Sequence[_Option] | None]:
        """Let the best pod go again and again; carefully, none whose leave breaks a rule.

        None: a rule is broken after all have gone, and the fork is as it was.
        """
        start, chosen = self._fork.try_out(), list[_Option]()
        self._kept.clear()
        heap = [(self._next(each), each) for each in self._equals(options)]
        heapify(heap)
        classes: set[PodClass] = set()
        while len(chosen) < self._goal.count and heap and not self._fork.context.is_late():
            option = yield from self._best(heap)
            kept = self._kept_by_bounds([*chosen, option])
            if kept is None:
                classes.add(self._class_of(option))
                kept = yield from self._tried(option, careful=careful)
            if kept is None:
                chosen.append(option)
                yield from self._fork.step()
            else:
                self._kept[option.order] = kept
        if not careful and (yield from self._broken(classes)):
            yield from self._fork.take_back(start)
            return None
        return chosen

    def _best(self, heap: list[_Next]) -> Steps[_Option]:
        """Take the pod of a heap that goes best now.

        If no preferences are among the pods, it only costs more to remove one the more have gone. So
        the first of the heap is the best if it still costs what it did.
        """
        if self._costs.may_fall:
            for index, (_, members) in enumerate(heap):
                heap[index] = self._next(members), members
                if index % _STEP_LOOKS == _STEP_LOOKS - 1:
                    yield
            heapify(heap)
        while True:
            _, members = heappop(heap)
            now = self._next(members)
            if not heap or now <= heap[0][0]:
                break
            heappush(heap, (now, members))
        option = members.pop(0)
        if members:
            heappush(heap, (self._next(members), members))
        return option

    def _next(self, members: Sequence[_Option]) -> tuple[Cost, RemovalOrder]:
        return self._cost(members[0]), members[0].order

    def _tried(self, option: _Option, *, careful: bool) -> Steps[Kept | None]:
        start = self._fork.try_out()
        pod_class = self._class_of(option)
        self._go(option)
        if not careful:
            return None
        broken = yield from self._broken({pod_class})
        if not broken:
            return None
        self._fork.replica.undo(start)
        return breaking(broken[0], {option.pod.namespace})

    # Judging

    def _equals(self, options: Sequence[_Option]) -> list[list[_Option]]:
        """Return the pods grouped by what they are and where: one is as good as another."""
        groups: defaultdict[object, list[_Option]] = defaultdict(list)
        for each in options:
            groups[self._class_of(each), each.pod.pod.node_name].append(each)
        return [sorted(each, key=_order) for each in groups.values()]

    def _cost(self, option: _Option) -> Cost:
        cluster = self._fork.replica.cluster
        slot = cluster.nodes.slots.get(option.pod.pod.node_name or "")
        if slot is None:
            return NOTHING
        return (1, *self._costs.of(self._class_of(option), slot))

    def _broken(self, classes: set[PodClass]) -> Steps[list[Violation]]:
        """Return the rules that are broken since pods of some classes have gone."""
        return (yield from self._rules.newly_broken(classes))

    def _kept_by_bounds(self, pods: Sequence[_Option]) -> Kept | None:
        """Say why some pods do not go together, as far as it is for the bounds of the plan."""
        bounds = self._intent.bounds
        placed = [each.pod.pod for each in pods if each.pod.pod.node_name is not None]
        if any(is_protected(each, bounds.protect) for each in placed):
            return PROTECTED
        if bounds.evictions_max is not None and len(placed) > bounds.evictions_max:
            return EVICTIONS_OVER
        if not bounds.respect_budgets:
            return None
        budget = self._allowances.blocking(placed)
        return None if budget is None else kept_by_budget(budget)

    def _class_of(self, option: _Option) -> PodClass:
        return self._fork.replica.cluster.class_of(option.pod.pod)

    def _go(self, option: _Option) -> None:
        self._fork.replica.delete("Pod", option.pod.namespace, option.pod.name)


def _are_few(options: int, count: int) -> bool:
    """Whether all choices of so many options can be compared.

    There are at least as many as 2 to the power of those that go, or of those that stay, so that
    numbers with thousands of digits need not be computed.
    """
    if not 0 < count <= options or min(count, options - count) >= CHOICES_MAX.bit_length():
        return False
    return comb(options, count) <= CHOICES_MAX


def _order(option: _Option) -> RemovalOrder:
    return option.order


def _value(choice: _Choice) -> tuple[Cost, tuple[RemovalOrder, ...]]:
    return choice.cost, choice.orders


def _options(pods: Sequence[PodManifest]) -> list[_Option]:
    beside = Counter(each.pod.node_name for each in pods)
    return [_Option(removal_order_of(each, beside[each.pod.node_name]), each) for each in pods]


def _sum(cost: Cost, more: Cost) -> Cost:
    return cost[0] + more[0], cost[1] + more[1], cost[2] + more[2]


def _removed(pod: PodManifest) -> PlanStep:
    node = pod.pod.node_name
    return PlanStep(
        action="Delete",
        namespace=pod.namespace,
        name=pod.name,
        from_node=node or UNSET,
        wave=1,
        reason=_NO_NODE if node is None else _LEAST,
    )
