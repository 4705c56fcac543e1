"""Repairs: changes to a cluster after which an unschedulable pod fits."""

import msgspec

from service.model.plans.repair_changes import AnyRepairChange
from service.scheduler.protocol.answers import Answer


class RepairMove(msgspec.Struct, frozen=True, kw_only=True):
    """A pod that goes, and the node that would take it then."""

    namespace: str
    """Namespace of the pod."""
    name: str
    """Name of the pod."""
    to: str | None
    """The node that it would get once the other one is there; null if there is none for it."""


class Repair(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Changes after which the pod fits, and of which none can be left out."""

    changes: list[AnyRepairChange]
    """The changes, those of the pod first."""
    places: str
    """The node that the pod then gets."""
    why: str
    """Why these changes help, for people."""
    moves: list[RepairMove] | msgspec.UnsetType = msgspec.UNSET
    """Where the pods that go would find room, one after the other; absent if none goes."""


class RepairsAnswer(Answer, frozen=True, kw_only=True):
    """The repairs of a pod, the least ones first."""

    namespace: str
    """Namespace of the pod."""
    name: str
    """Name of the pod."""
    kubernetes: str
    """The Kubernetes version whose kube-scheduler was followed."""
    fits: bool
    """Whether the pod fits as everything is now; then there are no repairs."""
    message: str | None
    """Why the pod fits nowhere; null if it does."""
    repairs: list[Repair]
    """The repairs, by the number of their changes, in which each pod that goes counts as one."""
    complete: bool
    """Whether the search came to its end; if not, there may be other repairs, and smaller ones."""
    unfinished: str | None
    """What ended the search early; null if nothing did."""
