"""The fewest pods that have to leave so that no rule between pods is broken any more.

Of all pods that may leave, those of the highest priority leave as rarely as possible, then those of
the next lower priority, and so on; of pods of one priority, as few as possible. Between equally good
choices, the pods that leave are those that come first in the order of importance.

Pods that are in conflict with each other, directly or through others, make a component. Up to
`EXACT_MAX` pods of a component are tried in all ways that may be better than the best way so far. In
larger ones the least important pods leave one by one until every rule holds, and then those come
back, the most important first, whose return breaks no rule. If all pods of a component have the
same rule, that finds the fewest, too.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from heapq import nsmallest
from itertools import chain

from service.model.core.primitives import ObjectName

EXACT_MAX = 12
"""Up to so many pods in conflict with each other, the choice is the best that there is."""


class Quarrel:
    """The pods of one domain that a rule matches, and those that have the rule there."""

    def __init__(self, members: set[ObjectName], max_per_domain: int | None = None) -> None:
        self.members = members
        """The matched pods that stay."""
        self.max_per_domain = max_per_domain
        """How many members the rule allows; None: nobody besides the pod that has it."""
        self.owners: dict[ObjectName, str] = {}
        """The pods that have the rule and stay, each with the rule's path in its manifest."""
        self._left: set[ObjectName] = set()
        """The members that left."""
        self._left_owners: dict[ObjectName, str] = {}

    def leave(self, key: ObjectName) -> None:
        """Count a pod as gone."""
        if key in self.members:
            self.members.discard(key)
            self._left.add(key)
        if key in self.owners:
            self._left_owners[key] = self.owners.pop(key)

    def come_back(self, key: ObjectName) -> None:
        """Count a pod that left as there again."""
        if key in self._left:
            self._left.discard(key)
            self.members.add(key)
        if key in self._left_owners:
            self.owners[key] = self._left_owners.pop(key)

    def too_many(self, owner: ObjectName) -> bool:
        """Whether the rule matches more pods than it allows beside its owner."""
        if self.max_per_domain is not None:
            return len(self.members) > self.max_per_domain
        return len(self.members) > (owner in self.members)

    def breaks_others(self, member: ObjectName) -> bool:
        """Whether another pod has the rule, and does not allow the member in the domain."""
        owned = len(self.owners) > (member in self.owners)
        if self.max_per_domain is not None:
            return owned and len(self.members) > self.max_per_domain
        return owned

    def matched(self, key: ObjectName) -> bool:
        """Whether the rule matches the pod, that may have left."""
        return key in self.members or key in self._left

    def path_of(self, key: ObjectName) -> str | None:
        """Return the rule's path if the pod has it, that may have left."""
        return self.owners.get(key) or self._left_owners.get(key)

    @cached_property
    def first_members(self) -> list[ObjectName]:
        """The first two members, of those that left, too, as soon as all are known."""
        return nsmallest(2, chain(self.members, self._left))

    @cached_property
    def first_owners(self) -> list[ObjectName]:
        """The first two pods that have the rule, like the first members."""
        return nsmallest(2, chain(self.owners, self._left_owners))

    def is_broken_with(self, key: ObjectName) -> bool:
        """Whether the rule does not hold, and the pod has part in that."""
        if key in self.owners and self.too_many(key):
            return True
        return key in self.members and self.breaks_others(key)


QuarrelsByPod = Mapping[ObjectName, Sequence[Quarrel]]


def let_leave(
    ordered: Sequence[ObjectName], priorities: Mapping[ObjectName, int], by_pod: QuarrelsByPod
) -> set[ObjectName]:
    """Choose who leaves, and count those pods as gone.

    Args:
        ordered: the pods that may leave, the least important first.
        priorities: of each of them.
        by_pod: the quarrels of each pod, from which all rules can be made true by such pods.
    """
    leaving: set[ObjectName] = set()
    for component in _components(ordered, by_pod):
        chosen = _one_by_one(component, by_pod)
        if len(component) <= EXACT_MAX and chosen:
            chosen = _best(component, priorities, by_pod, chosen)
        leaving |= chosen
    return leaving


def _components(ordered: Sequence[ObjectName], by_pod: QuarrelsByPod) -> Iterator[list[ObjectName]]:
    """Yield the pods that are in conflict with each other, directly or through others, in order."""
    position = {key: index for index, key in enumerate(ordered)}
    pods_of: defaultdict[Quarrel, list[ObjectName]] = defaultdict(list)
    for key in ordered:
        for quarrel in by_pod.get(key, ()):
            pods_of[quarrel].append(key)
    seen: set[ObjectName] = set()
    for first in ordered:
        if first not in seen:
            yield sorted(_reached(first, by_pod, pods_of, seen), key=position.__getitem__)


def _reached(
    first: ObjectName,
    by_pod: QuarrelsByPod,
    pods_of: dict[Quarrel, list[ObjectName]],
    seen: set[ObjectName],
) -> list[ObjectName]:
    found, waiting = [], [first]
    seen.add(first)
    while waiting:
        key = waiting.pop()
        found.append(key)
        for quarrel in by_pod.get(key, ()):
            for other in pods_of.pop(quarrel, ()):
                if other not in seen:
                    seen.add(other)
                    waiting.append(other)
    return found


def _one_by_one(component: Sequence[ObjectName], by_pod: QuarrelsByPod) -> set[ObjectName]:
    leaving = []
    for key in component:
        if any(quarrel.is_broken_with(key) for quarrel in by_pod.get(key, ())):
            _leave(key, by_pod)
            leaving.append(key)
    return {key for key in reversed(leaving) if not _may_come_back(key, by_pod)}


def _leave(key: ObjectName, by_pod: QuarrelsByPod) -> None:
    for quarrel in by_pod[key]:
        quarrel.leave(key)


def _come_back(key: ObjectName, by_pod: QuarrelsByPod) -> None:
    for quarrel in by_pod[key]:
        quarrel.come_back(key)


def _may_come_back(key: ObjectName, by_pod: QuarrelsByPod) -> bool:
    """Whether no rule is broken if the pod stays after all; then it does."""
    _come_back(key, by_pod)
    if not any(quarrel.is_broken_with(key) for quarrel in by_pod[key]):
        return True
    _leave(key, by_pod)
    return False


def _best(
    component: Sequence[ObjectName],
    priorities: Mapping[ObjectName, int],
    by_pod: QuarrelsByPod,
    chosen: set[ObjectName],
) -> set[ObjectName]:
    """Try all ways that may be better than the one that was chosen, and go the best."""
    for key in chosen:
        _come_back(key, by_pod)
    search = _Search(component, priorities, by_pod, chosen)
    search.run()
    for key in search.best:
        _leave(key, by_pod)
    return search.best


class _Search:
    """All ways in which pods of one component may leave, as far as they may be the best one.

    While it looks, the pods that leave are really out of the quarrels, and come back afterwards.
    """

    def __init__(
        self,
        component: Sequence[ObjectName],
        priorities: Mapping[ObjectName, int],
        by_pod: QuarrelsByPod,
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
        """Decide of one pod that has part in a broken rule, and then of the others."""
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
        """Whether those that are to stay could stay, if all others left."""
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
        return any(quarrel.is_broken_with(key) for quarrel in self._by_pod.get(key, ()))


def _costs(
    component: Sequence[ObjectName], priorities: Mapping[ObjectName, int]
) -> dict[ObjectName, int]:
    """What it costs that each pod leaves: more than all pods of lower priority together.

    Of equally many pods of the same priorities, those cost less that come first.
    """
    size = len(component)
    ranks = {each: rank for rank, each in enumerate(sorted({priorities[k] for k in component}))}
    return {
        key: ((size + 1) ** ranks[priorities[key]] << size) - (1 << (size - 1 - index))
        for index, key in enumerate(component)
    }
