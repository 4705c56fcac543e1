"""What passes between the pending queue and the decisions: whom to try, and what came of it."""

from collections.abc import Collection, Mapping
from typing import Literal, NamedTuple

import msgspec

from service.model.objects import ObjectName

WaitReason = Literal["Unschedulable", "SchedulingGated"]


class Refused(msgspec.Struct, frozen=True):
    """Why a pod was not placed."""

    revision: int
    """The state that it was decided on."""
    reasons: Mapping[str, Collection[str]]
    """Plugin to the reasons that it gave."""
    message: str
    is_costly: bool = False
    """Finding out took so long that it should not be asked often."""
    again_after: float | None = None
    """Seconds after which something else is to be told, though nothing has changed."""


class ConditionUpdate(NamedTuple):
    """A pod of which the condition should say why it waits; it is not tried."""

    key: ObjectName
    reason: WaitReason
    message: str


class Attempts(NamedTuple):
    """What to do with some pending pods, in this order."""

    tries: tuple[ObjectName, ...] = ()
    condition_updates: tuple[ConditionUpdate, ...] = ()
    starving: ObjectName | None = None
    """The first pod that was refused so often that the node nearest to it is kept free for it."""
    behind: int = 0
    """The tries from this index on come after the starving pod, and may not take its node."""
