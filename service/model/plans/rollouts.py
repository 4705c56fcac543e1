"""The surge and unavailability bounds of a rollout, as for Deployments."""

from collections.abc import Mapping
from typing import NamedTuple

from service.model.core.percentages import (
    amount,
    amount_of_whole,
    scaled_down,
    scaled_up,
)
from service.model.core.primitives import Strict
from service.model.core.validators import Problems, Record, Rule, at

DEFAULT_AMOUNT = "25%"
"""The default `maxSurge` and `maxUnavailable`, as for a Deployment."""


class PodOwner(Strict, frozen=True, kw_only=True):
    """Who manages pods, as their `ownerReferences` name it."""

    kind: str
    """Kind of the owner, such as ReplicaSet."""
    name: str
    """Name of the owner."""


class RolloutBounds(NamedTuple):
    """The most pods, and the fewest available pods, that a rollout allows between two waves."""

    pods_max: int
    available_min: int


def bounds_of(
    replicas: int, max_surge: int | str | None, max_unavailable: int | str | None
) -> RolloutBounds:
    """Return the bounds of a rollout with this many replicas; None stands for a field's default.

    Rounding follows `ResolveFenceposts` in Kubernetes' `pkg/controller/deployment/util`: the surge
    is rounded up, unavailability is rounded down, and if both are 0, one pod may be unavailable.
    """
    surge = scaled_up(_or_default(max_surge), replicas)
    unavailable = scaled_down(_or_default(max_unavailable), replicas)
    if not surge and not unavailable:
        unavailable = 1
    return RolloutBounds(replicas + surge, max(replicas - unavailable, 0))


def _or_default(given: int | str | None) -> int | str:
    return DEFAULT_AMOUNT if given is None else given


AMOUNTS: Mapping[str, Rule] = {"maxSurge": amount, "maxUnavailable": amount_of_whole}
"""The validation rules of the two fields, by their names in manifests."""


def is_possible(goal: Record, path: str, problems: Problems) -> None:
    """Check that the bounds let the rollout progress, as Kubernetes does for Deployments."""
    if _is_nothing(goal.get("maxSurge")) and _is_nothing(goal.get("maxUnavailable")):
        problems.add(at(path, "maxUnavailable"), "must not be 0 if maxSurge is 0", 0)


def selects_pods(goal: Record, path: str, problems: Problems) -> None:
    """Check that the goal selects the pods to replace."""
    if goal.get("selector") is None and goal.get("owner") is None:
        problems.add(path, "must have at least one of selector, owner")


def _is_nothing(given: object) -> bool:
    if isinstance(given, str):
        return given.endswith("%") and set(given[:-1]) == {"0"}
    return given == 0 and not isinstance(given, bool)
