"""Scale-in: chooses pods to delete that least harm the spread and preferences of the rest.

No required rule of a staying pod may break. Within this limit, pods without a node leave first;
then topology spread constraints decide, then preferences, then Kubernetes' scale-in order.
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
from service.model.registry.manifests import PodManifest
from service.scheduler.decide.context import Steps
from service.scheduler.decide.disruption_budgets import Allowances
from service.scheduler.plans.bounds import is_protected
from service.scheduler.plans.broken_rules import BrokenRules
from service.scheduler.plans.fork import Fork
from service.scheduler.plans.remove.order import RemovalOrder, removal_order_of
from service.scheduler.plans.selection import field_error, pods_of
from service.scheduler.plans.waves import (
    EVICTIONS_OVER,
    PROTECTED,
    Blocked,
    blocked_by_budget,
    blocked_by_rule,
    unplaced_pod,
)
from service.scheduler.protocol.intents import MakePlan
from service.scheduler.protocol.plans import PlanStep, Remove, Unplaced

CHOICES_MAX = 1_000
"""Up to this many choices, all are compared; beyond, pods are chosen one by one."""
_STEP_LOOKS = 200
_NO_NODE = "it has no node"
_LEAST = "the others are left best without it"
_NOT_TRIED = Blocked("SecondsOver", "It was not tried: the plan's time was over.")

Cost = tuple[int, int, int]
"""The number of pods with a node, then the cost to spread and to preferences; lower is better."""
NOTHING: Cost = (0, 0, 0)


class _Option(NamedTuple):
    """A pod that may be removed."""

    order: RemovalOrder
    pod: PodManifest


_Next = tuple[tuple[Cost, RemovalOrder], list[_Option]]
"""Equal pods with the cost of removing the first, which is the next candidate."""


class _Choice(NamedTuple):
    """Pods to remove together, with the cost."""

    cost: Cost
    orders: tuple[RemovalOrder, ...]
    options: tuple[_Option, ...]


class RemovePlan:
    """Removes pods on a fork, and collects the steps and the reasons why pods had to stay."""

    def __init__(self, fork: Fork, intent: MakePlan, goal: Remove) -> None:
        self._fork = fork
        self._intent = intent
        self._goal = goal
        self._rules = BrokenRules(fork.replica.cluster)
        self._allowances = Allowances(fork.replica.cluster)
        self._blocked: dict[RemovalOrder, Blocked] = {}
        self.steps: list[PlanStep] = []
        self.unplaced: list[Unplaced] = []

    @property
    def complete(self) -> bool:
        """Whether as many pods were removed as requested."""
        return len(self.steps) >= self._goal.count

    def remove(self) -> Steps[None]:
        """Choose the pods and remove them.

        Raises:
            NotFound, Forbidden: a named pod does not exist, or is in a namespace of others.
            InvalidManifest: more pods are selected than one plan may have.
        """
        pods = yield from pods_of(self._fork, self._goal.pods, self._intent.caller)
        active = [pod for pod in pods if not pod.pod.terminating and not pod.pod.finished]
        most = self._fork.context.limits.plan_pods_max
        if len(active) > most:
            raise field_error("selector", f"selects {len(active)} pods, over the limit of {most}")
        yield from self._rules.observe()
        self._allowances.observe(pod.pod for pod in active)
        options = _options(active)
        self._costs = RemovalCosts(self._fork.replica.cluster, set(map(self._class_of, options)))
        chosen = yield from self._chosen(options)
        self.steps = [_removed(option.pod) for option in sorted(chosen, key=_order)]
        if not self.complete:
            chosen_orders = {option.order for option in chosen}
            staying = [option for option in options if option.order not in chosen_orders]
            self.unplaced = [
                unplaced_pod(option.pod, self._blocked.get(option.order, _NOT_TRIED))
                for option in staying
            ]

    # Choosing

    def _chosen(self, options: Sequence[_Option]) -> Steps[Sequence[_Option]]:
        """Return the pods to remove, after deleting them on the fork."""
        if _are_few(len(options), self._goal.count):
            chosen = yield from self._best_of_all(options)
        else:
            chosen = yield from self._one_by_one(options, careful=False)
        if chosen is None:
            chosen = yield from self._one_by_one(options, careful=True)
        assert chosen is not None
        return chosen

    def _best_of_all(self, options: Sequence[_Option]) -> Steps[Sequence[_Option] | None]:
        """Return the best choice that breaks no rule, or None."""
        choices = []
        for choice in self._choices(self._equals(options), [], NOTHING):
            choices.append(choice)
            yield
        choices.sort(key=_value)
        for choice in choices:
            if self._fork.context.is_late():
                return None
            start = self._fork.try_out()
            classes = {self._class_of(option) for option in choice.options}
            for option in choice.options:
                self._go(option)
            if not (yield from self._broken(classes)):
                return choice.options
            self._fork.replica.undo(start)
        return None

    def _choices(
        self, equals: Sequence[Sequence[_Option]], taken: list[_Option], cost: Cost
    ) -> Iterator[_Choice]:
        """Yield each choice within the bounds, ignoring differences between equal pods."""
        if len(taken) == self._goal.count:
            orders = tuple(sorted(option.order for option in taken))
            yield _Choice(cost, orders, tuple(taken))
            return
        for index, members in enumerate(equals):
            option, rest = members[0], members[1:]
            if self._blocked_by_bounds([*taken, option]) is not None:
                continue
            start = self._fork.try_out()
            more = _sum(cost, self._cost(option))
            self._go(option)
            remaining = [rest, *equals[index + 1 :]] if rest else equals[index + 1 :]
            yield from self._choices(remaining, [*taken, option], more)
            self._fork.replica.undo(start)

    def _one_by_one(
        self, options: Sequence[_Option], *, careful: bool
    ) -> Steps[Sequence[_Option] | None]:
        """Remove the best pod repeatedly; if `careful`, skip removals that break a rule.

        Returns None and restores the fork if a rule is broken after all removals.
        """
        start, chosen = self._fork.try_out(), list[_Option]()
        self._blocked.clear()
        heap = [(self._next(members), members) for members in self._equals(options)]
        heapify(heap)
        classes: set[PodClass] = set()
        while len(chosen) < self._goal.count and heap and not self._fork.context.is_late():
            option = yield from self._best(heap)
            reason = self._blocked_by_bounds([*chosen, option])
            if reason is None:
                classes.add(self._class_of(option))
                reason = yield from self._tried(option, careful=careful)
            if reason is None:
                chosen.append(option)
                yield from self._fork.step()
            else:
                self._blocked[option.order] = reason
        if not careful and (yield from self._broken(classes)):
            yield from self._fork.take_back(start)
            return None
        return chosen

    def _best(self, heap: list[_Next]) -> Steps[_Option]:
        """Remove and return the best pod of a heap.

        Without preferences, the cost of a removal only grows with the number removed, so the first
        entry of the heap is the best if its cost is unchanged.
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

    def _tried(self, option: _Option, *, careful: bool) -> Steps[Blocked | None]:
        start = self._fork.try_out()
        pod_class = self._class_of(option)
        self._go(option)
        if not careful:
            return None
        broken = yield from self._broken({pod_class})
        if not broken:
            return None
        self._fork.replica.undo(start)
        return blocked_by_rule(broken[0], {option.pod.namespace})

    # Judging

    def _equals(self, options: Sequence[_Option]) -> list[list[_Option]]:
        """Group the pods by class and node; the pods of a group are interchangeable."""
        groups: defaultdict[object, list[_Option]] = defaultdict(list)
        for option in options:
            groups[self._class_of(option), option.pod.pod.node_name].append(option)
        return [sorted(members, key=_order) for members in groups.values()]

    def _cost(self, option: _Option) -> Cost:
        cluster = self._fork.replica.cluster
        slot = cluster.nodes.slots.get(option.pod.pod.node_name or "")
        if slot is None:
            return NOTHING
        return (1, *self._costs.of(self._class_of(option), slot))

    def _broken(self, classes: set[PodClass]) -> Steps[list[Violation]]:
        """Return the rules broken by removing pods of these classes."""
        return (yield from self._rules.newly_broken(classes))

    def _blocked_by_bounds(self, pods: Sequence[_Option]) -> Blocked | None:
        """Return why the plan's bounds keep these pods from leaving together, or None."""
        bounds = self._intent.bounds
        placed = [option.pod.pod for option in pods if option.pod.pod.node_name is not None]
        if any(is_protected(pod, bounds.protect) for pod in placed):
            return PROTECTED
        if bounds.evictions_max is not None and len(placed) > bounds.evictions_max:
            return EVICTIONS_OVER
        if not bounds.respect_budgets:
            return None
        budget = self._allowances.blocking(placed)
        return None if budget is None else blocked_by_budget(budget)

    def _class_of(self, option: _Option) -> PodClass:
        return self._fork.replica.cluster.class_of(option.pod.pod)

    def _go(self, option: _Option) -> None:
        self._fork.replica.delete("Pod", option.pod.namespace, option.pod.name)


def _are_few(options: int, count: int) -> bool:
    """Return whether the choices of `count` from `options` are few enough to compare.

    The number of choices is at least 2 to the power of the removed or the remaining pods, whichever
    are fewer; checking that first avoids numbers with thousands of digits.
    """
    if not 0 < count <= options or min(count, options - count) >= CHOICES_MAX.bit_length():
        return False
    return comb(options, count) <= CHOICES_MAX


def _order(option: _Option) -> RemovalOrder:
    return option.order


def _value(choice: _Choice) -> tuple[Cost, tuple[RemovalOrder, ...]]:
    return choice.cost, choice.orders


def _options(pods: Sequence[PodManifest]) -> list[_Option]:
    beside = Counter(pod.pod.node_name for pod in pods)
    return [_Option(removal_order_of(pod, beside[pod.pod.node_name]), pod) for pod in pods]


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
