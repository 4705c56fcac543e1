"""Options of calls, and how the API names them."""

from collections.abc import Mapping
from typing import Any, Literal, TypedDict

from moorage.requests import JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH

PatchType = Literal["merge", "json", "strategic"]
PATCH_TYPES: Mapping[PatchType, str] = {
    "merge": MERGE_PATCH,
    "json": JSON_PATCH,
    "strategic": STRATEGIC_MERGE_PATCH,
}


class Filters(TypedDict, total=False):
    """Which objects of a list."""

    label_selector: str | None
    """Kubernetes' syntax: `app=web,tier!=test`."""
    field_selector: str | None
    """Kubernetes' syntax: `spec.nodeName=node-7`."""
    node_name: str | None
    """Only pods on this node are meant; empty: those without one."""
    phase: str | None
    """Only pods whose status has this phase are meant."""


class PlacementOptions(TypedDict, total=False):
    """How pods are placed."""

    policy: Literal["BestEffort", "AllOrNothing"]
    """AllOrNothing places all of them in one commit, or none."""
    on_unschedulable: Literal["Reject", "Queue"]
    """Queue keeps what cannot be placed now as pending pods."""
    explain: Literal["None", "Summary", "Full"]
    """How much the answer explains."""
    preemption: Literal["Never", "Propose", "Evict"]
    """Whether others have to make room for a pod that fits nowhere, or are only named."""
    preemption_scope: Literal["Node", "Domains"]
    """Whether they may be on other nodes, too."""
    dry_run: bool
    """Whether to answer as if the pods were placed, but store nothing."""


def camel_cased(options: Mapping[str, Any]) -> dict[str, Any]:
    """Name options as the API does: `on_unschedulable` is `onUnschedulable`."""
    return {_camel(name): value for name, value in options.items()}


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(part.capitalize() for part in others)
