"""Values exchanged by the pending queue and decisions: which pods to try, and the results."""

from collections.abc import Collection, Mapping
from typing import Literal, NamedTuple

import msgspec

from service.model.core.primitives import ObjectName

WaitReason = Literal["Unschedulable", "SchedulingGated", "SchedulerError"]


class Refused(msgspec.Struct, frozen=True):
    """Why a pod was not placed."""

    revision: int
    """The revision of the state on which the pod was refused."""
    reasons: Mapping[str, Collection[str]]
    """The reasons given by each plugin."""
    message: str
    is_costly: bool = False
    """Whether the attempt took so long that it should rarely be repeated."""
    again_after: float | None = None
    """The seconds until a retry may succeed even without changes, or None for never."""
    wait_reason: WaitReason = "Unschedulable"
    """The reason in the pod's condition."""
    is_held_back: bool = False
    """Whether the pod would be placed if no room were kept for the starving pod."""


class ConditionUpdate(NamedTuple):
    """A pod that is not tried, but whose condition should say why it waits."""

    key: ObjectName
    reason: WaitReason
    message: str


class Attempts(NamedTuple):
    """The pending pods to try, and the conditions to update, in this order."""

    tries: tuple[ObjectName, ...] = ()
    condition_updates: tuple[ConditionUpdate, ...] = ()
    starving: ObjectName | None = None
    """The first starving pod, for which the best-fitting node is kept free, or None."""
    behind: int = 0
    """The index from which on tries come after the starving pod, and may not take its node."""
