"""The answers to placements, and the words in which they are asked for."""

from typing import Any, Literal

import msgspec

from service.scheduler.protocol.answers import Answer

Outcome = Literal["Placed", "AlreadyPlaced", "Queued", "Unschedulable", "Denied", "GroupRefused"]
Policy = Literal["BestEffort", "AllOrNothing"]
Explain = Literal["None", "Summary", "Full"]


class PodRef(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Names a stored pod."""

    namespace: str = "default"
    name: str


class PlacementResult(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What became of one pod."""

    namespace: str
    name: str
    uid: str | None
    """None if the pod is not stored."""
    outcome: Outcome
    node_name: str | None = None
    score: int | None = None
    planned_revision: int
    """The revision of the state that `score` and `explanation` belong to."""
    reason: str | None = None
    """If the pod is Denied: the rule that denies it, in CamelCase."""
    message: str | None = None
    explanation: Any = None


class GroupFailure(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Why a group was refused: the members that failed in the best attempt, and on which rule."""

    failed: list[PodRef]
    plugin: str | None
    message: str


class PlacementAnswer(Answer, frozen=True, kw_only=True):
    """What became of the pods, in the order asked."""

    committed: bool
    """Whether this call wrote something."""
    attempts: int
    """How often the request was decided; more than once if races were lost."""
    results: list[PlacementResult]
    group: GroupFailure | None = None


class ExplanationAnswer(Answer, frozen=True, kw_only=True):
    """A full explanation at `revision`; of a placed pod, with the pod itself taken out."""

    explanation: Any
