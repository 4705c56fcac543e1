"""What clients ask for: a small crowded cluster in which nearly everything concerns everything."""

import random
from functools import cache
from typing import Any

import msgspec

from service.model.registry.manifests import TemplateCache, parse_any, parse_pod
from tests.builders import (
    REQUIRED_DURING_EXECUTION,
    Manifest,
    PodBuilder,
    matching,
    namespace,
    node,
    pod,
    requirement,
    where,
)

HOST, ZONE = "host", "zone"
NAMESPACES = ("shop", "lab", "kube-system")
MARK = "simulation/call"
POD_GROUP_LABEL = "scheduling.x-k8s.io/pod-group"
TEMPLATES = TemplateCache()
"""Shared by all seeds: what a template means does not depend on the run."""
OTHER_CLUSTER = "other"
FOREIGN = "canary-of-the-other-cluster"


def marked(manifest: Manifest, number: int) -> Manifest:
    """The manifest with the number of the operation that sends it, which scheduling ignores."""
    metadata = manifest["metadata"] | {"annotations": {MARK: str(number)}}
    return {**manifest, "metadata": metadata}


def node_manifest(source: random.Random, name: str, zones: int) -> Manifest:
    made = node(name).label(host=name, team=source.choice(("red", "blue")))
    if source.random() < 0.95:
        made = made.label(zone=f"z{source.randrange(zones)}")
    if source.random() < 0.5:
        made = made.label(disk="ssd")
    if source.random() < 0.1:
        made = made.taint("dedicated", "db")
    return {"apiVersion": "v1", "kind": "Node"} | made.allocatable(
        cpu=source.choice(("1", "2", "4")), memory="4Gi", pods=source.choice(("3", "6", "20"))
    )


def namespace_manifest(source: random.Random, name: str) -> Manifest:
    made = namespace(name).label(team=source.choice(("red", "blue")))
    return {"apiVersion": "v1", "kind": "Namespace"} | made


@cache
def shape(number: int, app: str) -> PodBuilder:
    """A pod without a name, of one of the kinds that races could break."""
    bare = pod("x").label(app=app).request(cpu="200m")
    itself = matching(app=app)
    lasting = {"execution": REQUIRED_DURING_EXECUTION}
    shapes = (
        bare.require_affinity(ZONE, itself),
        bare.require_anti_affinity(HOST, itself),
        bare.spread(1, ZONE),
        bare.require_anti_affinity(
            ZONE, matching(app="app-0"), namespaceSelector=matching(team="red")
        ),
        bare.request(cpu="700m"),
        bare.require_anti_affinity(HOST, matching(app="app-1")),
        bare.require_affinity(
            ZONE, where("app", "In", "app-0", "app-1"), namespaceSelector=matching(team="red")
        ),
        bare.require_node(requirement("disk", "In", "ssd")).spread(1, HOST),
        bare.host_port(8080),
        bare.spread(2, ZONE, minDomains=2).prefer_affinity(10, ZONE, itself),
        bare.tolerate("dedicated").node_selector(team="red"),
        bare.require_node(requirement("disk", "In", "ssd"), **lasting),
        bare.require_affinity(
            ZONE, where("app", "In", "app-0", "app-1"), toleranceSeconds=2, **lasting
        ),
        bare.require_anti_affinity(ZONE, matching(app="app-1"), **lasting),
        bare.priority(5).require_anti_affinity(
            ZONE, itself, namespaceSelector=matching(team="red"), **lasting
        ),
        bare.require_node(requirement("disk", "In", "ssd")).require_affinity(
            ZONE, itself, **lasting
        ),
    )
    return shapes[number % len(shapes)]


SHAPES = 16
LASTING = range(11, SHAPES)
"""Those with rules that are required during execution."""


@cache
def group_shape(number: int, app: str) -> tuple[PodBuilder, ...]:
    """The members of a group, which only make sense together."""
    x, y = f"{app}-x", f"{app}-y"
    bare = pod("x").request(cpu="200m")
    alone = bare.label(app=app).require_anti_affinity(HOST, matching(app=app))
    groups = (
        (
            bare.label(app=x).require_affinity(ZONE, matching(app=y)),
            bare.label(app=y).require_affinity(ZONE, matching(app=x)),
        ),
        (alone, alone),
        (alone, alone, alone),
        (bare.label(app=app).spread(1, ZONE),) * 3,
    )
    return groups[number % len(groups)]


GROUPS = 4


@cache
def _named(shaped_json: bytes, name: str, inside: str) -> dict[str, Any]:
    made = msgspec.json.decode(shaped_json)
    made["metadata"] |= {"name": name, "namespace": inside}
    return dict(made)


@cache
def _json_of(number: int, app: str, member: int | None) -> bytes:
    made = shape(number, app) if member is None else group_shape(number, app)[member]
    return msgspec.json.encode(dict(made))


def pod_manifest(number: int, app: str, name: str, inside: str) -> Manifest:
    return _named(_json_of(number, app, None), name, inside)


def group_manifests(number: int, app: str, name: str, inside: str) -> list[Manifest]:
    return [
        _named(_json_of(number, app, member), f"{name}-{member}", inside)
        for member in range(len(group_shape(number, app)))
    ]


def pod_group_manifest(source: random.Random, name: str, inside: str) -> Manifest:
    return {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": inside},
        "spec": {"minMember": source.choice((2, 2, 3, 4))},
    }


def member_manifest(source: random.Random, group: str, inside: str) -> Manifest:
    made = pod(f"{group}-m{source.randrange(6)}", inside).label({POD_GROUP_LABEL: group})
    sized = made.label(app=group).request(cpu=source.choice(("100m", "300m", "900m")))
    apart = sized.require_anti_affinity(HOST, matching(app=group))
    return {"kind": "Pod", **source.choice((sized, sized, apart))}


def parsed_pods(manifests: list[Manifest]) -> tuple[Any, ...]:
    return tuple(
        parse_pod(msgspec.json.encode(each), TEMPLATES, to_place=True) for each in manifests
    )


def parsed(manifest: Manifest) -> Any:
    return parse_any(msgspec.json.encode(dict(manifest)), TEMPLATES)


def quota_manifest(source: random.Random, name: str, inside: str) -> Manifest:
    """Sometimes for some pods only, and often full."""
    hard, scopes = source.choice(
        (
            ({"pods": str(source.randrange(2, 9))}, []),
            ({"requests.cpu": source.choice(("800m", "1600m")), "count/pods": "12"}, []),
            ({"cpu": "1200m", "pods": "20"}, ["NotBestEffort"]),
            ({"pods": source.choice(("0", "3"))}, ["CrossNamespacePodAffinity"]),
            ({"pods": "1"}, ["BestEffort"]),
        )
    )
    metadata = {"name": name, "namespace": inside}
    spec: Manifest = {"hard": hard} | ({"scopes": scopes} if scopes else {})
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": spec}


def budget_manifest(inside: str) -> Manifest:
    """Some pods of the namespace have to stay, whatever rule they break."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "kept", "namespace": inside},
        "spec": {"minAvailable": 4, "selector": {}},
    }


def hermit_manifest(source: random.Random, name: str, inside: str) -> Manifest:
    """A pod that wants a node, a zone or the whole cluster for itself."""
    made = pod(name, inside).label(app="hermit").request(cpu="100m")
    key = source.choice((HOST, HOST, ZONE, "team", "nowhere"))
    made = made.require_anti_affinity(key, {}, namespaceSelector={})
    if source.random() < 0.3:
        made = made.require_anti_affinity(HOST, {}, namespaceSelector={})
    if source.random() < 0.4:
        made = made.node_selector(team=source.choice(("red", "blue")))
    return {"kind": "Pod", **made}


def hermit_quota(source: random.Random, name: str, inside: str) -> Manifest:
    """How much pods may keep from others."""
    hard = source.choice(
        (
            {"opportunity.cpu": source.choice(("3", "6", "12"))},
            {"opportunity.memory": source.choice(("4Gi", "12Gi", "20Gi"))},
            {"opportunity.nodes": source.choice(("1", "3", "5")), "opportunity.cpu": "20"},
        )
    )
    metadata = {"name": name, "namespace": inside}
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": metadata,
        "spec": {"hard": hard},
    }


def config_patch(source: random.Random) -> dict[str, Any]:
    """A setting that changes what may go where."""
    crossing = {
        "resource": "pods",
        "matchScopes": [{"scopeName": "CrossNamespacePodAffinity", "operator": "Exists"}],
    }
    spread = {
        "topologyKey": ZONE,
        "maxSkew": 1,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {},
        "matchLabelKeys": ["app"],
    }
    changes: tuple[dict[str, Any], ...] = (
        {"daemonNamespaces": ["lab"]},
        {"daemonNamespaces": []},
        {"defaultTopologySpreadConstraints": [spread]},
        {"defaultTopologySpreadConstraints": []},
        {"requiredAffinityTerms": "PerTerm"},
        {"requiredAffinityTerms": None},
        {"scoringStrategy": "MostAllocated"},
        {"limitedResources": [crossing]},
        {"limitedResources": []},
        {"antiAffinityVictim": "LowestPriority"},
        {"antiAffinityVictim": "RuleOwner"},
        {"affinityViolationGraceSeconds": source.choice((0, 1, 3))},
        {"evictionsPerMinute": source.choice((1, 3, 60))},
    )
    return source.choice(changes)


def numbered(number: int) -> dict[str, Any]:
    """A setting that changes nothing here, by which each patch is known."""
    return {"groupSearchSteps": 10_000 + number}
