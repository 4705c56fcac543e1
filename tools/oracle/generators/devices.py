"""Devices: slices by node, zone, and for all, classes, and claims of all forms.

There are neither partitions, taints of devices, shares of one device, extended resources that
classes stand for, nor conditions of bindings.
"""

from collections.abc import Sequence
from typing import Any

from tools.oracle.generators.draws import Draws, Manifest
from tools.oracle.generators.labels import ZONE
from tools.oracle.generators.nodes import ZONES

GPU, NIC, NET = "gpu.example.com", "nic.example.com", "net.example.com"
NUMA = "resource.kubernetes.io/numaNode"
ATTRIBUTES = (NUMA, f"{GPU}/model", f"{GPU}/driverVersion", f"{NIC}/speed", f"{GPU}/absent")
SELECTORS = {
    "gpu": (
        'device.attributes["gpu.example.com"].model == "a100"',
        'device.attributes["gpu.example.com"].driverVersion.isGreaterThan(semver("1.5.0"))',
        'device.attributes["gpu.example.com"].index < 2',
        '!device.attributes["gpu.example.com"].shared',
        'device.capacity["gpu.example.com"].memory.compareTo(quantity("40Gi")) >= 0',
        'device.attributes["gpu.example.com"].model in ["l4", "h100"]',
        '"model" in device.attributes["gpu.example.com"]',
        "false",
    ),
    "nic": (
        'device.attributes["nic.example.com"].speed >= 100',
        '"speed" in device.attributes["nic.example.com"]',
    ),
    "net": ('device.driver.startsWith("net")',),
    "big": (),
    "any": ("true", 'device.driver != "net.example.com"'),
}
"""Expressions for requests of each class."""
CLASSES = tuple(SELECTORS)
DRIVER_SELECTOR = 'device.driver == "{}"'


def classes(draws: Draws) -> list[Manifest]:
    """Return the classes; one may be missing, and some have a driver's configuration."""

    def selecting(*expressions: str) -> Manifest:
        return {"selectors": [{"cel": {"expression": text}} for text in expressions]}

    large = 'device.capacity["gpu.example.com"].memory.compareTo(quantity("80Gi")) >= 0'
    specs = {
        "gpu": selecting(DRIVER_SELECTOR.format(GPU)),
        "nic": selecting(DRIVER_SELECTOR.format(NIC)),
        "net": selecting(DRIVER_SELECTOR.format(NET)),
        "big": selecting(DRIVER_SELECTOR.format(GPU), large),
        "any": {},
    }
    for spec in specs.values():
        if draws.happens(0.15):
            opaque = {"driver": GPU, "parameters": {"apiVersion": "example.com/v1", "kind": "X"}}
            spec["config"] = [{"opaque": opaque}]
    missing = draws.choice(CLASSES) if draws.happens(0.05) else None
    return [
        {"metadata": {"name": name}, "spec": spec}
        for name, spec in specs.items()
        if name != missing
    ]


# Slices


def slices(draws: Draws, nodes: Sequence[Manifest]) -> list[Manifest]:
    """Draw the slices: of nodes, of a zone, for all nodes, and now and then of a broken pool."""
    drawn: list[Manifest] = []
    for node in nodes:
        name = node["metadata"]["name"]
        for driver, share in ((GPU, 0.85), (NIC, 0.7)):
            if draws.happens(share):
                devices = [_device(draws, driver, number) for number in range(draws.randint(0, 4))]
                drawn += _pool(draws, driver, name, devices, {"nodeName": name})
    for zone in ZONES[:2]:
        if draws.happens(0.3):
            term = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]}
            reach = {"nodeSelector": {"nodeSelectorTerms": [term]}}
            devices = [_device(draws, NET, number) for number in range(draws.randint(1, 3))]
            drawn += _pool(draws, NET, f"net-{zone}", devices, reach)
    if draws.happens(0.3):
        devices = [_device(draws, NET, number) for number in range(draws.randint(1, 2))]
        drawn += _pool(draws, NET, "net-all", devices, {"allNodes": True})
    return drawn


def _device(draws: Draws, driver: str, number: int) -> Manifest:
    kind = driver.partition(".")[0]
    attributes: dict[str, Any] = {}
    capacity = {}
    if driver == GPU:
        attributes["model"] = {"string": draws.choice(("l4", "a100", "h100"))}
        attributes["index"] = {"int": number}
        attributes["shared"] = {"bool": draws.happens(0.4)}
        attributes["driverVersion"] = {"version": draws.choice(("1.2.3", "1.10.0", "2.0.0"))}
        capacity["memory"] = {"value": draws.choice(("24Gi", "40Gi", "80Gi", "85899345920"))}
        if draws.happens(0.1):
            del attributes[draws.choice(list(attributes))]
    elif driver == NIC and draws.happens(0.9):
        attributes["speed"] = {"int": draws.choice((10, 25, 100))}
    if draws.happens(0.7):
        attributes[NUMA] = {"int": draws.choice((0, 1))}
    drawn: Manifest = {"name": f"{kind}-{number}"}
    return drawn | {
        name: value for name, value in (("attributes", attributes), ("capacity", capacity)) if value
    }


def _pool(
    draws: Draws, driver: str, pool: str, devices: list[Manifest], reach: Manifest
) -> list[Manifest]:
    """Spread devices over one slice or two; now and then a slice is missing or outdated."""
    kind, parts = driver.partition(".")[0], [devices]
    if len(devices) > 1 and draws.happens(0.2):
        parts = [devices[::2], devices[1::2]]
    generation = draws.choice((1, 1, 3))
    drawn = []
    for number, part in enumerate(parts):
        about = {"name": pool, "generation": generation, "resourceSliceCount": len(parts)}
        spec = {"driver": driver, "pool": about, **reach, "devices": part}
        drawn.append({"metadata": {"name": f"{pool}-{kind}-{number}"}, "spec": spec})
    if draws.happens(0.05):
        drawn[0]["spec"]["pool"]["resourceSliceCount"] = len(parts) + 1
    if generation > 1 and draws.happens(0.5):
        about = {"name": pool, "generation": 1, "resourceSliceCount": 1}
        old = [_device(draws, driver, 7)]
        spec = {"driver": driver, "pool": about, **reach, "devices": old}
        drawn.append({"metadata": {"name": f"{pool}-{kind}-old"}, "spec": spec})
    return drawn


# Claims


def request(draws: Draws, name: str, *, admin: bool = False) -> Manifest:
    """Draw a request: of a number of devices, of all, or a prioritized list."""
    if draws.happens(0.4) and not admin:
        count = draws.randint(1, 4)
        listed = [
            {"name": f"s{number}", **_wanted(draws, draws.choice(CLASSES))}
            for number in range(count)
        ]
        return {"name": name, "firstAvailable": listed}
    exactly = _wanted(draws, draws.choice(CLASSES))
    if admin:
        exactly["adminAccess"] = True
    return {"name": name, "exactly": exactly}


def _wanted(draws: Draws, class_name: str) -> Manifest:
    drawn: Manifest = {"deviceClassName": class_name}
    mode = draws.weighted({"ExactCount": 8, "All": 2})
    drawn["allocationMode"] = mode
    if mode == "ExactCount":
        drawn["count"] = draws.weighted({1: 6, 2: 3, 3: 1})
    texts = draws.some(SELECTORS[class_name], 0, 2) if draws.happens(0.5) else []
    if texts:
        drawn["selectors"] = [{"cel": {"expression": text}} for text in texts]
    return drawn


def claim(draws: Draws, name: str, namespace: str, *, admin_share: float = 0.06) -> Manifest:
    """Draw a claim that has no devices yet."""
    admin = draws.happens(admin_share)
    count = draws.weighted({1: 5, 2: 3, 3: 1})
    requests = [request(draws, f"r{number}", admin=admin) for number in range(count)]
    devices: Manifest = {"requests": requests}
    if draws.happens(0.35):
        devices["constraints"] = [_constraint(draws, requests) for _ in range(draws.randint(1, 2))]
    return {
        "metadata": {"name": name, "namespace": namespace, "uid": f"uid-{name}"},
        "spec": {"devices": devices},
    }


def _constraint(draws: Draws, requests: Sequence[Manifest]) -> Manifest:
    drawn: Manifest = {"matchAttribute": draws.choice(ATTRIBUTES)}
    if draws.happens(0.5):
        names = [item["name"] for item in requests]
        names += [
            f"{item['name']}/{listed['name']}"
            for item in requests
            for listed in item.get("firstAvailable", [])
            if draws.happens(0.2)
        ]
        chosen = draws.some(names, 1, 3)
        parents = {name for name in chosen if "/" not in name}
        drawn["requests"] = [
            name for name in chosen if name.partition("/")[0] not in parents or (name in parents)
        ]
    return drawn


def allocated(
    draws: Draws, name: str, namespace: str, of: Manifest, owners: Sequence[Manifest]
) -> Manifest:
    """Draw a claim that has a device of a slice, and is reserved for pods."""
    device = draws.choice(of["spec"]["devices"])["name"]
    spec = of["spec"]
    result = {
        "request": "r",
        "driver": spec["driver"],
        "pool": spec["pool"]["name"],
        "device": device,
    }
    exactly: Manifest = {"deviceClassName": "any", "allocationMode": "ExactCount", "count": 1}
    if draws.happens(0.1):
        exactly["adminAccess"] = result["adminAccess"] = True
    allocation: Manifest = {"devices": {"results": [result]}}
    if "nodeName" in spec:
        field = {"key": "metadata.name", "operator": "In", "values": [spec["nodeName"]]}
        allocation["nodeSelector"] = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    elif "nodeSelector" in spec:
        allocation["nodeSelector"] = spec["nodeSelector"]
    reserved = [
        {"resource": "pods", "name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]}
        for pod in owners
    ]
    return {
        "metadata": {"name": name, "namespace": namespace, "uid": f"uid-{name}"},
        "spec": {"devices": {"requests": [{"name": "r", "exactly": exactly}]}},
        "status": {"allocation": allocation, **({"reservedFor": reserved} if reserved else {})},
    }


def use(manifest: Manifest, *names: str) -> None:
    """Have a pod use claims by their names."""
    claims = manifest["spec"].setdefault("resourceClaims", [])
    for name in names:
        claims.append({"name": f"d{len(claims)}", "resourceClaimName": name})


def use_template(manifest: Manifest, drawn: Manifest) -> None:
    """Have a pod use a claim that was made for it of a template."""
    metadata = manifest["metadata"]
    claims = manifest["spec"].setdefault("resourceClaims", [])
    entry = f"d{len(claims)}"
    claims.append({"name": entry, "resourceClaimTemplateName": "template"})
    statuses = manifest.setdefault("status", {}).setdefault("resourceClaimStatuses", [])
    statuses.append({"name": entry, "resourceClaimName": drawn["metadata"]["name"]})
    owner = {"apiVersion": "v1", "kind": "Pod", "name": metadata["name"], "uid": metadata["uid"]}
    drawn["metadata"]["ownerReferences"] = [owner | {"controller": True}]
