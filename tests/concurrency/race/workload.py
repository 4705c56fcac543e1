"""What the planners race for: a nearly full cluster, and groups of pods with rules of their own."""

import random
from collections.abc import Iterable, Iterator
from typing import Any

Manifest = dict[str, Any]

ZONES = 3
NODES = 270
PODS_PER_NODE = 56
FULL = 0.9
SLOTS = NODES * PODS_PER_NODE
FILLER_NAMESPACES = 144
KINDS = ("together", "apart", "even", "gang")
RIVALS = 3
"""Callers, each at another planner, that place the pods of one group at the same time."""
FIRST = 1
RESTS = (5, 15, 50, 150)
"""Pods that each of them asks for: one, so that all want to be the first, then so many, by chance."""
APART_MAX = 40
"""The most of those of a group that needs a host for each pod."""
GROUP_PODS = RIVALS * (FIRST + sum(RESTS) // len(RESTS))
"""Of a group, on average."""
_CPU = "250m"
_CONTAINERS = [{"name": "main", "resources": {"requests": {"cpu": _CPU}}}]


def nodes() -> Iterator[Manifest]:
    for i in range(NODES):
        labels = {"zone": f"z{i % ZONES}", "host": f"n{i}"}
        allocatable = {"cpu": str(PODS_PER_NODE // 4), "memory": "64Gi", "pods": "110"}
        yield {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": f"n{i}", "labels": labels},
            "status": {"allocatable": allocatable},
        }


def fillers() -> Iterator[Manifest]:
    """Namespaces with pods that have their nodes: so full is the cluster at the beginning."""
    for number in range(FILLER_NAMESPACES):
        yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": f"filler-{number}"}}
    for i in range(int(SLOTS * FULL)):
        number = i // NODES * FILLER_NAMESPACES // (int(SLOTS * FULL) // NODES)
        filler = _pod(f"filler-{number}", f"filler-{i}", {"app": "filler"}, {})
        filler["spec"]["nodeName"] = f"n{i % NODES}"
        yield {"apiVersion": "v1", "kind": "Pod", **filler}


def namespace_of(number: int) -> str:
    return f"{KINDS[number % len(KINDS)]}-{number}"


def member(number: int, name: str) -> Manifest:
    """A pod of the group of this number, in the group's own namespace; the kinds take turns."""
    return members(number, [name])[0]


def members(number: int, names: Iterable[str]) -> list[Manifest]:
    """Some pods of a group, which differ in their names; they share the rest, to need little memory."""
    namespace = namespace_of(number)
    labels, rules = {"app": namespace}, _rules(number, namespace)
    return [_pod(namespace, f"{namespace}-{name}", labels, rules) for name in names]


def rest_of(number: int, chance: random.Random) -> int:
    """How many pods each caller asks for at once when the first ones are there."""
    rest = chance.choice(RESTS)
    return rest if is_shared(number) else min(rest, APART_MAX)


def is_shared(number: int) -> bool:
    """Whether the rest of the group is asked for at several planners at the same time.

    Else it is asked for at one after the other, each of which must not overlook what those before
    it have done a moment ago.
    """
    return KINDS[number % len(KINDS)] != "apart"


def is_gang(number: int) -> bool:
    return KINDS[number % len(KINDS)] == "gang"


def _rules(number: int, app: str) -> Manifest:
    selector = {"matchLabels": {"app": app}}
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    match KINDS[number % len(KINDS)]:
        case "together" | "gang":
            term = {"topologyKey": "zone", "labelSelector": selector}
            return {"affinity": {"podAffinity": {required: [term]}}}
        case "apart":
            term = {"topologyKey": "host", "labelSelector": selector}
            return {"affinity": {"podAntiAffinity": {required: [term]}}}
        case _:
            constraint = {
                "maxSkew": 1,
                "topologyKey": "zone",
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": selector,
            }
            return {"topologySpreadConstraints": [constraint]}


def _pod(namespace: str, name: str, labels: dict[str, str], rules: Manifest) -> Manifest:
    return {
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "spec": {"containers": _CONTAINERS, **rules},
    }
