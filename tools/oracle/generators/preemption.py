"""Clusters without room for a pod: priorities, budgets, start times, and nominated pods."""

from collections.abc import Sequence

from tools.oracle.generators import nodes, pods
from tools.oracle.generators.draws import Draws, Manifest
from tools.oracle.generators.labels import HOSTNAME, POD_LABELS, selector
from tools.oracle.generators.resources import MIB

PRIORITIES = (-10, 0, 0, 5, 10, 100)
HIGH = 1000
ROOM = (4000, 8000)
"""Cpu of a node, in milli."""


def small_nodes(draws: Draws, least: int = 2, most: int = 6) -> list[Manifest]:
    """Draw nodes that a few pods fill; some have taints or a cordon."""
    drawn = nodes.plain_nodes(draws, least, most)
    for node in drawn:
        room = {"cpu": f"{draws.choice(ROOM)}m", "memory": "16Gi", "pods": "20"}
        node["metadata"]["labels"][HOSTNAME] = node["metadata"]["name"]
        node["status"] = {"capacity": dict(room), "allocatable": room}
    return drawn


def filling(
    draws: Draws, on: Sequence[Manifest], ruled: pods.Ruling | None = None
) -> list[Manifest]:
    """Draw pods that fill the nodes, each with a start time of its own."""
    drawn = []
    for node in on:
        left = int(node["status"]["allocatable"]["cpu"].removesuffix("m"))
        while left > 0 and len(drawn) < pods.PLACED_MAX:
            cpu = min(left, draws.choice((250, 600, 1000, 1400, 2000)))
            left -= cpu
            manifest = pods.pod(draws, f"p{len(drawn)}")
            requested = {"cpu": f"{cpu}m", "memory": str(draws.choice((64, 256, 1024)) * MIB)}
            manifest["spec"]["containers"][0]["resources"] = {"requests": requested}
            manifest["spec"]["nodeName"] = node["metadata"]["name"]
            manifest["status"] = {"startTime": _start(len(drawn))}
            if draws.happens(0.85):
                manifest["spec"]["priority"] = draws.choice(PRIORITIES)
            if draws.happens(0.07):
                manifest["metadata"]["deletionTimestamp"] = pods.DELETED
            if ruled is not None:
                ruled(draws, manifest)
            drawn.append(manifest)
    times = [manifest["status"]["startTime"] for manifest in drawn]
    draws.shuffle(times)
    for manifest, time in zip(drawn, times, strict=True):
        manifest["status"]["startTime"] = time
    return drawn


def _start(number: int) -> str:
    return f"2025-11-{10 + number // 24:02}T{number % 24:02}:{number % 60:02}:00Z"


def incoming(draws: Draws) -> Manifest:
    """Draw a pod for which there is no room."""
    manifest = pods.pod(draws, pods.INCOMING)
    cpu = draws.choice((1500, 2500, 3500, 4000, 6000, 9000))
    manifest["spec"]["containers"][0]["resources"] = {"requests": {"cpu": f"{cpu}m"}}
    if draws.happens(0.92):
        manifest["spec"]["priority"] = draws.choice((HIGH, HIGH, 10, 5, 0))
    if draws.happens(0.12):
        policy = draws.choice(("Never", "PreemptLowerPriority"))
        manifest["spec"]["preemptionPolicy"] = policy
    return manifest


def budgets(draws: Draws, placed: Sequence[Manifest]) -> list[Manifest]:
    """Draw disruption budgets, some with pods whose eviction is under way."""
    drawn = []
    for number in range(draws.randint(0, 4)):
        spec: Manifest = {"maxUnavailable": 1}
        if draws.happens(0.92):
            spec["selector"] = selector(draws, POD_LABELS)
        status: Manifest = {"disruptionsAllowed": draws.choice((0, 0, 1, 2))}
        if placed and draws.happens(0.2):
            name = draws.choice(placed)["metadata"]["name"]
            status["disruptedPods"] = {name: "2026-01-01T00:00:00Z"}
        namespace = draws.choice(("default", "default", "prod", "team-a"))
        metadata = {"name": f"budget-{number}", "namespace": namespace}
        drawn.append({"metadata": metadata, "spec": spec, "status": status})
    return drawn


def nominate(draws: Draws, on: Sequence[Manifest], number: int) -> Manifest:
    """Draw a pod that waits for room on a node."""
    manifest = pods.pod(draws, f"nominated-{number}")
    cpu = draws.choice((500, 1000, 2000, 4000))
    manifest["spec"]["containers"][0]["resources"] = {"requests": {"cpu": f"{cpu}m"}}
    manifest["spec"]["priority"] = draws.choice((HIGH, HIGH + 1, *PRIORITIES))
    name = draws.choice(on)["metadata"]["name"]
    manifest["status"] = {"nominatedNodeName": name if draws.happens(0.9) else pods.ABSENT_NODE}
    return manifest


def nominate_incoming(draws: Draws, manifest: Manifest, placed: Sequence[Manifest]) -> None:
    """Nominate a node for the incoming pod, and have victims there terminate."""
    victim = draws.choice(placed)
    manifest["status"] = {"nominatedNodeName": victim["spec"]["nodeName"]}
    victim["metadata"]["deletionTimestamp"] = pods.DELETED
    if draws.happens(0.7):
        reason = draws.choice(("PreemptionByScheduler", "PreemptionByScheduler", "EvictionByAPI"))
        condition = {"type": "DisruptionTarget", "status": draws.choice(("True", "True", "False"))}
        victim["status"]["conditions"] = [condition | {"reason": reason}]
