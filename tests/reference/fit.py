"""NodeResourcesFit and NodeResourcesBalancedAllocation."""

from math import copysign, trunc

from tests.reference.node_plugins import Rejections, Scores
from tests.reference.resources import (
    Whole,
    amounts,
    nonzero_requests,
    requests,
    whole,
    without_pod_level,
)
from tests.reference.view import Manifest, Verdict, View, status_of

CORE = ("cpu", "memory", "ephemeral-storage")


def allocatable_of(node: Manifest) -> Whole:
    """`capacity` where `allocatable` is absent."""
    status = status_of(node)
    declared = status.get("allocatable")
    return whole(amounts(status.get("capacity") if declared is None else declared))


def is_scalar(resource: str) -> bool:
    """Extended resources, huge pages and attachable volumes; other names are not resources."""
    return "/" in resource or resource.startswith(("hugepages-", "attachable-volumes-"))


def used_on(view: View, node_name: str) -> Whole:
    total: Whole = {}
    for pod in view.pods_on[node_name]:
        for resource, amount in requests(
            pod, placed=True, kubernetes=view.settings.kubernetes
        ).items():
            total[resource] = total.get(resource, 0) + amount
    return total


def filter_fit(view: View, pod: Manifest) -> Rejections:
    wanted = requests(pod)
    resources = [*CORE, *sorted(filter(is_scalar, wanted))]
    rejections = {}
    for name, node in view.nodes.items():
        allocatable, used = allocatable_of(node), used_on(view, name)
        lacking = [
            resource
            for resource in resources
            if wanted.get(resource, 0) > 0
            and wanted[resource] > allocatable.get(resource, 0) - used.get(resource, 0)
        ]
        full = len(view.pods_on[name]) + 1 > allocatable.get("pods", 0)
        reasons = ["Too many pods"] * full + [f"Insufficient {each}" for each in lacking]
        if reasons:
            hopeless = any(wanted[each] > allocatable.get(each, 0) for each in lacking)
            rejections[name] = Verdict(reasons, unresolvable=hopeless)
    return rejections


def round_half_away(number: float) -> int:
    cut = trunc(number)
    return cut + int(copysign(1, number)) if abs(number - cut) >= 0.5 else cut


def truncated_quotient(dividend: int, divisor: int) -> int:
    """Division as Go does it: toward zero."""
    quotient = abs(dividend) // abs(divisor)
    return quotient if (dividend < 0) == (divisor < 0) else -quotient


def along_shape(shape: list[Manifest], utilization: int) -> int:
    """The broken line through the points, scores scaled from 0..10 to 0..100."""
    points = [(point["utilization"], point["score"] * 10) for point in shape]
    for number, (x, y) in enumerate(points):
        if utilization <= x:
            if number == 0:
                return y
            left, low = points[number - 1]
            return low + truncated_quotient((y - low) * (utilization - left), x - left)
    return points[-1][1]


def resource_score(view: View, want: int, allocatable: int) -> int:
    match view.settings.scoring_strategy:
        case "LeastAllocated":
            return (allocatable - want) * 100 // allocatable if want <= allocatable else 0
        case "MostAllocated":
            return min(want, allocatable) * 100 // allocatable
        case "RequestedToCapacityRatio":
            share = want * 100 // allocatable if want <= allocatable else 100
            return along_shape(view.settings.shape, share)
    raise AssertionError(view.settings.scoring_strategy)


def score_fit(view: View, pod: Manifest, feasible: list[str]) -> Scores:
    """Mean over cpu and memory, with defaults for containers that state no request."""
    kubernetes = view.settings.kubernetes
    wanted = nonzero_requests(without_pod_level(pod) if view.settings.follows_code else pod)
    scores = {}
    for name in feasible:
        allocatable = allocatable_of(view.nodes[name])
        placed = [
            nonzero_requests(each, placed=True, kubernetes=kubernetes)
            for each in view.pods_on[name]
        ]
        parts = [
            resource_score(
                view,
                wanted.get(resource, 0) + sum(each.get(resource, 0) for each in placed),
                allocatable[resource],
            )
            for resource in ("cpu", "memory")
            if allocatable.get(resource, 0)
        ]
        scores[name] = mean(view, parts)
    return scores


def mean(view: View, parts: list[int]) -> int:
    """RequestedToCapacityRatio rounds, and leaves out resources that score nothing."""
    if view.settings.scoring_strategy == "RequestedToCapacityRatio":
        parts = [part for part in parts if part > 0]
        return round_half_away(sum(parts) / len(parts)) if parts else 0
    return sum(parts) // len(parts) if parts else 0


def score_balance(view: View, pod: Manifest, feasible: list[str]) -> Scores | None:
    """How close the used shares of cpu and memory are, or from 1.36 on, how much closer they get.

    Skipped for a pod that requests neither.
    """
    wanted = requests(pod)
    if not (wanted.get("cpu") or wanted.get("memory")):
        return None
    scores = {}
    for name in feasible:
        allocatable, used = allocatable_of(view.nodes[name]), used_on(view, name)
        before, after = balance(used, {}, allocatable), balance(used, wanted, allocatable)
        gain = 50 + (50 + after - before) // 2
        scores[name] = after if view.settings.kubernetes == "1.35" else gain
    return scores


def balance(used: Whole, wanted: Whole, allocatable: Whole) -> int:
    """How close the shares of cpu and memory are, from 50 to 100."""
    shares = [
        min(1.0, (used.get(each, 0) + wanted.get(each, 0)) / allocatable[each])
        for each in ("cpu", "memory")
        if allocatable.get(each, 0)
    ]
    gap = abs((shares[0] - shares[1]) / 2) if len(shares) == 2 else 0.0
    return int((1 - gap) * 100)
