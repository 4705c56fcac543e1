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
    name_of,
    namespace_of,
    spec_of,
)

HOSTNAME = "kubernetes.io/hostname"
UNEVEN = "node(s) didn't match pod topology spread constraints"
MISSING_LABEL = Verdict([f"{UNEVEN} (missing required label)"], unresolvable=True)
TOO_SKEWED = Verdict([UNEVEN], unresolvable=False)


SYSTEM = [
    {"maxSkew": 3, "topologyKey": HOSTNAME, "whenUnsatisfiable": "ScheduleAnyway"},
    {
        "maxSkew": 5,
        "topologyKey": "topology.kubernetes.io/zone",
        "whenUnsatisfiable": "ScheduleAnyway",
    },
]


def constraints_of(view: View, pod: Manifest, when_unsatisfiable: str) -> list[Manifest]:
    """The pod's own constraints, or the cluster's defaults if it has none at all."""
    constraints = spec_of(pod).get("topologySpreadConstraints") or defaults_for(view, pod)
    return [
        each
        for each in constraints
        if each.get("whenUnsatisfiable", "DoNotSchedule") == when_unsatisfiable
    ]


def takes_system_defaults(view: View, pod: Manifest) -> bool:
    own = spec_of(pod).get("topologySpreadConstraints")
    return not own and view.settings.default_spread == "System"


def defaults_for(view: View, pod: Manifest) -> list[Manifest]:
    """Defaults without a selector have that of the pod's services and owner, or are left out."""
    system = takes_system_defaults(view, pod)
    derived = default_selector(view, pod)
    constraints = []
    for index, each in enumerate(SYSTEM if system else view.settings.default_constraints):
        if each.get("labelSelector") is not None:
            constraints.append(each | {"index": index})
        elif derived is not None:
            taken = {"labelSelector": derived, "matchLabelKeys": None, "index": index}
            constraints.append(each | taken)
    return constraints


def default_selector(view: View, pod: Manifest) -> Manifest | None:
    """None if it would select everything: then there are no defaults."""
    labels: Labels = {}
    for service in objects_in(view, "Service", namespace_of(pod)):
        selector = spec_of(service).get("selector")
        if selector and selector_matches({"matchLabels": selector}, labels_of(pod)):
            labels |= selector
    expressions = []
    owner = owner_of(view, pod)
    if owner is not None and owner["kind"] == "ReplicationController":
        labels |= spec_of(owner).get("selector") or {}
    elif owner is not None:
        selector = spec_of(owner).get("selector") or {}
        equal = (selector.get("matchLabels") or {}).items()
        expressions = [{"key": key, "operator": "In", "values": [value]} for key, value in equal]
        expressions += selector.get("matchExpressions") or []
    derived = {"matchLabels": labels, "matchExpressions": expressions}
    return None if is_empty_selector(derived) else derived


def owner_of(view: View, pod: Manifest) -> Manifest | None:
    """The controller of the pod, if it is there and of a kind that has a selector."""
    kinds = {("v1", "ReplicationController"), ("apps/v1", "ReplicaSet"), ("apps/v1", "StatefulSet")}
    references = pod["metadata"].get("ownerReferences") or []
    for reference in [each for each in references if each.get("controller")][:1]:
        if (reference["apiVersion"], reference["kind"]) in kinds:
            for each in objects_in(view, reference["kind"], namespace_of(pod)):
                if name_of(each) == reference["name"]:
                    return each
    return None


def objects_in(view: View, kind: str, namespace: str) -> list[Manifest]:
    return [
        each for each in view.objects if (each["kind"], namespace_of(each)) == (kind, namespace)
    ]


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


def reaches(view: View, constraint: Manifest, pod: Manifest, namespace: str) -> bool:
    """Whether pods of a namespace count: only of the pod's own, or of those that are selected."""
    selected = constraint.get("namespaceSelector")
    if selected is None:
        return namespace == namespace_of(pod)
    return selector_matches(selected, view.namespace_labels.get(namespace, {}))


def counts_itself(view: View, constraint: Manifest, pod: Manifest) -> bool:
    """Whether the pod adds to the skew."""
    return reaches(view, constraint, pod, namespace_of(pod)) and selector_matches(
        selector_of(constraint, pod), labels_of(pod)
    )


def matching_pods(view: View, node_name: str, constraint: Manifest, pod: Manifest) -> int:
    """Running pods on a node that the pod's constraint counts; an empty selector counts none."""
    selector = selector_of(constraint, pod)
    if is_empty_selector(selector):
        return 0
    uncounted = sum(
        namespace_of(gone) == namespace_of(pod)
        and "namespaceSelector" not in constraint
        and selector_matches(selector, labels_of(gone))
        for gone in view.uncounted.get(node_name, [])
    )
    return -uncounted + sum(
        reaches(view, constraint, pod, namespace_of(placed))
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
    """(domain, matching pods) of each node that takes part: it has the keys of all `siblings`."""
    for name, node in view.nodes.items():
        labels = labels_of(node)
        if has_all_keys(siblings, labels) and policies_admit(view, constraint, pod, node):
            count = matching_pods(view, name, constraint, pod)
            yield labels.get(constraint["topologyKey"], ""), count


def filter_spread(view: View, pod: Manifest) -> Rejections:
    constraints = constraints_of(view, pod, "DoNotSchedule")
    rejections: Rejections = {}
    for constraint in constraints:
        counts: dict[str, int] = {}
        for value, count in pods_per_node(view, pod, constraint, constraints):
            counts[value] = counts.get(value, 0) + count
        enough_domains = len(counts) >= (constraint.get("minDomains") or 1)
        least = min(counts.values()) if enough_domains else 0
        itself = counts_itself(view, constraint, pod)
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
    required = [] if takes_system_defaults(view, pod) else constraints
    labels = {name: labels_of(view.nodes[name]) for name in feasible}
    counted = [name for name in feasible if has_all_keys(required, labels[name])]
    raw = dict.fromkeys(counted, 0.0)
    for constraint in constraints:
        key, max_skew = constraint["topologyKey"], constraint.get("maxSkew", 1)
        pods = soft_counts(view, pod, constraint, required, counted)
        values = {labels[each].get(key, "") for each in counted}
        domains = len(counted) if key == HOSTNAME else len(values)
        for name in counted:
            if key in labels[name]:
                raw[name] += pods[name] * log(domains + 2) + (max_skew - 1)
    return normalized(feasible, {name: round_half_away(each) for name, each in raw.items()})


def soft_counts(
    view: View, pod: Manifest, constraint: Manifest, required: list[Manifest], counted: list[str]
) -> dict[str, int]:
    """Matching pods in each node's domain; for the hostname those on the node itself."""
    key = constraint["topologyKey"]
    if key == HOSTNAME:
        return {name: matching_pods(view, name, constraint, pod) for name in counted}
    counts: dict[str, int] = {}
    for value, count in pods_per_node(view, pod, constraint, required):
        counts[value] = counts.get(value, 0) + count
    return {name: counts.get(labels_of(view.nodes[name]).get(key, ""), 0) for name in counted}


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
