"""Nodes: labels, room, taints, cordons, images, and declared features."""

from typing import Any

from tools.oracle.generators.draws import Draws, Labels, Manifest
from tools.oracle.generators.labels import HOSTNAME, RACK, REGION, ZONE
from tools.oracle.generators.resources import EXTENDED, HUGE, MIB, PLAIN, Spelling

GIB = 1024 * MIB
ZONES = ("zone-a", "zone-b", "zone-c", "zone-d")
RACKS = ("k1", "k2", "k3")
NUMBERS = ("1", "2", "3", "10", "007", "2.5", "", "abc", "9223372036854775807")
"""Values of a label that requirements compare as numbers."""
NODE_LABELS: dict[str, tuple[str, ...]] = {
    "disk": ("ssd", "hdd", "nvme"),
    "gpu": ("true", "false"),
    "arch": ("amd64", "arm64"),
    "cpu-gen": NUMBERS,
    "example.com/pool": ("l1", "l2"),
}
TAINT_KEYS = ("dedicated", "maintenance", "example.com/special")
TAINT_VALUES = ("db", "web", "")
EFFECTS = ("NoSchedule", "NoExecute", "PreferNoSchedule")
IMAGES = ("nginx:1.25", "redis:7", "registry.example.com:5000/team/app:latest", "busybox:latest")
"""Names of images; a name has the same size on all nodes."""
IMAGE_SIZES = {name: size * MIB for name, size in zip(IMAGES, (55, 140, 900, 4), strict=True)}


def names(draws: Draws, least: int = 3, most: int = 10) -> list[str]:
    """Return the names of a few nodes."""
    return [f"node-{number}" for number in range(1, draws.randint(least, most) + 1)]


def node(draws: Draws, name: str, spelling: Spelling = PLAIN, scale: float = 1.0) -> Manifest:
    """Draw a node with labels and room, and neither taints nor images."""
    room = allocatable(draws, spelling, scale)
    return {
        "metadata": {"name": name, "labels": labels(draws, name)},
        "status": {"capacity": dict(room), "allocatable": room},
    }


def plain_nodes(draws: Draws, least: int = 3, most: int = 10) -> list[Manifest]:
    """Draw nodes of which a few are tainted or cordoned."""
    drawn = [node(draws, name) for name in names(draws, least, most)]
    for manifest in drawn:
        if draws.happens(0.1):
            add_taints(draws, manifest, 2)
        if draws.happens(0.05):
            manifest.setdefault("spec", {})["unschedulable"] = True
    return drawn


def labels(draws: Draws, name: str) -> Labels:
    """Draw the labels of a node; it may lack its hostname, or have that of another node."""
    drawn = {key: draws.choice(values) for key, values in NODE_LABELS.items() if draws.happens(0.6)}
    if draws.happens(0.92):
        drawn[HOSTNAME] = name if draws.happens(0.95) else "node-1"
    if draws.happens(0.85):
        drawn[ZONE] = draws.choice(ZONES)
    if draws.happens(0.6):
        drawn[REGION] = draws.choice(("r1", "r2"))
    if draws.happens(0.5):
        drawn[RACK] = draws.choice(RACKS)
    return drawn


def allocatable(draws: Draws, spelling: Spelling = PLAIN, scale: float = 1.0) -> Manifest:
    """Draw a node's room; now and then a resource is zero or missing."""
    drawn: dict[str, Any] = {
        "cpu": spelling.cpu(draws, int(1000 * draws.choice((2, 4, 8, 16, 32)) * scale)),
        "memory": spelling.size(draws, int(GIB * draws.choice((4, 8, 16, 32, 64)) * scale)),
        "pods": spelling.size(draws, draws.weighted({110: 40, 4: 1, 1: 1})),
    }
    if draws.happens(0.4):
        drawn["ephemeral-storage"] = spelling.size(draws, draws.choice((1, 20, 100)) * GIB)
    if draws.happens(0.3):
        drawn[draws.choice(EXTENDED)] = spelling.size(draws, draws.choice((0, 1, 2, 8)))
    if draws.happens(0.2):
        drawn[HUGE] = spelling.size(draws, draws.choice((0, 4, 128)) * MIB)
    for name in ("cpu", "memory", "pods"):
        if draws.happens(0.008):
            drawn[name] = "0"
        elif draws.happens(0.008):
            del drawn[name]
    return drawn


def taint(draws: Draws) -> Manifest:
    """Draw a taint."""
    drawn = {"key": draws.choice(TAINT_KEYS), "effect": draws.choice(EFFECTS)}
    value = draws.choice(TAINT_VALUES)
    return drawn | ({"value": value} if value or draws.happens(0.3) else {})


def add_taints(draws: Draws, manifest: Manifest, most: int) -> None:
    """Add taints to a node, no two of them with the same key and effect."""
    spec = manifest.setdefault("spec", {})
    taints = {(known["key"], known["effect"]): known for known in spec.get("taints", [])}
    for _ in range(draws.randint(1, most)):
        drawn = taint(draws)
        taints.setdefault((drawn["key"], drawn["effect"]), drawn)
    spec["taints"] = list(taints.values())


def add_images(draws: Draws, manifest: Manifest) -> None:
    """Add images to a node, some of them under a second name."""
    manifest["status"]["images"] = [
        {
            "names": [
                name,
                *([f"{name.partition(':')[0]}@sha256:{'0' * 64}"] * draws.happens(0.3)),
            ],
            "sizeBytes": IMAGE_SIZES[name],
        }
        for name in draws.some(IMAGES, 0, 3)
    ]


def zone_of(manifest: Manifest) -> str | None:
    """Return the zone of a node, or None."""
    zone: str | None = manifest["metadata"]["labels"].get(ZONE)
    return zone
