"""Options of calls, and their API names."""

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
    """Filters that select objects of a list."""

    label_selector: str | None
    """Kubernetes' syntax: `app=web,tier!=test`."""
    field_selector: str | None
    """Kubernetes' syntax: `spec.nodeName=node-7`."""
    node_name: str | None
    """Only pods on this node; "" selects pods without a node."""
    phase: str | None
    """Only pods whose status has this phase."""


class PlacementOptions(TypedDict, total=False):
    """Options that control how pods are placed."""

    policy: Literal["BestEffort", "AllOrNothing"]
    """AllOrNothing places all of them in one commit, or none."""
    on_unschedulable: Literal["Reject", "Queue"]
    """Queue stores pods that cannot be placed now as pending pods."""
    explain: Literal["None", "Summary", "Full"]
    """How detailed the answer's explanations are."""
    preemption: Literal["Never", "Propose", "Evict"]
    """Whether other pods are evicted for a pod that fits nowhere, or only proposed as victims."""
    preemption_scope: Literal["Node", "Domains"]
    """Whether the victims may be on other nodes, too."""
    dry_run: bool
    """Whether to answer as if the pods were placed, without storing anything."""


def camel_cased(options: Mapping[str, Any]) -> dict[str, Any]:
    """Convert option names to the API's: `on_unschedulable` becomes `onUnschedulable`."""
    return {_camel(name): value for name, value in options.items()}


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(part.capitalize() for part in others)
