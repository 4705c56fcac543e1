"""Finds the fewest pods to evict so that no rule between pods stays broken.

The search minimizes the number of victims of the highest priority, then of the next lower priority,
and so on. Among equally good choices, the least important pods leave.

Pods in conflict with each other, directly or through others, form a component. In components of up
to `EXACT_MAX` pods, every choice that may beat the best one so far is tried. In larger components,
the least important pods leave one by one until every rule holds; then pods return, the most
important first, if their return breaks no rule. If all pods of a component have the same rule, the
result is optimal, too.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from heapq import nsmallest
from itertools import chain

from service.model.core.primitives import ObjectName

EXACT_MAX = 12
"""The largest component, in pods, for which the choice is optimal."""


class RuleConflict:
    """The pods of one domain that a rule matches, and the pods that own the rule there."""

    def __init__(self, members: set[ObjectName], max_per_domain: int | None = None) -> None:
        self.members = members
        """The matched pods that stay."""
        self.max_per_domain = max_per_domain
        """How many members the rule allows, or None if it allows only its owner."""
        self.owners: dict[ObjectName, str] = {}
        """The remaining pods that own the rule, each with the rule's path in its manifest."""
        self._left: set[ObjectName] = set()
        """The members that have left."""
        self._left_owners: dict[ObjectName, str] = {}

    def leave(self, key: ObjectName) -> None:
        """Count a pod as gone."""
        if key in self.members:
            self.members.discard(key)
            self._left.add(key)
        if key in self.owners:
            self._left_owners[key] = self.owners.pop(key)

    def come_back(self, key: ObjectName) -> None:
        """Count a pod that had left as present again."""
        if key in self._left:
            self._left.discard(key)
            self.members.add(key)
        if key in self._left_owners:
            self.owners[key] = self._left_owners.pop(key)

    def too_many(self, owner: ObjectName) -> bool:
        """Return whether the rule matches more pods besides its owner than it allows."""
        if self.max_per_domain is not None:
            return len(self.members) > self.max_per_domain
        return len(self.members) > (owner in self.members)

    def breaks_others(self, member: ObjectName) -> bool:
        """Return whether another pod owns the rule and does not allow the member in the domain."""
        owned = len(self.owners) > (member in self.owners)
        if self.max_per_domain is not None:
            return owned and len(self.members) > self.max_per_domain
        return owned

    def matched(self, key: ObjectName) -> bool:
        """Return whether the rule matches a pod, even one that has left."""
        return key in self.members or key in self._left

    def path_of(self, key: ObjectName) -> str | None:
        """Return the rule's path if a pod, even one that has left, owns the rule, or None."""
        return self.owners.get(key) or self._left_owners.get(key)

    @cached_property
    def first_members(self) -> list[ObjectName]:
        """The first two members, including those that left, for use once all members are added."""
        return nsmallest(2, chain(self.members, self._left))

    @cached_property
    def first_owners(self) -> list[ObjectName]:
        """The first two pods that own the rule, including those that left."""
        return nsmallest(2, chain(self.owners, self._left_owners))

    def is_broken_with(self, key: ObjectName) -> bool:
        """Return whether the rule is broken and involves the pod."""
        if key in self.owners and self.too_many(key):
            return True
        return key in self.members and self.breaks_others(key)


ConflictsByPod = Mapping[ObjectName, Sequence[RuleConflict]]


def choose_evictions(
    ordered: Sequence[ObjectName], priorities: Mapping[ObjectName, int], by_pod: ConflictsByPod
) -> set[ObjectName]:
    """Choose the pods that leave, and count them as gone.

    Args:
        ordered: the pods that may leave, the least important first.
        priorities: the priorities of these pods.
        by_pod: the conflicts of each pod; evicting the given pods can resolve all of them.
    """
    leaving: set[ObjectName] = set()
    for component in _components(ordered, by_pod):
        chosen = _one_by_one(component, by_pod)
        if len(component) <= EXACT_MAX and chosen:
            chosen = _best(component, priorities, by_pod, chosen)
        leaving |= chosen
    return leaving


def _components(
    ordered: Sequence[ObjectName], by_pod: ConflictsByPod
) -> Iterator[list[ObjectName]]:
    """Yield groups of pods in conflict with each other, directly or through others, in order."""
    position = {key: index for index, key in enumerate(ordered)}
    pods_of: defaultdict[RuleConflict, list[ObjectName]] = defaultdict(list)
    for key in ordered:
        for conflict in by_pod.get(key, ()):
            pods_of[conflict].append(key)
    seen: set[ObjectName] = set()
    for first in ordered:
        if first not in seen:
            yield sorted(_reached(first, by_pod, pods_of, seen), key=position.__getitem__)


def _reached(
    first: ObjectName,
    by_pod: ConflictsByPod,
    pods_of: dict[RuleConflict, list[ObjectName]],
    seen: set[ObjectName],
) -> list[ObjectName]:
    reached, waiting = [], [first]
    seen.add(first)
    while waiting:
        key = waiting.pop()
        reached.append(key)
        for conflict in by_pod.get(key, ()):
            for other in pods_of.pop(conflict, ()):
                if other not in seen:
                    seen.add(other)
                    waiting.append(other)
    return reached


def _one_by_one(component: Sequence[ObjectName], by_pod: ConflictsByPod) -> set[ObjectName]:
    leaving = []
    for key in component:
        if any(conflict.is_broken_with(key) for conflict in by_pod.get(key, ())):
            _leave(key, by_pod)
            leaving.append(key)
    return {key for key in reversed(leaving) if not _may_come_back(key, by_pod)}


def _leave(key: ObjectName, by_pod: ConflictsByPod) -> None:
    for conflict in by_pod[key]:
        conflict.leave(key)


def _come_back(key: ObjectName, by_pod: ConflictsByPod) -> None:
    for conflict in by_pod[key]:
        conflict.come_back(key)


def _may_come_back(key: ObjectName, by_pod: ConflictsByPod) -> bool:
    """Keep a pod after all if that breaks no rule; return whether it stays."""
    _come_back(key, by_pod)
    if not any(conflict.is_broken_with(key) for conflict in by_pod[key]):
        return True
    _leave(key, by_pod)
    return False


def _best(
    component: Sequence[ObjectName],
    priorities: Mapping[ObjectName, int],
    by_pod: ConflictsByPod,
    chosen: set[ObjectName],
) -> set[ObjectName]:
    """Try all choices that may beat the given one, and apply the best."""
    for key in chosen:
        _come_back(key, by_pod)
    search = _Search(component, priorities, by_pod, chosen)
    search.run()
    for key in search.best:
        _leave(key, by_pod)
    return search.best


class _Search:
    """An exhaustive search for the best choice in one component, bounded by the best so far.

    During the search, leaving pods are removed from the conflicts, and restored afterwards.
    """

    def __init__(
        self,
        component: Sequence[ObjectName],
        priorities: Mapping[ObjectName, int],
        by_pod: ConflictsByPod,
        chosen: set[ObjectName],
    ) -> None:
        self._component = component
        self._by_pod = by_pod
        self._costs = _costs(component, priorities)
        self._staying: set[ObjectName] = set()
        self._leaving: list[ObjectName] = []
        self._spent = 0
        self.best = chosen
        self._best_cost = sum(self._costs[key] for key in chosen)

    def run(self) -> None:
        """Branch on one pod that is involved in a broken rule, then on the remaining pods."""
        if self._spent >= self._best_cost:
            return
        broken = [key for key in self._component if self._is_broken_with(key)]
        if not broken:
            self.best, self._best_cost = set(self._leaving), self._spent
            return
        undecided = next((key for key in broken if key not in self._staying), None)
        if undecided is not None:
            self._without(undecided)
            self._with(undecided)

    def _without(self, key: ObjectName) -> None:
        _leave(key, self._by_pod)
        self._leaving.append(key)
        self._spent += self._costs[key]
        self.run()
        self._spent -= self._costs[key]
        self._leaving.pop()
        _come_back(key, self._by_pod)

    def _with(self, key: ObjectName) -> None:
        self._staying.add(key)
        if self._is_possible():
            self.run()
        self._staying.discard(key)

    def _is_possible(self) -> bool:
        """Return whether the pods chosen to stay could stay if all others left."""
        others = [
            key for key in self._component if key not in self._staying and key not in self._leaving
        ]
        for key in others:
            _leave(key, self._by_pod)
        possible = not any(map(self._is_broken_with, self._staying))
        for key in others:
            _come_back(key, self._by_pod)
        return possible

    def _is_broken_with(self, key: ObjectName) -> bool:
        return any(conflict.is_broken_with(key) for conflict in self._by_pod.get(key, ()))


def _costs(
    component: Sequence[ObjectName], priorities: Mapping[ObjectName, int]
) -> dict[ObjectName, int]:
    """Return the cost of evicting each pod, exceeding that of all lower-priority pods together.

    Among sets with equal priorities, earlier pods cost less.
    """
    size = len(component)
    ranks = {
        priority: rank for rank, priority in enumerate(sorted({priorities[k] for k in component}))
    }
    return {
        key: ((size + 1) ** ranks[priorities[key]] << size) - (1 << (size - 1 - index))
        for index, key in enumerate(component)
    }
