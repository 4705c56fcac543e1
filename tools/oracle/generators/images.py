"""Images of containers, and images that are mounted as volumes."""

from tools.oracle.generators.draws import Draws, Manifest
from tools.oracle.generators.nodes import IMAGES

SPELLINGS = {
    "nginx:1.25": ("nginx:1.25",),
    "redis:7": ("redis:7",),
    "registry.example.com:5000/team/app:latest": (
        "registry.example.com:5000/team/app",
        "registry.example.com:5000/team/app:latest",
    ),
    "busybox:latest": ("busybox", "busybox:latest"),
}
"""Ways to name each image; without a tag it is the latest."""


def image(draws: Draws) -> str:
    """Draw the name of an image, now and then of one that no node has."""
    if draws.happens(0.1):
        return "nowhere:1"
    return draws.choice(SPELLINGS[draws.choice(IMAGES)])


def add_images(draws: Draws, manifest: Manifest) -> None:
    """Add images to the containers and init containers of a pod."""
    spec = manifest["spec"]
    for number in range(draws.randint(0, 2)):
        spec["containers"].append({"name": f"c{number}"})
    if draws.happens(0.3):
        spec["initContainers"] = [{"name": "i"}]
    for container in (*spec["containers"], *spec.get("initContainers", [])):
        if draws.happens(0.9):
            container["image"] = image(draws)


def add_image_volumes(draws: Draws, manifest: Manifest) -> None:
    """Add volumes that are images; some have no reference yet."""
    volumes = manifest["spec"].setdefault("volumes", [])
    for number in range(draws.randint(1, 3)):
        source = {"reference": image(draws)} if draws.happens(0.9) else {}
        if draws.happens(0.3):
            source["pullPolicy"] = "IfNotPresent"
        volumes.append({"name": f"image{number}", "image": source})
    if draws.happens(0.2):
        volumes.append({"name": "scratch", "emptyDir": {}})
