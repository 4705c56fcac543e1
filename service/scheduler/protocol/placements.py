"""Placements as clients ask for them and as they are answered (`POST …/placements`)."""

from typing import Annotated, Any, Literal

import msgspec

from service.scheduler.protocol.answers import Answer

Outcome = Literal["Placed", "AlreadyPlaced", "Queued", "Unschedulable", "Denied", "GroupRefused"]
Policy = Literal["BestEffort", "AllOrNothing"]
Explain = Literal["None", "Summary", "Full"]


class PodRef(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Names a stored pod."""

    namespace: str = "default"
    name: str


class PlacementRequest(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True
):
    """The body of `placePods`: exactly one of `pods`, `podRefs`, or `template` with `replicas`."""

    pods: list[msgspec.Raw] | None = None
    """Pod manifests; created if they are new."""
    pod_refs: list[PodRef] | None = None
    template: msgspec.Raw | None = None
    """A PodTemplateSpec whose `metadata.name` is the prefix of the pods' names."""
    replicas: Annotated[int, msgspec.Meta(ge=1, le=10_000)] | None = None
    policy: Policy = "BestEffort"
    on_unschedulable: Literal["Reject", "Queue"] = "Reject"
    dry_run: bool = False
    explain: Explain = "None"


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
    """The state that `score` and `explanation` belong to."""
    reason: str | None = None
    """Of a pod that is Denied: the rule, in CamelCase."""
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
    """How often it was decided; more than once after lost races."""
    results: list[PlacementResult]
    group: GroupFailure | None = None


class ExplanationAnswer(Answer, frozen=True, kw_only=True):
    """A full explanation at `revision`; of a placed pod, with the pod itself taken out."""

    explanation: Any
