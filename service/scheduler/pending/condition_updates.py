"""Which pending pods' conditions are to say why they wait, since they say nothing yet or other reasons (P18)."""

from collections.abc import Iterator, Set as AbstractSet

from service.model.core.primitives import ObjectName
from service.scheduler.pending.equivalence_classes import EquivalenceClass, State
from service.scheduler.protocol.limits import Limits
from service.scheduler.protocol.pending_attempts import ConditionUpdate, Refused


class ConditionUpdates:
    """The equivalence classes of one queue that have members whose conditions are to be updated."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._due: dict[EquivalenceClass, None] = {}

    def are_due(self, now: float) -> bool:
        """Whether there is anything to give out."""
        return any(each.new or each.stale_due <= now for each in self._due)

    def put(self, equivalence: EquivalenceClass) -> None:
        """Have those updated that are `new` or `stale`."""
        self._due[equivalence] = None

    def drop(self, equivalence: EquivalenceClass) -> None:
        """Have none updated."""
        self._due.pop(equivalence, None)

    def note(
        self,
        equivalence: EquivalenceClass,
        refused: Refused,
        tried: AbstractSet[ObjectName],
        now: float,
    ) -> None:
        """Note which members get a condition update: those that were not tried themselves.

        A member whose condition says other reasons already is not updated at once (P18).
        """
        reasons = _reasons(equivalence, refused)
        if reasons != equivalence.told:
            equivalence.told = reasons
            if equivalence.told_at is None:
                equivalence.told_at = now
            if not equivalence.stale:
                equivalence.stale_due = self._stale_due(equivalence, equivalence.told_at, now)
            equivalence.stale = {
                key: None
                for key in equivalence.members
                if key not in tried and key not in equivalence.new
            }
        if equivalence.new or equivalence.stale:
            self.put(equivalence)

    def _stale_due(self, equivalence: EquivalenceClass, told_at: float, now: float) -> float:
        """When conditions that say old reasons are updated; those of a small group are at once."""
        members = len(equivalence.members)
        small = equivalence.group and members <= self._limits.pending_group_told_max
        return now if small else told_at + self._limits.pending_told_seconds

    def take(self, count_max: int, now: float) -> Iterator[ConditionUpdate]:
        """Give out at most so many."""
        for equivalence in list(self._due):
            while equivalence.new and count_max > 0:
                count_max -= 1
                yield _update(equivalence, equivalence.new)
            while equivalence.stale and equivalence.stale_due <= now and count_max > 0:
                count_max -= 1
                yield _update(equivalence, equivalence.stale)
            if not equivalence.new and not equivalence.stale:
                equivalence.told_at = now
                self.drop(equivalence)


def _reasons(equivalence: EquivalenceClass, refused: Refused) -> frozenset[str]:
    """Return the reasons by which two refusals differ; for a group the whole message."""
    if equivalence.group is not None:
        return frozenset({refused.message})
    reasons = refused.reasons.items()
    return frozenset(f"{plugin}: {reason}" for plugin, each in reasons for reason in each)


def _update(equivalence: EquivalenceClass, keys: dict[ObjectName, None]) -> ConditionUpdate:
    key = next(iter(keys))
    del keys[key]
    if equivalence.state is State.GATED:
        return ConditionUpdate(key, "SchedulingGated", "")
    refused = equivalence.refused
    if refused is None:
        return ConditionUpdate(key, "Unschedulable", "")
    return ConditionUpdate(key, refused.wait_reason, refused.message)
