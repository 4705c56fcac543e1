"""Disruption budgets: how many of an application's pods may be unavailable at once."""

from collections.abc import Mapping
from typing import Literal, NamedTuple

import msgspec

from service.model.core import names
from service.model.core.kind import KindSpec
from service.model.core.percentages import amount_of_whole, scaled_up
from service.model.core.primitives import LabelSelector, Partial
from service.model.core.selector_rules import LABEL_SELECTOR
from service.model.core.selectors import is_empty, matches
from service.model.core.type_rules import declared
from service.model.core.validators import (
    INT32_MAX,
    Problems,
    Record,
    at,
    map_of,
    nullable,
    text,
    whole_number,
)
from service.model.pods.pod import Pod

_count = whole_number(0, INT32_MAX)


class PodDisruptionBudgetSpec(Partial, frozen=True, kw_only=True):
    """Whom a budget protects, and how far. Other fields are kept and returned as they are."""

    selector: LabelSelector | None = None
    """Selects the pods; if it is absent, none."""
    min_available: int | str | None = None
    """How many pods, or how much of what is wanted (`50%`), have to stay."""
    max_unavailable: int | str | None = None
    """How many pods, or how much of what is wanted, may be away."""
    unhealthy_pod_eviction_policy: Literal["IfHealthyBudget", "AlwaysAllow"] | None = None
    """Whether a pod that is not ready may be evicted only while enough others are healthy
    (IfHealthyBudget, the default), or always."""


class PodDisruptionBudgetStatus(Partial, frozen=True, kw_only=True):
    """What a budget allows now. For a stored budget it is computed for each answer."""

    disruptions_allowed: int = 0
    """How many of the pods may be evicted now."""
    current_healthy: int = 0
    """How many of the pods are placed, not leaving, and do not report that they are not ready."""
    desired_healthy: int = 0
    """How many of them there have to be."""
    expected_pods: int = 0
    """How many are wanted."""
    disrupted_pods: dict[str, str] = msgspec.field(default_factory=dict)
    """The names of pods whose eviction was allowed already, with the times of that."""


class PodDisruptionBudgetBody(Partial, frozen=True, kw_only=True):
    """The fields of a disruption budget that scheduling reads."""

    spec: PodDisruptionBudgetSpec = PodDisruptionBudgetSpec()
    """Whom it protects, and how far."""
    status: PodDisruptionBudgetStatus = PodDisruptionBudgetStatus()
    """What it allows now."""


class DisruptionBudget(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of a PodDisruptionBudget that preemption reads."""

    namespace: str
    name: str = ""
    selector: LabelSelector | None = None
    """The selector of protected pods; an absent or empty one protects no pod from preemption."""
    disruptions_allowed: int = 0
    """How many pods may be evicted now."""
    disrupted_pods: frozenset[str] = frozenset()
    """The names of pods whose eviction was already allowed, so that the budget ignores them."""

    @property
    def protects_any(self) -> bool:
        """Whether the budget can protect any pod."""
        return self.selector is not None and not is_empty(self.selector)

    def protects(self, pod: Pod) -> bool:
        """Return whether evicting the pod would use up an allowed disruption."""
        return (
            self.protects_any
            and bool(pod.labels)
            and pod.namespace == self.namespace
            and pod.name not in self.disrupted_pods
            and matches(self.selector, pod.labels)
        )


class Need(NamedTuple):
    """The number of pods that must stay healthy, and the number that is expected in total."""

    desired: int
    expected: int


def need_of(spec: PodDisruptionBudgetSpec, *, matching: int, wanted: int) -> Need:
    """Return how many pods must stay, computed like Kubernetes' disruption controller.

    A budget that states neither number expects no pods, so that it allows no disruption.

    Args:
        spec: the budget.
        matching: the number of existing pods that the budget selects.
        wanted: the number of pods that their controllers should run.
    """
    if spec.max_unavailable is not None:
        return Need(max(wanted - scaled_up(spec.max_unavailable, wanted), 0), wanted)
    if isinstance(spec.min_available, int):
        return Need(spec.min_available, matching)
    if spec.min_available is None:
        return Need(0, 0)
    return Need(scaled_up(spec.min_available, wanted), wanted)


def protects_from_eviction(
    spec: PodDisruptionBudgetSpec, pod: Pod, *, healthy: int, desired: int
) -> bool:
    """Return whether evicting a pod that a budget selects takes one of its allowed disruptions.

    The rule is that of Kubernetes' eviction subresource (`pkg/registry/core/pod/storage`).

    Args:
        spec: the budget.
        pod: a placed pod.
        healthy: the number of healthy pods now.
        desired: the number of pods that must stay healthy.
    """
    if not pod.unready:
        return True
    if pod.starting or spec.unhealthy_pod_eviction_policy == "AlwaysAllow":
        return False
    return not healthy >= desired > 0


def _not_both(spec: Record, path: str, problems: Problems) -> None:
    if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
        message = "must not be set together with minAvailable"
        problems.add(at(path, "maxUnavailable"), message, spec["maxUnavailable"])


_SPEC = declared(
    PodDisruptionBudgetSpec,
    {
        "selector": LABEL_SELECTOR,
        "minAvailable": amount_of_whole,
        "maxUnavailable": amount_of_whole,
    },
    also=(_not_both,),
)
_STATUS = declared(
    PodDisruptionBudgetStatus,
    {
        "disruptionsAllowed": _count,
        "currentHealthy": _count,
        "desiredHealthy": _count,
        "expectedPods": _count,
        "disruptedPods": map_of(names.dns_subdomain, nullable(text())),
    },
)
_EXAMPLE: Mapping[str, object] = {
    "metadata": {"name": "web", "namespace": "shop"},
    "spec": {"minAvailable": 2, "selector": {"matchLabels": {"app": "web"}}},
}

POD_DISRUPTION_BUDGET = KindSpec(
    kind="PodDisruptionBudget",
    plural="poddisruptionbudgets",
    api_version="policy/v1",
    body=PodDisruptionBudgetBody,
    fields={"spec": _SPEC, "status": _STATUS},
    computed=True,
    short_names=("pdb",),
    description="Disruption budgets, which preemption violates only where nothing else helps, and "
    "which hold back evictions for rules that are required during execution. "
    "Their `status` says how many pods may be evicted, at the revision of the answer.",
    example=_EXAMPLE,
)
