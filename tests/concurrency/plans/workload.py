"""A cluster on which plans take from each other: zones with spread pods, budgets, and little room."""

from collections.abc import Iterator
from typing import Any

from tests.builders import HOST, Manifest, matching, node, pod

ZONE = "zone"
ZONES = 3
NODES = 18
DRAINED = tuple(f"n{number}" for number in range(NODES))
"""Every node is drained at times; from n0 the anchor never leaves."""
WANTED = {"web": 24, "db": 5, "cache": 6, "job": 34}
"""How many pods of each application are kept running."""
RELEASED = "svc"
REPLICAS, SURGE, UNAVAILABLE = 8, 2, 1
BUDGETS = {"web": 20, "db": 4, "cache": 4, RELEASED: 5}
STAYING = ("anchor", "needs")
_KEPT = 10
"""The priority of what nobody preempts."""
_URGENT = 5


def nodes() -> Iterator[Manifest]:
    for number, name in enumerate(DRAINED):
        made = node(name).label({HOST: name, ZONE: f"z{number % ZONES}"})
        yield {"apiVersion": "v1", "kind": "Node", **made.allocatable(cpu="8", pods="40")}


def fixtures() -> Iterator[Manifest]:
    """Budgets, and a static pod that needs another one beside it, which therefore has to stay."""
    for app, least in BUDGETS.items():
        yield {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": app, "namespace": "default"},
            "spec": {"minAvailable": least, "selector": matching(app=app)},
        }
    yield {"apiVersion": "v1", "kind": "Pod", **pod("anchor").label(app="anchor").on("n0")}
    needs = pod("needs").require_affinity(HOST, matching(app="anchor")).on("n0")
    needs["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "1"}
    yield {"apiVersion": "v1", "kind": "Pod", **needs}


def member(app: str, name: str) -> dict[str, Any]:
    """A pod of an application."""
    made = pod(name).label(app=app).request(cpu="1")
    itself = matching(app=app)
    match app:
        case "web":
            made = made.priority(_KEPT).spread(2, ZONE, itself)
        case "db":
            made = made.priority(_KEPT).require_anti_affinity(HOST, itself)
        case "cache":
            made = made.priority(_KEPT).require_affinity(ZONE, itself)
        case "urgent":
            made = made.priority(_URGENT).request(cpu="6")
        case _:
            made = made.request(cpu="2")
    return dict(made)


def release(version: int) -> dict[str, Any]:
    """A plan that replaces all pods of the released application by those of a version."""
    template = pod(f"{RELEASED}-v{version}").label(app=RELEASED, version=str(version))
    spread = template.request(cpu="1").priority(_KEPT)
    goal = {
        "type": "Replace",
        "namespace": "default",
        "selector": matching(app=RELEASED),
        "template": dict(spread.spread(2, ZONE, matching(app=RELEASED))),
        "replicas": REPLICAS,
        "maxSurge": SURGE,
        "maxUnavailable": UNAVAILABLE,
    }
    return {
        "apiVersion": "moorage.dev/v1alpha1",
        "kind": "Plan",
        "metadata": {"name": f"release-{version}"},
        "spec": {"goal": goal},
    }
