"""The plugins that look at one node and its pods: names, taints, labels, ports, images."""

from collections.abc import Iterator

from tests.reference.selectors import (
    has_untolerated_taint,
    is_empty_term,
    node_affinity_matches,
    node_term_matches,
    required_node_selectors,
    taints_of,
    tolerates,
    tolerations_of,
)
from tests.reference.view import PREFERRED, Manifest, Verdict, View, affinity_of, spec_of, status_of

MIB = 1024 * 1024
UNSCHEDULABLE_TAINT = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
Rejections = dict[str, Verdict]
Scores = dict[str, int]


def filter_unschedulable(view: View, pod: Manifest) -> Rejections:
    tolerated = any(tolerates(each, UNSCHEDULABLE_TAINT) for each in tolerations_of(pod))
    return {
        name: Verdict(["node(s) were unschedulable"], unresolvable=True)
        for name, node in view.nodes.items()
        if spec_of(node).get("unschedulable") and not tolerated
    }


def filter_node_name(view: View, pod: Manifest) -> Rejections:
    wanted = spec_of(pod).get("nodeName")
    return {
        name: Verdict(["node(s) didn't match the requested node name"], unresolvable=True)
        for name in view.nodes
        if wanted and name != wanted
    }


def filter_taints(view: View, pod: Manifest) -> Rejections:
    return {
        name: Verdict(["node(s) had untolerated taint(s)"], unresolvable=True)
        for name, node in view.nodes.items()
        if has_untolerated_taint(pod, node)
    }


def score_taints(view: View, pod: Manifest, feasible: list[str]) -> Scores:
    """Fewest intolerable PreferNoSchedule taints."""
    tolerations = [
        each for each in tolerations_of(pod) if each.get("effect") in (None, "", "PreferNoSchedule")
    ]
    counts = {
        name: sum(
            taint["effect"] == "PreferNoSchedule"
            and not any(tolerates(each, taint) for each in tolerations)
            for taint in taints_of(view.nodes[name])
        )
        for name in feasible
    }
    most = max(counts.values())
    return {name: 100 - (100 * count // most if most else 0) for name, count in counts.items()}


def named_nodes(pod: Manifest) -> set[str] | None:
    """The nodes that required node affinity names by `metadata.name`; None if it does not."""
    narrowed: set[str] | None = None
    for selector in required_node_selectors(pod):
        terms = [named_by_term(term or {}) for term in selector["nodeSelectorTerms"]]
        if not terms or any(names is None for names in terms):
            continue
        names = {name for names in terms for name in names or ()}
        narrowed = names if narrowed is None else narrowed & names
    return narrowed


def named_by_term(term: Manifest) -> set[str] | None:
    lists = [
        set(field["values"])
        for field in term.get("matchFields") or []
        if field["key"] == "metadata.name" and field["operator"] == "In"
    ]
    return set.intersection(*lists) if lists else None


def filter_node_affinity(view: View, pod: Manifest) -> Rejections:
    return {
        name: Verdict(["node(s) didn't match Pod's node affinity/selector"], unresolvable=True)
        for name, node in view.nodes.items()
        if not node_affinity_matches(view, pod, node)
    }


def score_node_affinity(view: View, pod: Manifest, feasible: list[str]) -> Scores | None:
    """Sum of the weights of the matching preferences; an empty preference is no preference."""
    preferences = affinity_of(pod, "nodeAffinity").get(PREFERRED)
    if preferences is None:
        return None
    sums = {
        name: sum(
            each["weight"]
            for each in preferences
            if not is_empty_term(each["preference"])
            and node_term_matches(each["preference"], view.nodes[name])
        )
        for name in feasible
    }
    most = max(sums.values())
    return {name: 100 * total // most if most else 0 for name, total in sums.items()}


def needed_features(view: View, pod: Manifest) -> set[str]:
    """The features that the scheduler infers from a pod's spec."""
    spec, needed = spec_of(pod), set()
    if spec.get("hostNetwork") and spec.get("hostUsers") is False:
        needed.add("UserNamespacesHostNetworkSupport")
    for container in (spec.get("containers") or []) + (spec.get("initContainers") or []):
        rules = container.get("restartPolicyRules") or []
        if any(rule.get("action") == "RestartAllContainers" for rule in rules):
            needed.add("RestartAllContainersOnContainerExits")
        mounts = container.get("volumeMounts") or []
        if view.settings.kubernetes == "1.37" and any(
            each.get("bindMountOptions") for each in mounts
        ):
            needed.add("VolumeBindMountOptions")
    return needed


def filter_declared_features(view: View, pod: Manifest) -> Rejections:
    needed = needed_features(view, pod)
    return {
        name: Verdict(["node(s) didn't match Pod's required features"], unresolvable=True)
        for name, node in view.nodes.items()
        if needed - set(status_of(node).get("declaredFeatures") or [])
    }


def host_ports(pod: Manifest) -> Iterator[tuple[str, str, int]]:
    """(IP, protocol, port) of containers and sidecars; without a hostPort nothing is taken."""
    sidecars = [
        each
        for each in spec_of(pod).get("initContainers") or []
        if each.get("restartPolicy") == "Always"
    ]
    for container in (spec_of(pod).get("containers") or []) + sidecars:
        for port in container.get("ports") or []:
            if port.get("hostPort"):
                ip = port.get("hostIP") or "0.0.0.0"
                yield ip, port.get("protocol") or "TCP", port["hostPort"]


def ports_conflict(one: tuple[str, str, int], other: tuple[str, str, int]) -> bool:
    return one[1:] == other[1:] and (one[0] == other[0] or "0.0.0.0" in (one[0], other[0]))


def filter_ports(view: View, pod: Manifest) -> Rejections:
    wanted = list(host_ports(pod))
    reason = "node(s) didn't have free ports for the requested pod ports"
    return {
        name: Verdict([reason], unresolvable=False)
        for name, pods in view.pods_on.items()
        if any(
            ports_conflict(want, taken)
            for want in wanted
            for placed in pods
            for taken in host_ports(placed)
        )
    }


def image_name(container: Manifest) -> str:
    """An image without a tag means `:latest`; a colon before the last slash is a port."""
    image = container.get("image") or ""
    return image if image.rfind(":") > image.rfind("/") else image + ":latest"


def images_of(node: Manifest) -> dict[str, int]:
    """Bytes of each image by each of its names."""
    return {
        name: image.get("sizeBytes") or 0
        for image in status_of(node).get("images") or []
        for name in image.get("names") or []
    }


def mounted_images(view: View, pod: Manifest) -> list[Manifest]:
    """The images that are volumes, which count from 1.36 on."""
    if view.settings.kubernetes == "1.35":
        return []
    return [
        {"image": volume["image"].get("reference")}
        for volume in spec_of(pod).get("volumes") or []
        if volume.get("image") is not None
    ]


def score_images(view: View, pod: Manifest, feasible: list[str]) -> Scores:
    """Bytes of the pod's images on the node, each scaled by the share of nodes that hold it."""
    spec = spec_of(pod)
    containers = (spec.get("containers") or []) + (spec.get("initContainers") or [])
    mounted = mounted_images(view, pod)
    images = {name: images_of(node) for name, node in view.nodes.items()}

    def scaled_bytes(node_name: str, image: str) -> int:
        holders = sum(image in held for held in images.values())
        return int(images[node_name].get(image, 0) * (holders / len(images)))

    count = len(containers) + (len(mounted) if view.settings.kubernetes == "1.37" else 0)
    least, most = 23 * MIB, 1000 * MIB * count
    scores = {}
    for name in feasible:
        total = sum(scaled_bytes(name, image_name(each)) for each in containers + mounted)
        clamped = max(least, min(total, most))
        scores[name] = 100 * (clamped - least) // (most - least)
    return scores
