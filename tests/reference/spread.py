"""PodTopologySpread: evenly over domains."""

from collections.abc import Iterator
from math import log

from tests.reference.fit import round_half_away
from tests.reference.node_plugins import Rejections, Scores
from tests.reference.selectors import (
    has_untolerated_taint,
    is_empty_selector,
    node_affinity_matches,
    selector_matches,
)
from tests.reference.view import (
    Labels,
    Manifest,
    Verdict,
    View,
    is_terminating,
    labels_of,
    namespace_of,
    spec_of,
)

HOSTNAME = "kubernetes.io/hostname"
UNEVEN = "node(s) didn't match pod topology spread constraints"
MISSING_LABEL = Verdict([f"{UNEVEN} (missing required label)"], unresolvable=True)
TOO_SKEWED = Verdict([UNEVEN], unresolvable=False)


def constraints_of(view: View, pod: Manifest, when_unsatisfiable: str) -> list[Manifest]:
    """The pod's own constraints, or the cluster's defaults if it has none at all."""
    own = spec_of(pod).get("topologySpreadConstraints")
    constraints = own or [default_for(pod, each) for each in view.settings.default_constraints]
    return [
        each
        for each in constraints
        if each.get("whenUnsatisfiable", "DoNotSchedule") == when_unsatisfiable
    ]


def default_for(pod: Manifest, constraint: Manifest) -> Manifest:
    """A default without a selector counts the pods that are labelled alike."""
    if constraint.get("labelSelector") is not None:
        return constraint
    return constraint | {"labelSelector": {"matchLabels": labels_of(pod)}}


def selector_of(constraint: Manifest, pod: Manifest) -> Manifest | None:
    """`labelSelector` narrowed to the pod's own values of `matchLabelKeys`."""
    selector = constraint.get("labelSelector")
    if selector is None:
        return None
    own = [
        {"key": key, "operator": "In", "values": [labels_of(pod)[key]]}
        for key in constraint.get("matchLabelKeys") or []
        if key in labels_of(pod)
    ]
    return selector | {"matchExpressions": (selector.get("matchExpressions") or []) + own}


def matching_pods(view: View, node_name: str, selector: Manifest | None, namespace: str) -> int:
    """Running pods of the namespace on a node; an empty selector counts none."""
    if is_empty_selector(selector):
        return 0
    return sum(
        namespace_of(placed) == namespace
        and not is_terminating(placed)
        and selector_matches(selector, labels_of(placed))
        for placed in view.pods_on[node_name]
    )


def policies_admit(view: View, constraint: Manifest, pod: Manifest, node: Manifest) -> bool:
    """Whether the node takes part in the constraint's domains."""
    affinity_honoured = (constraint.get("nodeAffinityPolicy") or "Honor") == "Honor"
    taints_honoured = (constraint.get("nodeTaintsPolicy") or "Ignore") == "Honor"
    if affinity_honoured and not node_affinity_matches(view, pod, node):
        return False
    return not (taints_honoured and has_untolerated_taint(pod, node))


def has_all_keys(constraints: list[Manifest], labels: Labels) -> bool:
    return all(each["topologyKey"] in labels for each in constraints)


def pods_per_node(
    view: View, pod: Manifest, constraint: Manifest, siblings: list[Manifest]
) -> Iterator[tuple[str, int]]:
    """(domain, matching pods) of each node that takes part."""
    selector = selector_of(constraint, pod)
    for name, node in view.nodes.items():
        labels = labels_of(node)
        if has_all_keys(siblings, labels) and policies_admit(view, constraint, pod, node):
            count = matching_pods(view, name, selector, namespace_of(pod))
            yield labels[constraint["topologyKey"]], count


def filter_spread(view: View, pod: Manifest) -> Rejections:
    constraints = constraints_of(view, pod, "DoNotSchedule")
    rejections: Rejections = {}
    for constraint in constraints:
        counts: dict[str, int] = {}
        for value, count in pods_per_node(view, pod, constraint, constraints):
            counts[value] = counts.get(value, 0) + count
        enough_domains = len(counts) >= (constraint.get("minDomains") or 1)
        least = min(counts.values()) if enough_domains else 0
        itself = selector_matches(selector_of(constraint, pod), labels_of(pod))
        for name, node in view.nodes.items():
            here = labels_of(node).get(constraint["topologyKey"])
            if here is None:
                rejections.setdefault(name, MISSING_LABEL)
            elif counts.get(here, 0) + itself - least > constraint.get("maxSkew", 1):
                rejections.setdefault(name, TOO_SKEWED)
    return rejections


def score_spread(view: View, pod: Manifest, feasible: list[str]) -> Scores | None:
    constraints = constraints_of(view, pod, "ScheduleAnyway")
    if not constraints:
        return None
    labels = {name: labels_of(view.nodes[name]) for name in feasible}
    counted = [name for name in feasible if has_all_keys(constraints, labels[name])]
    raw = dict.fromkeys(counted, 0.0)
    for constraint in constraints:
        key, max_skew = constraint["topologyKey"], constraint.get("maxSkew", 1)
        pods = soft_counts(view, pod, constraint, constraints, counted)
        domains = len(counted) if key == HOSTNAME else len({labels[each][key] for each in counted})
        for name in counted:
            raw[name] += pods[name] * log(domains + 2) + (max_skew - 1)
    return normalized(feasible, {name: round_half_away(each) for name, each in raw.items()})


def soft_counts(
    view: View, pod: Manifest, constraint: Manifest, siblings: list[Manifest], counted: list[str]
) -> dict[str, int]:
    """Matching pods in each node's domain; for the hostname those on the node itself."""
    key = constraint["topologyKey"]
    if key == HOSTNAME:
        selector, namespace = selector_of(constraint, pod), namespace_of(pod)
        return {name: matching_pods(view, name, selector, namespace) for name in counted}
    counts: dict[str, int] = {}
    for value, count in pods_per_node(view, pod, constraint, siblings):
        counts[value] = counts.get(value, 0) + count
    return {name: counts.get(labels_of(view.nodes[name])[key], 0) for name in counted}


def normalized(feasible: list[str], raw: dict[str, int]) -> Scores:
    """The least loaded gets most; a node without the keys gets nothing."""
    most, least = max(raw.values(), default=0), min(raw.values(), default=0)
    return {
        name: 0
        if name not in raw
        else 100
        if most == 0
        else 100 * (most + least - raw[name]) // most
        for name in feasible
    }
