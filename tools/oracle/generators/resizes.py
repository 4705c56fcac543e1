"""Pods that are being resized in place: what was asked, allocated, and is in force."""

from tools.oracle.generators import resources
from tools.oracle.generators.draws import Draws, Manifest, without_absent
from tools.oracle.generators.resources import Spelling

CONDITIONS: tuple[Manifest, ...] = (
    {"type": "PodResizePending", "status": "True", "reason": "Infeasible"},
    {"type": "PodResizePending", "status": "True", "reason": "Deferred"},
    {"type": "PodResizePending", "status": "False", "reason": "Infeasible"},
    {"type": "PodResizeInProgress", "status": "True"},
)


def container_status(draws: Draws, name: str, spelling: Spelling) -> Manifest:
    """Draw the status of a container, whole or in part."""
    drawn: Manifest = {"name": name}
    if draws.happens(0.85):
        drawn["resources"] = without_absent({"requests": resources.requests(draws, spelling, 0.7)})
    if draws.happens(0.75):
        drawn["allocatedResources"] = resources.requests(draws, spelling, 0.7)
    return drawn


def pod_status(draws: Draws, spelling: Spelling) -> Manifest:
    """Draw the part of a status that is about the pod as a whole."""
    drawn: Manifest = {}
    if draws.happens(0.8):
        drawn["resources"] = without_absent(
            {"requests": resources.pod_level(draws, spelling).get("requests")}
        )
    if draws.happens(0.7):
        drawn["allocatedResources"] = resources.pod_level(draws, spelling).get("requests", {})
    return drawn


def add_resize(
    draws: Draws, manifest: Manifest, spelling: Spelling = resources.PLAIN, pod_share: float = 0.4
) -> None:
    """Add a resize to a placed pod: of its containers, and in this share of the pod as a whole."""
    spec, status = manifest["spec"], manifest.setdefault("status", {})
    if draws.happens(0.3):
        spec["initContainers"] = resources.init_containers(draws, spelling)
    if draws.happens(0.3):
        spec["containers"].append(resources.container(draws, "d", spelling))
    for field, statuses in (
        ("containers", "containerStatuses"),
        ("initContainers", "initContainerStatuses"),
    ):
        if spec.get(field) and draws.happens(0.85):
            status[statuses] = [
                container_status(draws, item["name"], spelling)
                for item in spec[field]
                if draws.happens(0.9)
            ]
    if draws.happens(pod_share):
        spec["resources"] = resources.pod_level(draws, spelling)
        spec["resources"].pop("limits", None)
        resources.drop_huge_pages(spec)
        status.update(pod_status(draws, spelling))
    if draws.happens(0.6):
        status["conditions"] = [dict(item) for item in draws.some(CONDITIONS, 1, 1)]
