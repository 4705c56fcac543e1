"""Pods: placed ones, incoming ones, and what both have besides the rules under test."""

from collections.abc import Callable, Sequence

from tools.oracle.generators import resources
from tools.oracle.generators.draws import Draws, Manifest
from tools.oracle.generators.labels import NAMESPACES, POD_LABELS, labels_of
from tools.oracle.generators.nodes import EFFECTS, TAINT_KEYS, TAINT_VALUES
from tools.oracle.generators.resources import PLAIN, Spelling

INCOMING = "in"
ABSENT_NODE = "node-gone"
"""A node that no case has; pods there count nowhere."""
PLACED_MAX = 25
DELETED = "2026-01-01T00:00:00Z"
PROTOCOLS = ("TCP", "UDP", "SCTP")
HOST_IPS = ("", "0.0.0.0", "127.0.0.1", "10.0.0.7", "::", "::1")
PORTS = (80, 443, 8080)

Ruling = Callable[[Draws, Manifest], None]
"""Adds the rules under test to a pod."""


def pod(draws: Draws, name: str, spelling: Spelling = PLAIN, share: float = 0.5) -> Manifest:
    """Draw a pod with labels and requests."""
    namespace = draws.choice((*NAMESPACES[:3], "default", "unlisted"))
    return {
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": labels_of(draws, POD_LABELS),
        },
        "spec": {"containers": [resources.container(draws, "c", spelling, share)]},
    }


def placed(
    draws: Draws, nodes: Sequence[Manifest], count: int | None = None, ruled: Ruling | None = None
) -> list[Manifest]:
    """Draw placed pods; a few are finished, terminating, or on a node that no case has."""
    count = draws.randint(0, PLACED_MAX) if count is None else count
    drawn = []
    for number in range(count):
        manifest = pod(draws, f"p{number}", share=0.3)
        place(draws, manifest, nodes)
        if ruled is not None:
            ruled(draws, manifest)
        drawn.append(manifest)
    return drawn


def place(draws: Draws, manifest: Manifest, nodes: Sequence[Manifest]) -> None:
    """Put a pod on a node, and draw how it ends, if it does."""
    on = draws.choice(nodes)["metadata"]["name"]
    manifest["spec"]["nodeName"] = ABSENT_NODE if draws.happens(0.04) else on
    ends = draws.weighted({"runs": 20, "terminates": 2, "Succeeded": 1, "Failed": 1})
    if ends == "terminates":
        manifest["metadata"]["deletionTimestamp"] = DELETED
    elif ends != "runs":
        manifest["status"] = {"phase": ends}


def toleration(draws: Draws) -> Manifest:
    """Draw a toleration of any form that Kubernetes accepts."""
    drawn: Manifest = {}
    operator = draws.choice(("Exists", "Equal", None))
    if operator is not None:
        drawn["operator"] = operator
    if operator != "Exists" or draws.happens(0.8):
        keys = (*TAINT_KEYS, "node.kubernetes.io/unschedulable", "unknown")
        drawn["key"] = draws.choice(keys)
    if operator != "Exists" and draws.happens(0.8):
        drawn["value"] = draws.choice((*TAINT_VALUES, "true"))
    effect = draws.choice((*EFFECTS, "", None, "NoSchedule"))
    if effect is not None:
        drawn["effect"] = effect
    if effect == "NoExecute" and draws.happens(0.3):
        drawn["tolerationSeconds"] = draws.choice((0, 60))
    return drawn


def add_tolerations(draws: Draws, manifest: Manifest, most: int = 4) -> None:
    """Add tolerations."""
    manifest["spec"]["tolerations"] = [toleration(draws) for _ in range(draws.randint(1, most))]


def add_ports(draws: Draws, manifest: Manifest) -> None:
    """Add ports of containers, init containers, and sidecars; most are ports of the host, too."""
    spec = manifest["spec"]
    if draws.happens(0.2):
        spec["initContainers"] = resources.init_containers(draws)
    for container in (*spec["containers"], *spec.get("initContainers", [])):
        if draws.happens(0.8):
            container["ports"] = [_port(draws) for _ in range(draws.randint(1, 2))]


def _port(draws: Draws) -> Manifest:
    number = draws.choice(PORTS)
    drawn: Manifest = {"containerPort": number}
    if draws.happens(0.85):
        drawn["hostPort"] = number
    if draws.happens(0.5):
        drawn["protocol"] = draws.choice(PROTOCOLS)
    if draws.happens(0.5):
        drawn["hostIP"] = draws.choice(HOST_IPS)
    return drawn
