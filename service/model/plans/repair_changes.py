"""The changes that a repair may suggest to make a pod fit."""

from typing import Any

import msgspec

from service.model.core.primitives import Taint
from service.model.pods.pod import Toleration


class RepairChange(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", tag_field="op", omit_defaults=True
):
    """Base class of changes that a repair may suggest."""


class DropRule(RepairChange, frozen=True, kw_only=True):
    """The pod gives up one of its required rules."""

    path: str
    """Where the pod's manifest has the rule. A constraint on topology spread need not go: it is enough
    that it becomes `ScheduleAnyway`."""


class AddToleration(RepairChange, frozen=True, kw_only=True):
    """The pod tolerates a taint."""

    toleration: Toleration
    """What is to be added to `spec.tolerations`."""


class LowerRequest(RepairChange, frozen=True, kw_only=True):
    """The pod requests less of a resource, in all its containers together."""

    resource: str
    """The resource."""
    from_amount: str = msgspec.field(name="from")
    """What it requests now."""
    to: str
    """The most that it may request; 0: nothing at all."""


class UncordonNodes(RepairChange, frozen=True, kw_only=True):
    """Nodes take new pods again."""

    names: tuple[str, ...]
    """The nodes."""


class SetLabels(RepairChange, frozen=True, kw_only=True):
    """Nodes get labels beside those that they have."""

    names: tuple[str, ...]
    """The nodes."""
    labels: dict[str, str]
    """The labels."""


class SetTaints(RepairChange, frozen=True, kw_only=True):
    """Nodes get these taints in place of those that they have."""

    names: tuple[str, ...]
    """The nodes."""
    taints: tuple[Taint, ...]
    """All taints that the nodes have then."""


class AddNodes(RepairChange, frozen=True, kw_only=True):
    """A node comes, like one that is there but empty."""

    template: dict[str, Any]
    """The node. The new one is named `<name>-0`, which is its hostname label if the template has one."""
    count: int
    """How many come: one."""


class RemovePods(RepairChange, frozen=True, kw_only=True):
    """Placed pods go."""

    namespace: str
    """The namespace of these pods."""
    names: tuple[str, ...]
    """The pods."""


AnyRepairChange = (
    DropRule
    | AddToleration
    | LowerRequest
    | UncordonNodes
    | SetLabels
    | SetTaints
    | AddNodes
    | RemovePods
)
"""Any change that a repair may suggest."""
