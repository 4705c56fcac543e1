"""The values that the pending queue and decisions exchange: which pods to try, and the results."""

from collections.abc import Collection, Mapping
from typing import Literal, NamedTuple

import msgspec

from service.model.core.primitives import ObjectName

WaitReason = Literal["Unschedulable", "SchedulingGated", "SchedulerError"]


class Refused(msgspec.Struct, frozen=True):
    """Why a pod was not placed."""

    revision: int
    """The revision of the state on which this was decided."""
    reasons: Mapping[str, Collection[str]]
    """The reasons that each plugin gave."""
    message: str
    is_costly: bool = False
    """Whether the attempt took so long that it should not be made often."""
    again_after: float | None = None
    """The seconds after which another attempt may end otherwise even if nothing changes; None: never."""
    wait_reason: WaitReason = "Unschedulable"
    """What the condition gives as its reason."""


class ConditionUpdate(NamedTuple):
    """A pod whose condition should say why it waits; the pod itself is not tried."""

    key: ObjectName
    reason: WaitReason
    message: str


class Attempts(NamedTuple):
    """The pending pods to try, and the conditions to update, in this order."""

    tries: tuple[ObjectName, ...] = ()
    condition_updates: tuple[ConditionUpdate, ...] = ()
    starving: ObjectName | None = None
    """The first pod refused so often that the node nearest to fitting it is kept free for it."""
    behind: int = 0
    """The tries from this index on come after the starving pod, and may not take its node."""
