"""Topology spread constraints of pods, and what default constraints derive their selectors from."""

from typing import Any

from tools.oracle.generators.draws import Draws, Labels, Manifest
from tools.oracle.generators.labels import (
    HOSTNAME,
    POD_LABELS,
    RACK,
    REGION,
    ZONE,
    matching,
    selector,
)

KEYS = (HOSTNAME, ZONE, ZONE, REGION, RACK, "example.com/pool")
HARD, SOFT = "DoNotSchedule", "ScheduleAnyway"
OWNERS = {
    "ReplicaSet": ("apps/v1", "replicaSets"),
    "StatefulSet": ("apps/v1", "statefulSets"),
    "ReplicationController": ("v1", "replicationControllers"),
}


def constraint(draws: Draws, labels: Labels, *, hard_share: float = 0.5) -> Manifest:
    """Draw a constraint, as a pod with these labels has it."""
    hard = draws.happens(hard_share)
    drawn: dict[str, Any] = {
        "maxSkew": draws.weighted({1: 5, 2: 3, 5: 1}),
        "topologyKey": draws.choice(KEYS),
        "whenUnsatisfiable": HARD if hard else SOFT,
    }
    if not draws.happens(0.05):
        own = draws.happens(0.6)
        drawn["labelSelector"] = matching(draws, labels) if own else selector(draws, POD_LABELS)
        mentioned = {*drawn["labelSelector"].get("matchLabels", {})}
        mentioned |= {each["key"] for each in drawn["labelSelector"].get("matchExpressions", [])}
        free = [key for key in ("pod-template-hash", "version", "absent") if key not in mentioned]
        if free and draws.happens(0.25):
            drawn["matchLabelKeys"] = draws.some(free, 1, 2)
    if hard and draws.happens(0.35):
        drawn["minDomains"] = draws.randint(1, 5)
    for field in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
        if draws.happens(0.35):
            drawn[field] = draws.choice(("Honor", "Ignore"))
    return drawn


def add_constraints(draws: Draws, manifest: Manifest, hard_share: float = 0.5) -> None:
    """Add constraints, no two of them with the same key and the same action."""
    labels = manifest["metadata"].get("labels") or {}
    drawn = {}
    for _ in range(draws.weighted({1: 4, 2: 3, 3: 1})):
        item = constraint(draws, labels, hard_share=hard_share)
        drawn[item["topologyKey"], item["whenUnsatisfiable"]] = item
    manifest["spec"]["topologySpreadConstraints"] = list(drawn.values())


def default_config(draws: Draws) -> Manifest:
    """Draw the arguments of the plugin: the built-in defaults, or a list."""
    if draws.happens(0.6):
        return {"defaultSpread": "System"}
    drawn = {}
    for _ in range(draws.randint(1, 3)):
        item: dict[str, Any] = {
            "maxSkew": draws.randint(1, 3),
            "topologyKey": draws.choice(KEYS),
            "whenUnsatisfiable": draws.choice((HARD, SOFT, SOFT)),
        }
        drawn[item["topologyKey"], item["whenUnsatisfiable"]] = item
    return {"defaultSpread": "List", "defaultConstraints": list(drawn.values())}


def services(draws: Draws, manifest: Manifest) -> list[Manifest]:
    """Draw services, most of which select a pod."""
    namespace, labels = manifest["metadata"]["namespace"], manifest["metadata"]["labels"]
    drawn = []
    for number in range(draws.randint(0, 3)):
        keys = draws.some(list(labels), 0, 2)
        wanted = {key: labels[key] for key in keys}
        if draws.happens(0.15):
            wanted["app"] = draws.choice(POD_LABELS["app"])
        spec = {} if draws.happens(0.08) else {"selector": wanted}
        where = namespace if draws.happens(0.85) else "prod"
        drawn.append({"metadata": {"name": f"s{number}", "namespace": where}, "spec": spec})
    return drawn


def add_owner(draws: Draws, manifest: Manifest) -> Manifest:
    """Give a pod an owner, and return lists of objects with it, if it exists."""
    kind = draws.choice(list(OWNERS))
    version, plural = OWNERS[kind]
    if draws.happens(0.1):
        version = "extensions/v1beta1"
    labels = manifest["metadata"]["labels"]
    reference: dict[str, Any] = {"apiVersion": version, "kind": kind, "name": "owner", "uid": "o"}
    if draws.happens(0.9):
        reference["controller"] = True
    manifest["metadata"]["ownerReferences"] = [reference]
    if draws.happens(0.1):
        return {}
    wanted = matching(draws, labels) if draws.happens(0.8) else selector(draws, POD_LABELS)
    wanted = wanted or {"matchLabels": {"app": "web"}}
    selects: Manifest = wanted.get("matchLabels") or {"app": "web"}
    metadata = {"name": "owner", "namespace": manifest["metadata"]["namespace"], "uid": "o"}
    spec = {"selector": selects if kind == "ReplicationController" else wanted}
    return {plural: [{"metadata": metadata, "spec": spec}]}
