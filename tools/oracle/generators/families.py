"""The families of cases: which rules, objects, and spellings each of them draws."""

from collections.abc import Callable, Mapping
from typing import Any

from tools.oracle.generators import (
    absences,
    affinity,
    declared_features,
    devices,
    images,
    nodes,
    pods,
    preemption,
    quantities,
    resizes,
    resources,
    spreading,
    volumes,
)
from tools.oracle.generators.draws import Draws, Manifest, without_absent
from tools.oracle.generators.labels import HOSTNAME, ZONE, namespaces
from tools.oracle.generators.resources import FREE, PLAIN

Case = dict[str, Any]
Family = Callable[[Draws], Case]


def _case(
    draws: Draws,
    on: list[Manifest],
    placed: list[Manifest],
    pod: Manifest,
    **objects: Any,
) -> Case:
    """Put a case together; objects are lists of other kinds by their plural names."""
    config = {
        "hardPodAffinityWeight": draws.choice((0, 1, 1, 5, 100)),
        "scoringStrategy": draws.choice(("LeastAllocated", "LeastAllocated", "MostAllocated")),
    }
    return {
        "config": config | objects.pop("config", {}),
        "namespaces": namespaces(draws),
        "nodes": on,
        "pods": placed,
        "pod": pod,
        **without_absent(objects),
    }


# Nodes and resources


def node_affinity(draws: Draws) -> Case:
    """Draw node selectors, required and preferred terms, and names."""
    on, pod = nodes.plain_nodes(draws), pods.pod(draws, pods.INCOMING)
    affinity.add_node_affinity(draws, pod)
    return _case(draws, on, pods.placed(draws, on, draws.randint(0, 6)), pod)


def taints(draws: Draws) -> Case:
    """Draw zones all of whose nodes have the same taints, and more taints, and cordons."""
    on, pod = nodes.plain_nodes(draws), pods.pod(draws, pods.INCOMING)
    by_zone = {
        zone: [nodes.taint(draws) for _ in range(draws.randint(0, 3))] for zone in nodes.ZONES
    }
    for node in on:
        shared = by_zone.get(nodes.zone_of(node) or "", [])
        spec = node.setdefault("spec", {})
        known = {(taint["key"], taint["effect"]): taint for taint in shared}
        spec["taints"] = [dict(taint) for taint in known.values()]
        if draws.happens(0.4):
            nodes.add_taints(draws, node, 4)
        if draws.happens(0.15):
            spec["unschedulable"] = True
    if draws.happens(0.9):
        pods.add_tolerations(draws, pod, 6)
    if draws.happens(0.4):
        spreading.add_constraints(draws, pod)
    return _case(draws, on, pods.placed(draws, on, draws.randint(0, 10)), pod)


def ports(draws: Draws) -> Case:
    """Draw host ports of all protocols and addresses."""
    on, pod = nodes.plain_nodes(draws, 3, 6), pods.pod(draws, pods.INCOMING)
    pods.add_ports(draws, pod)
    return _case(draws, on, pods.placed(draws, on, draws.randint(2, 14), pods.add_ports), pod)


def node_name(draws: Draws) -> Case:
    """Draw a pod that names its node."""
    on, pod = nodes.plain_nodes(draws), pods.pod(draws, pods.INCOMING)
    name = draws.choice(on)["metadata"]["name"]
    pod["spec"]["nodeName"] = name if draws.happens(0.85) else pods.ABSENT_NODE
    return _case(draws, on, pods.placed(draws, on, draws.randint(0, 8)), pod)


def fit(draws: Draws) -> Case:
    """Draw requests of containers, init containers, and sidecars, with overhead."""
    return _fit(draws, PLAIN)


def spelled_quantities(draws: Draws) -> Case:
    """Draw the same in every spelling of quantities, with fractions that are rounded up."""
    case = _fit(draws, FREE)
    for pod in (*case["pods"], case["pod"]):
        for container in pod["spec"]["containers"]:
            if draws.happens(0.3):
                _add_uneven(draws, container)
    return case


def _add_uneven(draws: Draws, container: Manifest) -> None:
    requested = container.setdefault("resources", {}).setdefault("requests", {})
    requested["memory"] = quantities.uneven(draws, draws.choice((1, 1000, 64 * resources.MIB)))


def _fit(draws: Draws, spelling: resources.Spelling) -> Case:
    on = [nodes.node(draws, name, spelling, 0.5) for name in nodes.names(draws)]

    def add(draws: Draws, manifest: Manifest) -> None:
        spec = manifest["spec"]
        spec["containers"] = [
            resources.container(draws, f"c{number}", spelling)
            for number in range(draws.randint(1, 3))
        ]
        if draws.happens(0.4):
            spec["initContainers"] = resources.init_containers(draws, spelling)
        if draws.happens(0.25):
            spec["overhead"] = resources.overhead(draws, spelling)

    pod = pods.pod(draws, pods.INCOMING)
    add(draws, pod)
    return _case(draws, on, pods.placed(draws, on, ruled=add), pod)


def pod_level(draws: Draws) -> Case:
    """Draw requests of whole pods: of one resource, of zero, with limits, or empty."""
    on = [nodes.node(draws, name, PLAIN, 2) for name in nodes.names(draws)]

    def add(draws: Draws, manifest: Manifest) -> None:
        spec = manifest["spec"]
        spec["containers"] = [resources.container(draws, "c", share=0.4)]
        if draws.happens(0.3):
            spec["initContainers"] = resources.init_containers(draws)
        if draws.happens(0.2):
            spec["overhead"] = resources.overhead(draws)
        if draws.happens(0.8):
            spec["resources"] = resources.pod_level(draws)
            resources.drop_huge_pages(spec)
            _fill_in(spec)
            if draws.happens(0.25):
                _zero(draws, spec)

    pod = pods.pod(draws, pods.INCOMING)
    add(draws, pod)
    return _case(draws, on, pods.placed(draws, on, draws.randint(0, 12), add), pod)


def _fill_in(spec: Manifest) -> None:
    """Leave out limits of the whole pod with which requests would be filled in."""
    containers = [*spec["containers"], *spec.get("initContainers", [])]
    asked = {name for item in containers for name in item.get("resources", {}).get("requests", {})}
    if (asked & {"cpu", "memory"}) - spec["resources"].get("requests", {}).keys():
        spec["resources"].pop("limits", None)


def _zero(draws: Draws, spec: Manifest) -> None:
    """Have the pod as a whole ask for nothing of a resource for which no container asks."""
    spec.pop("initContainers", None)
    spec["containers"] = [{"name": "c"}]
    names = draws.some(("cpu", "memory"), 1, 2)
    spec["resources"] = {"requests": dict.fromkeys(names, "0")}
    if draws.happens(0.4):
        spec["resources"]["limits"] = dict.fromkeys(names, "1Gi")


def resizes_in_place(draws: Draws) -> Case:
    """Draw placed pods that are being resized."""
    on = [nodes.node(draws, name, PLAIN, 1) for name in nodes.names(draws, 2, 6)]
    pod = pods.pod(draws, pods.INCOMING, share=0.9)

    def add(draws: Draws, manifest: Manifest) -> None:
        if draws.happens(0.85):
            resizes.add_resize(draws, manifest)

    return _case(draws, on, pods.placed(draws, on, draws.randint(2, 14), add), pod)


def image_locality(draws: Draws) -> Case:
    """Draw images on nodes and of containers."""
    return _images(draws, images.add_images)


def image_volumes(draws: Draws) -> Case:
    """Draw images that are mounted as volumes, too."""

    def add(draws: Draws, manifest: Manifest) -> None:
        images.add_images(draws, manifest)
        images.add_image_volumes(draws, manifest)

    return _images(draws, add)


def _images(draws: Draws, add: pods.Ruling) -> Case:
    on, pod = nodes.plain_nodes(draws), pods.pod(draws, pods.INCOMING)
    for node in on:
        nodes.add_images(draws, node)
    add(draws, pod)
    return _case(draws, on, pods.placed(draws, on, draws.randint(0, 5)), pod)


def features(draws: Draws) -> Case:
    """Draw features that nodes declare, and pods that need them."""
    on, pod = nodes.plain_nodes(draws), pods.pod(draws, pods.INCOMING)
    for node in on:
        declared_features.declare(draws, node)
    declared_features.add_need(draws, pod)
    return _case(draws, on, pods.placed(draws, on, draws.randint(0, 5)), pod)


# Pods and pods


def pod_affinity(draws: Draws) -> Case:
    """Draw affinity and anti-affinity of the incoming pod and of placed ones."""
    on, pod = nodes.plain_nodes(draws), pods.pod(draws, pods.INCOMING)
    affinity.add_pod_affinity(draws, pod)

    def add(draws: Draws, manifest: Manifest) -> None:
        if draws.happens(0.4):
            affinity.add_pod_affinity(draws, manifest, 0.25)

    return _case(draws, on, pods.placed(draws, on, ruled=add), pod)


def namespace_selectors(draws: Draws) -> Case:
    """Draw the same with terms that list and select namespaces."""
    on, pod = nodes.plain_nodes(draws, 3, 8), pods.pod(draws, pods.INCOMING)
    affinity.add_pod_affinity(draws, pod, widely=True)

    def add(draws: Draws, manifest: Manifest) -> None:
        if draws.happens(0.5):
            affinity.add_pod_affinity(draws, manifest, 0.3, widely=True)

    return _case(draws, on, pods.placed(draws, on, ruled=add), pod)


def first_pods(draws: Draws) -> Case:
    """Draw required affinity that only the pod itself matches, if any."""
    on, pod = nodes.plain_nodes(draws, 3, 6), pods.pod(draws, pods.INCOMING)
    labels = pod["metadata"]["labels"]
    labels["app"] = "first"
    terms = [
        {
            "topologyKey": draws.choice((ZONE, HOSTNAME)),
            "labelSelector": {"matchLabels": {"app": app}},
        }
        for app in draws.choices(("first", "first", "web"), k=draws.randint(1, 2))
    ]
    pod["spec"]["affinity"] = {"podAffinity": {affinity.REQUIRED: terms}}
    placed = pods.placed(draws, on, draws.randint(0, 6))
    for manifest in placed:
        if draws.happens(0.15):
            manifest["metadata"]["labels"]["app"] = "first"
            manifest["metadata"]["namespace"] = pod["metadata"]["namespace"]
    return _case(draws, on, placed, pod)


def spread(draws: Draws) -> Case:
    """Draw topology spread constraints with all their fields."""
    on, pod = nodes.plain_nodes(draws), pods.pod(draws, pods.INCOMING)
    spreading.add_constraints(draws, pod)
    if draws.happens(0.4):
        affinity.add_node_affinity(draws, pod)
    if draws.happens(0.3):
        pods.add_tolerations(draws, pod)
    placed = pods.placed(draws, on)
    for manifest in placed:
        if draws.happens(0.6):
            manifest["metadata"]["namespace"] = pod["metadata"]["namespace"]
    return _case(draws, on, placed, pod)


def default_spread(draws: Draws) -> Case:
    """Draw services and owners, from which default constraints derive their selectors."""
    on, pod = nodes.plain_nodes(draws), pods.pod(draws, pods.INCOMING)
    pod["metadata"]["labels"].setdefault("app", "web")
    objects = spreading.add_owner(draws, pod) if draws.happens(0.6) else {}
    objects["services"] = spreading.services(draws, pod)
    if draws.happens(0.1):
        spreading.add_constraints(draws, pod)
    placed = pods.placed(draws, on)
    for manifest in placed:
        if draws.happens(0.7):
            manifest["metadata"]["namespace"] = pod["metadata"]["namespace"]
    return _case(draws, on, placed, pod, config=spreading.default_config(draws), **objects)


def long_selectors(draws: Draws) -> Case:
    """Draw selectors with up to a thousand terms or values."""
    on, pod = nodes.plain_nodes(draws), pods.pod(draws, pods.INCOMING)
    count = draws.choice((50, 200, 700, 1000))
    numbers = [f"x{number}" for number in range(count)]
    match draws.randrange(3):
        case 0:
            terms = [
                {"matchExpressions": [{"key": "disk", "operator": "In", "values": [number]}]}
                for number in numbers
            ]
            terms.insert(draws.randrange(count), affinity.node_term(draws))
            required = {"nodeSelectorTerms": terms[:count]}
            pod["spec"]["affinity"] = {"nodeAffinity": {affinity.REQUIRED: required}}
        case 1:
            key, operator = draws.choice((ZONE, "disk")), draws.choice(("In", "NotIn"))
            values = [*numbers[1:], draws.choice(affinity.NODE_VALUES[key])]
            term = {"matchExpressions": [{"key": key, "operator": operator, "values": values}]}
            pod["spec"]["affinity"] = {
                "nodeAffinity": {affinity.REQUIRED: {"nodeSelectorTerms": [term]}}
            }
        case _:
            operator = draws.choice(("In", "NotIn"))
            expression = {"key": "app", "operator": operator, "values": ["web", *numbers[1:]]}
            term = {
                "topologyKey": draws.choice((ZONE, HOSTNAME)),
                "labelSelector": {"matchExpressions": [expression]},
            }
            kind = draws.choice(("podAffinity", "podAntiAffinity"))
            pod["spec"]["affinity"] = {kind: {affinity.REQUIRED: [term]}}
    return _case(draws, on, pods.placed(draws, on, draws.randint(0, 12)), pod)


# Volumes


def claims(draws: Draws) -> Case:
    """Draw claims in all states, with volumes that they may be bound to."""
    on, pod = nodes.plain_nodes(draws, 3, 8), pods.pod(draws, pods.INCOMING)
    storage = volumes.Storage(draws, on, pod["metadata"]["namespace"])
    volumes.use(pod, *(storage.claim() for _ in range(draws.randint(1, 3))))
    if draws.happens(0.1):
        volumes.use(pod, storage.claim("absent"))
    if draws.happens(0.12):
        volumes.use_ephemeral(draws, pod, storage)
    return _case(
        draws,
        on,
        pods.placed(draws, on, draws.randint(0, 4)),
        pod,
        storageClasses=volumes.classes(draws),
        **storage.objects(),
    )


def storage_capacity(draws: Draws) -> Case:
    """Draw claims that are provisioned where their drivers have room."""
    on, pod = nodes.plain_nodes(draws, 3, 8), pods.pod(draws, pods.INCOMING)
    storage = volumes.Storage(draws, on, pod["metadata"]["namespace"])
    for _ in range(draws.randint(1, 3)):
        volumes.use(pod, storage.claim(draws.choice(("waiting", "waiting", "selected", "bound"))))
    return _case(
        draws,
        on,
        [],
        pod,
        storageClasses=volumes.classes(draws),
        csiDrivers=volumes.csi_drivers(draws),
        csiStorageCapacities=volumes.capacities(draws, on),
        **storage.objects(),
    )


def volume_limits(draws: Draws) -> Case:
    """Draw drivers that attach few volumes to a node, and nodes without drivers."""
    on, pod = nodes.plain_nodes(draws, 3, 7), pods.pod(draws, pods.INCOMING)
    storage = volumes.Storage(draws, on, pod["metadata"]["namespace"])
    state = {"bound": 5, "waiting": 2}
    names = [storage.claim(draws.weighted(state)) for _ in range(draws.randint(3, 8))]
    placed = pods.placed(draws, on, draws.randint(3, 10))
    for manifest in placed:
        manifest["metadata"]["namespace"] = pod["metadata"]["namespace"]
        volumes.use(manifest, *draws.some(names, 0, 2))
        if draws.happens(0.1):
            volumes.add_disk(draws, manifest)
    volumes.use(pod, *draws.some(names, 1, 3))
    if draws.happens(0.15):
        volumes.add_disk(draws, pod)
    return _case(
        draws,
        on,
        placed,
        pod,
        storageClasses=volumes.classes(draws),
        csiDrivers=volumes.csi_drivers(draws),
        csiNodes=volumes.csi_nodes(draws, on),
        volumeAttachments=volumes.attachments(draws, on, storage.volumes),
        **storage.objects(),
    )


def disks(draws: Draws) -> Case:
    """Draw disks in line, and claims that one pod alone may use."""
    on, pod = nodes.plain_nodes(draws, 3, 6), pods.pod(draws, pods.INCOMING)
    storage = volumes.Storage(draws, on, pod["metadata"]["namespace"])

    def add(draws: Draws, manifest: Manifest) -> None:
        for _ in range(draws.randint(0, 2)):
            volumes.add_disk(draws, manifest)

    placed = pods.placed(draws, on, draws.randint(2, 10), add)
    add(draws, pod)
    if draws.happens(0.5):
        name = storage.claim("bound")
        storage.claims[-1]["spec"]["accessModes"] = ["ReadWriteOncePod"]
        volumes.use(pod, name)
        for manifest in draws.some(placed, 0, 1):
            manifest["metadata"]["namespace"] = pod["metadata"]["namespace"]
            volumes.use(manifest, name)
    return _case(draws, on, placed, pod, storageClasses=volumes.classes(draws), **storage.objects())


# Preemption


def preempting(draws: Draws) -> Case:
    """Draw full nodes, pods of all priorities, and disruption budgets."""
    on, pod = preemption.small_nodes(draws), preemption.incoming(draws)
    ruled = draws.choice((None, None, _affinity_of_some, pods.add_tolerations))
    placed = preemption.filling(draws, on, ruled)
    _add_rule(draws, pod)
    if placed and draws.happens(0.15):
        preemption.nominate_incoming(draws, pod, placed)
    return _case(draws, on, placed, pod, podDisruptionBudgets=preemption.budgets(draws, placed))


def nominated(draws: Draws) -> Case:
    """Draw pods that wait for room on nodes that are nominated for them."""
    if draws.happens(0.5):
        on = preemption.small_nodes(draws)
        placed = preemption.filling(draws, on)[: draws.randint(0, 12)]
    else:
        on = nodes.plain_nodes(draws, 2, 6)
        placed = []
    waiting = [preemption.nominate(draws, on, number) for number in range(draws.randint(1, 4))]
    for manifest in waiting:
        if draws.happens(0.3):
            affinity.add_pod_affinity(draws, manifest, 0.3)
    pod = preemption.incoming(draws)
    _add_rule(draws, pod)
    return _case(draws, on, [*placed, *waiting], pod)


def _affinity_of_some(draws: Draws, manifest: Manifest) -> None:
    if draws.happens(0.3):
        affinity.add_pod_affinity(draws, manifest, 0.3)


def _add_rule(draws: Draws, manifest: Manifest) -> None:
    match draws.weighted({"none": 5, "affinity": 3, "spread": 2, "tolerations": 2}):
        case "affinity":
            affinity.add_pod_affinity(draws, manifest, 0.4)
        case "spread":
            spreading.add_constraints(draws, manifest)
        case "tolerations":
            pods.add_tolerations(draws, manifest)
        case _:
            pass


# Devices


def device_claims(draws: Draws) -> Case:
    """Draw claims to devices: counts, all, prioritized lists, selectors, and constraints."""
    on = [nodes.node(draws, name) for name in nodes.names(draws, 2, 6)]
    pod = pods.pod(draws, pods.INCOMING)
    pod["metadata"]["uid"] = "uid-in"
    namespace = pod["metadata"]["namespace"]
    offered = devices.slices(draws, on)
    drawn = [
        devices.claim(draws, f"want-{number}", namespace)
        for number in range(draws.weighted({1: 5, 2: 2}))
    ]
    for item in drawn:
        if draws.happens(0.25):
            devices.use_template(pod, item)
        else:
            devices.use(pod, item["metadata"]["name"])
    if draws.happens(0.04):
        devices.use(pod, "want-absent")
    if draws.happens(0.05):
        drawn[0]["metadata"]["deletionTimestamp"] = pods.DELETED
        drawn[0]["metadata"]["finalizers"] = ["example.com/keep"]
    placed = pods.placed(draws, on, draws.randint(0, 6))
    drawn += _devices_in_use(draws, offered, placed, pod)
    return _case(
        draws,
        on,
        placed,
        pod,
        deviceClasses=devices.classes(draws),
        resourceSlices=offered,
        resourceClaims=drawn,
    )


def _devices_in_use(
    draws: Draws, offered: list[Manifest], placed: list[Manifest], pod: Manifest
) -> list[Manifest]:
    """Have pods use devices, one claim for each; now and then the incoming pod shares a claim."""
    drawn, taken = [], set()
    full = [item for item in offered if item["spec"]["devices"]]
    for manifest in placed:
        manifest["metadata"]["uid"] = f"uid-{manifest['metadata']['name']}"
        own = [
            item for item in full if item["spec"].get("nodeName") == manifest["spec"]["nodeName"]
        ]
        if not own or not draws.happens(0.6):
            continue
        name = f"used-{manifest['metadata']['name']}"
        namespace = manifest["metadata"]["namespace"]
        item = devices.allocated(draws, name, namespace, draws.choice(own), [manifest])
        result = item["status"]["allocation"]["devices"]["results"][0]
        device = (result["driver"], result["pool"], result["device"])
        if device in taken:
            continue
        taken.add(device)
        drawn.append(item)
        devices.use(manifest, name)
        if namespace == pod["metadata"]["namespace"] and draws.happens(0.15):
            devices.use(pod, name)
    if full and draws.happens(0.15):
        of, namespace = draws.choice(full), pod["metadata"]["namespace"]
        item = devices.allocated(draws, "had", namespace, of, [])
        if "nodeSelector" in item["status"]["allocation"]:
            item["status"]["reservedFor"] = [{"resource": "pods", "name": "o", "uid": "uid-o"}]
        result = item["status"]["allocation"]["devices"]["results"][0]
        if (result["driver"], result["pool"], result["device"]) not in taken:
            drawn.append(item)
            devices.use(pod, "had")
    return drawn


# Everything


def mixed(draws: Draws) -> Case:
    """Draw rules of all plugins together."""
    on, pod = nodes.plain_nodes(draws, 3, 12), pods.pod(draws, pods.INCOMING)
    for node in on:
        if draws.happens(0.3):
            nodes.add_taints(draws, node, 2)
        nodes.add_images(draws, node)
        declared_features.declare(draws, node)
    rulings: tuple[pods.Ruling, ...] = (
        affinity.add_node_affinity,
        pods.add_tolerations,
        pods.add_ports,
        images.add_images,
        affinity.add_pod_affinity,
        spreading.add_constraints,
    )
    for ruling in draws.some(rulings, 2):
        ruling(draws, pod)

    def add(draws: Draws, manifest: Manifest) -> None:
        for ruling in draws.some((pods.add_ports, _affinity_of_some, resizes.add_resize), 0, 1):
            ruling(draws, manifest)

    return _case(draws, on, pods.placed(draws, on, ruled=add), pod)


def absent_null_empty(draws: Draws) -> Case:
    """Draw a case of another family, with fields taken away, nulled, or emptied."""
    family = draws.choice(
        (mixed, pod_affinity, spread, taints, fit, pod_level, node_affinity, ports)
    )
    case = family(draws)
    share = draws.choice((0.05, 0.3))
    for pod in (case["pod"], *case["pods"]):
        absences.empty_some(draws, pod, absences.POD_FIELDS, share)
    for node in case["nodes"]:
        absences.empty_some(draws, node, absences.NODE_FIELDS, share / 2)
    for namespace in case["namespaces"]:
        absences.empty_some(draws, namespace, absences.NAMESPACE_FIELDS, share)
    return case


FAMILIES: Mapping[str, Family] = {
    function.__name__.replace("_", "-"): function
    for function in (
        mixed,
        node_affinity,
        taints,
        ports,
        node_name,
        fit,
        spelled_quantities,
        pod_level,
        resizes_in_place,
        image_locality,
        image_volumes,
        features,
        pod_affinity,
        namespace_selectors,
        first_pods,
        spread,
        default_spread,
        long_selectors,
        claims,
        storage_capacity,
        volume_limits,
        disks,
        preempting,
        nominated,
        device_claims,
        absent_null_empty,
    )
}
"""The families by name."""


def generate(family: str, seed: int, number: int) -> Case:
    """Return a family's case of a number, which is always the same for a seed."""
    draws = Draws(f"{family} {seed} {number}")
    return {"name": f"{family}-{seed}-{number:06}", "source": "fuzz", **FAMILIES[family](draws)}
