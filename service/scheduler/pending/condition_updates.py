"""Tracks which pending pods' conditions need an update with the reason for waiting (P18)."""

from collections.abc import Iterator, Set as AbstractSet

from service.model.core.primitives import ObjectName
from service.scheduler.pending.equivalence_classes import EquivalenceClass, State
from service.scheduler.protocol.limits import Limits
from service.scheduler.protocol.pending_attempts import ConditionUpdate, Refused


class ConditionUpdates:
    """The equivalence classes of one queue whose members need condition updates."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._due: dict[EquivalenceClass, None] = {}

    def are_due(self, now: float) -> bool:
        """Return whether any update is due."""
        return any(equivalence.new or equivalence.stale_due <= now for equivalence in self._due)

    def put(self, equivalence: EquivalenceClass) -> None:
        """Schedule updates of the members in `new` or `stale`."""
        self._due[equivalence] = None

    def drop(self, equivalence: EquivalenceClass) -> None:
        """Cancel the scheduled updates of an equivalence class."""
        self._due.pop(equivalence, None)

    def note(
        self,
        equivalence: EquivalenceClass,
        refused: Refused,
        tried: AbstractSet[ObjectName],
        now: float,
    ) -> None:
        """Record which members need a condition update: those that were not tried themselves.

        A member whose condition already states other reasons is not updated at once (protocol rule
        P18).
        """
        reasons = _reasons(equivalence, refused)
        if reasons != equivalence.shown_reasons:
            equivalence.shown_reasons = reasons
            if equivalence.shown_at is None:
                equivalence.shown_at = now
            if not equivalence.stale:
                equivalence.stale_due = self._stale_due(equivalence, equivalence.shown_at, now)
            equivalence.stale = {
                key: None
                for key in equivalence.members
                if key not in tried and key not in equivalence.new
            }
        if equivalence.new or equivalence.stale:
            self.put(equivalence)

    def _stale_due(self, equivalence: EquivalenceClass, shown_at: float, now: float) -> float:
        """Return when to update outdated conditions; a small group's are due at once."""
        members = len(equivalence.members)
        small = equivalence.group and members <= self._limits.pending_group_told_max
        return now if small else shown_at + self._limits.pending_told_seconds

    def take(self, count_max: int, now: float) -> Iterator[ConditionUpdate]:
        """Yield up to `count_max` due updates."""
        for equivalence in list(self._due):
            while equivalence.new and count_max > 0:
                count_max -= 1
                yield _update(equivalence, equivalence.new)
            while equivalence.stale and equivalence.stale_due <= now and count_max > 0:
                count_max -= 1
                yield _update(equivalence, equivalence.stale)
            if not equivalence.new and not equivalence.stale:
                equivalence.shown_at = now
                self.drop(equivalence)


def _reasons(equivalence: EquivalenceClass, refused: Refused) -> frozenset[str]:
    """Return the reasons that distinguish two refusals; for a group, the whole message."""
    if equivalence.group is not None:
        return frozenset({refused.message})
    reasons = refused.reasons.items()
    return frozenset(f"{plugin}: {reason}" for plugin, messages in reasons for reason in messages)


def _update(equivalence: EquivalenceClass, keys: dict[ObjectName, None]) -> ConditionUpdate:
    key = next(iter(keys))
    del keys[key]
    if equivalence.state is State.GATED:
        return ConditionUpdate(key, "SchedulingGated", "")
    refused = equivalence.refused
    if refused is None:
        return ConditionUpdate(key, "Unschedulable", "")
    return ConditionUpdate(key, refused.wait_reason, refused.message)
