"""Affinity: of pods to nodes, and of pods to pods, both ways."""

from tools.oracle.generators.draws import Draws, Labels, Manifest
from tools.oracle.generators.labels import (
    HOSTNAME,
    NAMESPACE_LABELS,
    NAMESPACES,
    POD_LABELS,
    TOPOLOGY_KEYS,
    ZONE,
    matching,
    selector,
)
from tools.oracle.generators.nodes import NODE_LABELS, NUMBERS, RACKS, ZONES

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
NODE_VALUES: dict[str, tuple[str, ...]] = {
    **NODE_LABELS,
    ZONE: ZONES,
    HOSTNAME: ("node-1", "node-2", "node-3"),
    "rack": RACKS,
    "absent": ("x",),
}
NODE_OPERATORS = {"In": 6, "NotIn": 3, "Exists": 2, "DoesNotExist": 2}
BOUNDS = (*(value for value in NUMBERS if value.isdigit()), "0", "5")
NAMES = ("node-1", "node-2", "node-3", "node-99")
LABEL_KEYS = ("pod-template-hash", "version", "app", "absent")


# Nodes


def node_requirement(draws: Draws) -> Manifest:
    """Draw a requirement of a label of nodes."""
    if draws.happens(0.2):
        return {
            "key": "cpu-gen",
            "operator": draws.choice(("Gt", "Lt")),
            "values": [draws.choice(BOUNDS)],
        }
    key = draws.choice(list(NODE_VALUES))
    operator = draws.weighted(NODE_OPERATORS)
    if operator in ("Exists", "DoesNotExist"):
        return {"key": key, "operator": operator}
    return {"key": key, "operator": operator, "values": draws.some(NODE_VALUES[key], 1, 3)}


def node_term(draws: Draws, names_share: float = 0.15) -> Manifest:
    """Draw a term of a node selector: requirements of labels, of the name, or none at all."""
    drawn: Manifest = {}
    if draws.happens(0.05):
        return drawn
    if draws.happens(names_share):
        drawn["matchFields"] = [
            {
                "key": "metadata.name",
                "operator": draws.choice(("In", "In", "NotIn")),
                "values": [draws.choice(NAMES)],
            }
        ]
    if not drawn or draws.happens(0.5):
        drawn["matchExpressions"] = [node_requirement(draws) for _ in range(draws.randint(1, 2))]
    return drawn


def add_node_affinity(draws: Draws, manifest: Manifest) -> None:
    """Add a node selector, and required or preferred node affinity."""
    spec = manifest["spec"]
    if draws.happens(0.35):
        keys = draws.some(list(NODE_VALUES), 1, 2)
        spec["nodeSelector"] = {key: draws.choice(NODE_VALUES[key]) for key in keys}
    affinity: Manifest = {}
    if draws.happens(0.7):
        share = draws.choice((0.1, 0.9))
        terms = [node_term(draws, share) for _ in range(draws.randint(1, 3))]
        affinity[REQUIRED] = {"nodeSelectorTerms": terms}
    if draws.happens(0.6):
        affinity[PREFERRED] = [
            {"weight": draws.choice((1, 5, 50, 100)), "preference": node_term(draws)}
            for _ in range(draws.randint(1, 4))
        ]
    if affinity:
        spec.setdefault("affinity", {})["nodeAffinity"] = affinity


# Pods


def pod_term(draws: Draws, labels: Labels, *, widely: bool = False) -> Manifest:
    """Draw a term about other pods, as a pod with these labels has it once it is admitted.

    Many terms match the pod itself. `widely`: namespaces are listed and selected often.
    """
    drawn: Manifest = {"topologyKey": draws.choice((*TOPOLOGY_KEYS, ZONE, HOSTNAME))}
    if not draws.happens(0.05):
        own = draws.happens(0.4)
        drawn["labelSelector"] = matching(draws, labels) if own else selector(draws, POD_LABELS)
        _add_label_keys(draws, drawn, labels)
    share = 0.5 if widely else 0.12
    if draws.happens(share):
        drawn["namespaces"] = draws.some((*NAMESPACES, "unlisted"), 0, 2)
    if draws.happens(share):
        drawn["namespaceSelector"] = {} if draws.happens(0.3) else selector(draws, NAMESPACE_LABELS)
    return drawn


def _add_label_keys(draws: Draws, term: Manifest, labels: Labels) -> None:
    """Add label keys, with what kube-apiserver merges into the selector for them."""
    mentioned = set(term["labelSelector"].get("matchLabels", {}))
    expressions = term["labelSelector"].get("matchExpressions", [])
    mentioned |= {expression["key"] for expression in expressions}
    free = [key for key in LABEL_KEYS if key not in mentioned]
    for field, operator in (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")):
        if free and draws.happens(0.12):
            keys = draws.some(free, 1, 2)
            free = [key for key in free if key not in keys]
            term[field] = keys
            merged = [
                {"key": key, "operator": operator, "values": [labels[key]]}
                for key in keys
                if key in labels
            ]
            if merged:
                known = term["labelSelector"].get("matchExpressions", [])
                term["labelSelector"] = {
                    **term["labelSelector"],
                    "matchExpressions": [*known, *merged],
                }


def weighted_term(draws: Draws, labels: Labels, *, widely: bool = False) -> Manifest:
    """Draw a preferred term with its weight."""
    return {
        "weight": draws.choice((1, 2, 10, 100)),
        "podAffinityTerm": pod_term(draws, labels, widely=widely),
    }


def add_pod_affinity(
    draws: Draws, manifest: Manifest, share: float = 0.5, *, widely: bool = False
) -> None:
    """Add affinity and anti-affinity, required and preferred, each in this share of all pods."""
    labels = manifest["metadata"].get("labels") or {}
    for field in ("podAffinity", "podAntiAffinity"):
        drawn = {}
        if draws.happens(share):
            count = draws.weighted({1: 6, 2: 2, 3: 1})
            drawn[REQUIRED] = [pod_term(draws, labels, widely=widely) for _ in range(count)]
        if draws.happens(share):
            count = draws.randint(1, 3)
            drawn[PREFERRED] = [weighted_term(draws, labels, widely=widely) for _ in range(count)]
        if drawn:
            manifest["spec"].setdefault("affinity", {})[field] = drawn
