"""Small random clusters, and changes of one field of one object at a time.

Each kind of object is a table of its fields, each with a function that draws a value, so that every
field of every object can change. A value that is None leaves the field out. Names, labels, nodes
and sizes are few, so that the pods of a cluster are often in each other's way; a cluster has only
some of the features, so that a waiting pod seldom waits for several reasons at once.
"""

from collections.abc import Callable, Mapping
from copy import deepcopy
from itertools import count
from random import Random
from typing import Any, NamedTuple

from service.model.registry.kinds import DECLARED_KINDS
from tests.builders import HOST, IGNORED_DURING_EXECUTION, matching, requirement

Manifest = dict[str, Any]
Draw = Callable[[Random], Any]
Key = tuple[str, str, str]
"""Kind, namespace and name."""

DRIVER = "csi.example.com"
NODES = ("n1", "n2")
NAMESPACES = ("default", "shop")
APPS = ("a", "b")
RULES = (
    "affinity",
    "anti",
    "claims",
    "data",
    "default spread",
    "devices",
    "disks",
    "nodes",
    "ports",
    "resources",
    "siblings",
    "spread",
    "taints",
)
"""The features by which pods are in each other's way, or some nodes are no use to them."""
CIRCUMSTANCES = (
    "daemons",
    "groups",
    "limits",
    "moves",
    "nominations",
    "quota",
    "reservations",
    "starvation",
    "",
    "",
)
"""The features that say what else holds a pod back."""


def often(value: Draw) -> Draw:
    """Three times in four a value, else None."""
    return lambda chance: value(chance) if chance.randrange(4) else None


def seldom(value: Draw) -> Draw:
    """One time in four a value, else None."""
    return lambda chance: None if chance.randrange(4) else value(chance)


def one_of(*values: Any) -> Draw:
    return lambda chance: chance.choice(values)


def _term(chance: Random) -> Manifest:
    term: Manifest = {"topologyKey": chance.choice(("zone", HOST))}
    term["labelSelector"] = chance.choice((matching(app="a"), matching(app="b"), {}))
    teams = requirement("team", "DoesNotExist")
    wide = ({}, {}, {"namespaces": ["shop"]}, {"namespaceSelector": matching(team="red")})
    return term | chance.choice((*wide, {"namespaceSelector": {"matchExpressions": [teams]}}))


def _anti(chance: Random) -> Manifest:
    limit = {"maxPerDomain": 1} if chance.randrange(4) == 0 else {}
    return {IGNORED_DURING_EXECUTION: [_term(chance) | limit]}


def _affinity(chance: Random) -> Manifest:
    return {IGNORED_DURING_EXECUTION: [_term(chance)]}


def _exempt(chance: Random) -> Manifest:
    return {IGNORED_DURING_EXECUTION: [_term(chance) | {"firstPodExempt": True}]}


def _spread(chance: Random) -> list[Manifest]:
    namespaces = {"namespaceSelector": matching(team="red")} if chance.randrange(3) == 0 else {}
    taints = {"nodeTaintsPolicy": "Honor"} if chance.randrange(3) == 0 else {}
    return [
        {
            "topologyKey": "zone",
            "maxSkew": 1,
            "whenUnsatisfiable": chance.choice(("DoNotSchedule", "FallbackWhenFull")),
            "labelSelector": chance.choice((matching(app="a"), {})),
            **namespaces,
            **taints,
        }
    ]


def _node_affinity(chance: Random) -> Manifest:
    operator, *values = chance.choice((("In", "ssd"), ("Exists",), ("NotIn", "hdd")))
    term = {"matchExpressions": [requirement("disk", operator, *values)]}
    if chance.randrange(4) == 0:
        name = chance.choice(NODES)
        term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]}
    return {IGNORED_DURING_EXECUTION: {"nodeSelectorTerms": [term]}}


def _volume(chance: Random) -> list[Manifest]:
    names = chance.sample(("one", "own", "csi"), chance.choice((1, 1, 2)))
    uses = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in names]
    if chance.randrange(8) == 0:
        uses.append({"name": "e", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}})
    return uses


def _disk(chance: Random) -> list[Manifest]:
    reads = chance.randrange(3) == 0
    return [{"name": "disk", "gcePersistentDisk": {"pdName": "disk", "readOnly": reads}}]


def _owner(chance: Random) -> list[Manifest]:
    name = chance.choice(APPS)
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "controller": True}
    return [owner | {"uid": f"u-{name}"}]


def _taints(chance: Random) -> list[Manifest]:
    return [{"key": "t", "effect": chance.choice(("NoSchedule", "NoExecute"))}]


def _resize(chance: Random) -> list[Manifest]:
    granted = {"requests": {"cpu": chance.choice(("1", "2", "3"))}}
    return [{"name": "main", "resources": granted}]


class Field(NamedTuple):
    """Where a field is in the manifest, how its value is drawn, and for which features it is there."""

    path: tuple[str, ...]
    draw: Draw
    feature: str = ""
    of: str = ""
    """Whether only "placed" or only "waiting" pods have it, or "" for both."""


_SPEC, _STATUS, _METADATA = ("spec",), ("status",), ("metadata",)
_AFFINITY = (*_SPEC, "affinity")

POD: Mapping[str, Field] = {
    "label": Field((*_METADATA, "labels", "app"), often(one_of(*APPS))),
    "group": Field(
        (*_METADATA, "labels", "scheduling.x-k8s.io/pod-group"), seldom(one_of("g")), "groups"
    ),
    "cpu": Field(("cpu",), one_of("0", "1", "2", "3"), "resources"),
    "overhead": Field((*_SPEC, "overhead"), seldom(lambda _: {"cpu": "1"}), "resources"),
    "init": Field(("init",), seldom(one_of("2")), "resources"),
    "pod level": Field(
        (*_SPEC, "resources"), seldom(lambda _: {"requests": {"cpu": "3"}}), "resources"
    ),
    "port": Field(("port",), often(one_of(80, 81)), "ports"),
    "volumes": Field((*_SPEC, "volumes"), often(_volume), "claims"),
    "disks": Field((*_SPEC, "volumes"), often(_disk), "disks"),
    "affinity": Field((*_AFFINITY, "podAffinity"), often(_affinity), "affinity"),
    "exempt": Field((*_AFFINITY, "podAffinity"), often(_exempt), "siblings"),
    "anti": Field((*_AFFINITY, "podAntiAffinity"), often(_anti), "anti"),
    "spread": Field((*_SPEC, "topologySpreadConstraints"), often(_spread), "spread"),
    "owner": Field((*_METADATA, "ownerReferences"), often(_owner), "siblings"),
    "default owner": Field((*_METADATA, "ownerReferences"), seldom(_owner), "default spread"),
    "node affinity": Field((*_AFFINITY, "nodeAffinity"), seldom(_node_affinity), "nodes"),
    "selector": Field(
        (*_SPEC, "nodeSelector"),
        seldom(lambda chance: {"disk": chance.choice(("ssd", "hdd"))}),
        "nodes",
    ),
    "tolerations": Field(
        (*_SPEC, "tolerations"), seldom(lambda _: [{"operator": "Exists"}]), "taints"
    ),
    "gates": Field((*_SPEC, "schedulingGates"), seldom(lambda _: [{"name": "g"}]), of="waiting"),
    "priority": Field((*_SPEC, "priority"), one_of(None, 0, 5, 10)),
    "data": Field(
        (*_SPEC, "dataAffinity"), often(lambda _: {"required": [{"dataSet": "maps"}]}), "data"
    ),
    "devices": Field(
        (*_SPEC, "resourceClaims"),
        often(lambda chance: [{"name": "d", "resourceClaimName": chance.choice(("one", "two"))}]),
        "devices",
    ),
    "nominated": Field(
        (*_STATUS, "nominatedNodeName"), often(one_of(*NODES)), "nominations", "waiting"
    ),
    "node": Field((*_SPEC, "nodeName"), one_of(*NODES), of="placed"),
    "wanted node": Field((*_SPEC, "nodeName"), seldom(one_of(*NODES)), "daemons", of="waiting"),
    "terminating": Field(
        (*_METADATA, "deletionTimestamp"), seldom(one_of("2026-01-01T00:00:00Z")), of="placed"
    ),
    "phase": Field((*_STATUS, "phase"), seldom(one_of("Succeeded")), of="placed"),
    "resize": Field((*_STATUS, "containerStatuses"), seldom(_resize), "resources", "placed"),
}
NODE: Mapping[str, Field] = {
    "zone": Field((*_METADATA, "labels", "zone"), often(one_of("z1", "z2"))),
    "disk": Field((*_METADATA, "labels", "disk"), seldom(one_of("ssd", "hdd"))),
    "taints": Field((*_SPEC, "taints"), seldom(_taints), "taints"),
    "cordon": Field((*_SPEC, "unschedulable"), seldom(lambda _: True), "taints"),
    "cpu": Field((*_STATUS, "allocatable", "cpu"), one_of("2", "3", "4"), "resources"),
    "pods": Field((*_STATUS, "allocatable", "pods"), one_of("1", "2", "9"), "resources"),
}
NAMESPACE: Mapping[str, Field] = {
    "team": Field((*_METADATA, "labels", "team"), one_of(None, None, "red")),
}
CLAIM: Mapping[str, Field] = {
    "modes": Field((*_SPEC, "accessModes"), one_of(["ReadWriteOncePod"], ["ReadWriteMany"])),
    "class": Field((*_SPEC, "storageClassName"), one_of("late", "late", "now", "none")),
    "volume": Field((*_SPEC, "volumeName"), often(one_of("pv1", "pv2"))),
    "bound": Field(
        (*_METADATA, "annotations"), often(lambda _: {"pv.kubernetes.io/bind-completed": "yes"})
    ),
    "size": Field((*_SPEC, "resources", "requests", "storage"), one_of("1Gi", "2Gi")),
    "terminating": Field((*_METADATA, "deletionTimestamp"), seldom(one_of("2026-01-01T00:00:00Z"))),
}
VOLUME: Mapping[str, Field] = {
    "zone": Field((*_METADATA, "labels", "topology.kubernetes.io/zone"), seldom(one_of("z1"))),
    "class": Field((*_SPEC, "storageClassName"), one_of("late", "now")),
    "size": Field((*_SPEC, "capacity", "storage"), one_of("1Gi", "2Gi")),
    "modes": Field((*_SPEC, "accessModes"), one_of(["ReadWriteOncePod"], ["ReadWriteMany"])),
    "claim": Field(
        (*_SPEC, "claimRef"),
        seldom(lambda chance: {"namespace": "default", "name": chance.choice(("one", "own"))}),
    ),
    "csi": Field((*_SPEC, "csi", "volumeHandle"), one_of("h1", "h2", "h3")),
    "nodes": Field(
        (*_SPEC, "nodeAffinity", "required", "nodeSelectorTerms"),
        seldom(
            lambda chance: [{"matchExpressions": [requirement(HOST, "In", chance.choice(NODES))]}]
        ),
    ),
    "phase": Field((*_STATUS, "phase"), one_of("Available", "Bound", "Released")),
}
STORAGE_CLASS: Mapping[str, Field] = {
    "provisioner": Field(
        ("provisioner",), one_of("csi.example.com", "kubernetes.io/no-provisioner")
    ),
    "mode": Field(("volumeBindingMode",), one_of("WaitForFirstConsumer", "Immediate")),
    "topologies": Field(
        ("allowedTopologies",),
        seldom(lambda _: [{"matchLabelExpressions": [{"key": "zone", "values": ["z1"]}]}]),
    ),
}
CSI_NODE: Mapping[str, Field] = {
    "count": Field(("count",), one_of(0, 1, 2)),
}
CSI_DRIVER: Mapping[str, Field] = {
    "capacity": Field((*_SPEC, "storageCapacity"), lambda chance: chance.randrange(2) == 0)
}
CAPACITY: Mapping[str, Field] = {
    "class": Field(("storageClassName",), one_of("late", "now")),
    "topology": Field(("nodeTopology",), seldom(lambda _: matching(zone="z1"))),
    "capacity": Field(("capacity",), one_of("1Gi", "2Gi")),
}
ATTACHMENT: Mapping[str, Field] = {
    "node": Field((*_SPEC, "nodeName"), one_of(*NODES)),
    "volume": Field((*_SPEC, "source", "persistentVolumeName"), one_of("pv1", "pv2")),
}
DATA_SET: Mapping[str, Field] = {
    "nodes": Field((*_SPEC, "nodes"), seldom(lambda chance: [chance.choice(NODES)])),
    "domains": Field((*_SPEC, "domains"), seldom(lambda _: [{"key": "zone", "values": ["z1"]}])),
}
SERVICE: Mapping[str, Field] = {
    "selector": Field((*_SPEC, "selector", "app"), one_of(*APPS)),
}
REPLICA_SET: Mapping[str, Field] = {
    "selector": Field((*_SPEC, "selector", "matchLabels", "app"), one_of(*APPS)),
}
DEVICE_CLAIM: Mapping[str, Field] = {
    "count": Field(("count",), one_of(1, 2)),
    "allocation": Field(("allocation",), seldom(one_of(*NODES))),
}
SLICE: Mapping[str, Field] = {"devices": Field(("devices",), one_of(1, 2))}
DEVICE_CLASS: Mapping[str, Field] = {}
POD_GROUP: Mapping[str, Field] = {"members": Field((*_SPEC, "minMember"), one_of(1, 2))}
QUOTA: Mapping[str, Field] = {"pods": Field((*_SPEC, "hard", "pods"), one_of("1", "2", "9"))}
RESERVATION: Mapping[str, Field] = {"node": Field((), one_of(*NODES))}
MOVE: Mapping[str, Field] = {
    "node": Field((), one_of(*NODES)),
    "came to": Field((), seldom(one_of(*NODES))),
}
LIMIT_RANGE: Mapping[str, Field] = {"cpu": Field(("cpu",), one_of("1", "3"))}

FIELDS: Mapping[str, Mapping[str, Field]] = {
    "Pod": POD,
    "Node": NODE,
    "Namespace": NAMESPACE,
    "PersistentVolumeClaim": CLAIM,
    "PersistentVolume": VOLUME,
    "StorageClass": STORAGE_CLASS,
    "CSINode": CSI_NODE,
    "CSIDriver": CSI_DRIVER,
    "CSIStorageCapacity": CAPACITY,
    "VolumeAttachment": ATTACHMENT,
    "DataSet": DATA_SET,
    "Service": SERVICE,
    "ReplicaSet": REPLICA_SET,
    "ResourceClaim": DEVICE_CLAIM,
    "ResourceSlice": SLICE,
    "DeviceClass": DEVICE_CLASS,
    "PodGroup": POD_GROUP,
    "ResourceQuota": QUOTA,
    "LimitRange": LIMIT_RANGE,
    "GroupReservation": RESERVATION,
    "MoveReservation": MOVE,
}
OTHERS: tuple[tuple[str, tuple[Key, ...]], ...] = (
    (
        "claims",
        (
            *(("PersistentVolumeClaim", "default", name) for name in ("one", "own", "csi")),
            *(("PersistentVolume", "", name) for name in ("pv1", "pv2")),
            *(("StorageClass", "", name) for name in ("late", "now")),
            *(("CSINode", "", name) for name in NODES),
            ("CSIDriver", "", DRIVER),
            ("CSIStorageCapacity", "default", "c"),
            ("VolumeAttachment", "", "v"),
        ),
    ),
    ("data", (("DataSet", "default", "maps"),)),
    (
        "default spread",
        (("Service", "default", "s"), *(("ReplicaSet", "default", name) for name in APPS)),
    ),
    (
        "devices",
        (
            *(("ResourceClaim", "default", name) for name in ("one", "two")),
            *(("ResourceSlice", "", name) for name in NODES),
            ("DeviceClass", "", "gpu"),
        ),
    ),
    ("groups", (("PodGroup", "default", "g"),)),
    ("quota", (("ResourceQuota", "default", "q"),)),
    ("limits", (("LimitRange", "default", "l"),)),
)
"""The objects besides nodes, namespaces and pods, by the feature for which they are there."""


class Thing:
    """One object, as the values of its fields."""

    def __init__(self, key: Key, features: frozenset[str], role: str = "") -> None:
        self.key = key
        self.role = role
        """Whether a pod is "placed" or "waiting", or "" for other objects."""
        self.fields = {
            name: field
            for name, field in FIELDS[key[0]].items()
            if field.feature in (*features, "") and field.of in (role, "")
        }
        self.values: dict[str, Any] = {}
        self.pod: Thing | None = None
        """The pod for whose replacement a `MoveReservation` keeps room."""

    def draw(self, chance: Random) -> None:
        """Draw all values; a placed pod is at first there to stay."""
        for name, field in self.fields.items():
            self.values[name] = field.draw(chance)
        for name in ("terminating", "phase", "gates"):
            if name in self.values:
                self.values[name] = None

    def change(self, chance: Random) -> str:
        """Draw one value anew; return the name of the field, or "" if nothing changed."""
        name = chance.choice(sorted(self.fields))
        before = self.values[name]
        self.values[name] = self.fields[name].draw(chance)
        return "" if self.values[name] == before else name

    @property
    def manifest(self) -> Manifest:
        kind, namespace, name = self.key
        if kind in ("GroupReservation", "MoveReservation"):
            pod = None if self.pod is None else self.pod.manifest
            return {"kind": kind, "key": self.key[1:], "pod": pod, **self.values}
        manifest: Manifest = deepcopy(_BASES.get(kind, {}))
        metadata = {"name": name, "uid": f"u-{name}"} | (
            {"namespace": namespace} if namespace else {}
        )
        manifest |= {"kind": kind, "metadata": metadata}
        if kind in DECLARED_KINDS:
            manifest["apiVersion"] = DECLARED_KINDS[kind].api_version
        manifest.setdefault("spec", {})
        for field, value in self.values.items():
            if value is not None:
                _put(manifest, self.fields[field].path, value)
        return _finished(manifest)


_BASES: Mapping[str, Manifest] = {
    "Pod": {"spec": {"containers": [{"name": "main"}]}},
    "PersistentVolume": {"spec": {"csi": {"driver": DRIVER}}},
    "CSINode": {"spec": {"drivers": []}},
    "VolumeAttachment": {"spec": {"attacher": DRIVER}},
    "PodGroup": {"apiVersion": "scheduling.x-k8s.io/v1alpha1"},
    "ResourceQuota": {"apiVersion": "v1"},
}


def _put(manifest: Manifest, path: tuple[str, ...], value: Any) -> None:
    for key in path[:-1]:
        manifest = manifest.setdefault(key, {})
    known = manifest.get(path[-1])
    manifest[path[-1]] = [*known, *value] if isinstance(known, list) else value


def _finished(manifest: Manifest) -> Manifest:
    """Put the values without a path of their own where they belong."""
    kind, name, spec = manifest["kind"], manifest["metadata"]["name"], manifest["spec"]
    if kind == "Pod":
        _finish_pod(manifest, spec)
    elif kind == "Node":
        manifest["metadata"].setdefault("labels", {})[HOST] = name
        room = manifest.setdefault("status", {}).setdefault("allocatable", {})
        manifest["status"]["allocatable"] = {"cpu": "9", "pods": "9"} | room
    elif kind == "CSINode":
        count = {"count": manifest.pop("count")}
        spec["drivers"] = [{"name": DRIVER, "nodeID": name, "allocatable": count}]
    elif kind == "ResourceClaim":
        _finish_claim(manifest, spec)
    elif kind == "ResourceSlice":
        pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
        devices = [{"name": f"d{number}"} for number in range(manifest.pop("devices"))]
        spec |= {"driver": "gpu", "pool": pool, "nodeName": name, "devices": devices}
    elif kind == "LimitRange":
        spec["limits"] = [{"type": "Container", "max": {"cpu": manifest.pop("cpu")}}]
    if kind in ("StorageClass", "CSIStorageCapacity"):
        del manifest["spec"]
    return manifest


def _finish_pod(manifest: Manifest, spec: Manifest) -> None:
    main = spec["containers"][0]
    if cpu := manifest.pop("cpu", None):
        main["resources"] = {"requests": {"cpu": cpu}}
    if port := manifest.pop("port", None):
        main["ports"] = [{"containerPort": port, "hostPort": port}]
    if cpu := manifest.pop("init", None):
        spec["initContainers"] = [{"name": "init", "resources": {"requests": {"cpu": cpu}}}]


def _finish_claim(manifest: Manifest, spec: Manifest) -> None:
    request = {"name": "r", "exactly": {"deviceClassName": "gpu", "count": manifest.pop("count")}}
    spec["devices"] = {"requests": [request]}
    if node_name := manifest.pop("allocation", None):
        result = {"request": "r", "driver": "gpu", "pool": node_name, "device": "d0"}
        manifest["status"] = {"allocation": {"devices": {"results": [result]}}}


class Scene:
    """A random cluster, and the next changes of it."""

    def __init__(self, seed: int) -> None:
        self.chance = chance = Random(seed)
        rules = chance.sample(RULES, chance.choice((1, 1, 2)))
        self.features = frozenset((*rules, chance.choice(CIRCUMSTANCES)))
        if "starvation" in self.features:
            self.features = frozenset({"resources", "starvation", chance.choice(("nodes", ""))})
        self.favored: list[Key] = []
        """The objects for which room is kept, which change more often than others."""
        self.things: dict[Key, Thing] = {}
        self.changed = ""
        """What the last change was, for whoever reads a failure."""
        self._numbers = count()

    @property
    def config(self) -> Manifest:
        rule = {"topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
        version = self.chance.choice(("1.35", "1.36", "1.37"))
        config: Manifest = {
            "kubernetes": version,
            "restrictAllNamespacesAntiAffinity": self.chance.randrange(3) == 0,
        }
        if "default spread" in self.features:
            config["defaultTopologySpreadConstraints"] = [rule]
        return config

    def start(self) -> list[Manifest]:
        """The objects that are there at first, in an order in which they may be stored."""
        keys: list[Key] = [("Namespace", "", name) for name in NAMESPACES]
        keys += [key for feature, keys in OTHERS if feature in self.features for key in keys]
        keys = [key for key in keys if self.chance.randrange(6)]
        keys += [("Node", "", name) for name in NODES[: self.chance.choice((1, 1, 2))]]
        things = [self._made(key) for key in keys]
        things += [self._pod("placed") for _ in range(self.chance.randrange(4))]
        things += [self._pod("waiting") for _ in range(self.chance.choice((3, 4, 5)))]
        if "reservations" in self.features:
            waiting = next(thing for thing in things if thing.role == "waiting")
            things.append(self._made(("GroupReservation", *waiting.key[1:])))
            self.favored += [waiting.key, things[-1].key]
        if "moves" in self.features:
            things.append(self._moved())
            self.favored.append(things[-1].key)
        if "nominations" in self.features:
            self.favored += [thing.key for thing in things if thing.values.get("nominated")]
        if "starvation" in self.features:
            things.append(self._big())
            self.favored.append(things[-1].key)
        return [thing.manifest for thing in things]

    def _made(self, key: Key, role: str = "") -> Thing:
        thing = self.things[key] = Thing(key, self.features, role)
        thing.draw(self.chance)
        return thing

    def _pod(self, role: str) -> Thing:
        namespace = self.chance.choice(("default", "default", "shop"))
        return self._made(("Pod", namespace, f"{role[0]}{next(self._numbers)}"), role)

    def _big(self) -> Thing:
        """A pod that comes before others, and for which a node has room only if it is empty."""
        big = self._pod("waiting")
        big.values |= {"cpu": "3", "priority": 10, "pod level": None, "overhead": None}
        return big

    def late(self) -> list[Manifest]:
        """Some more pods, which come when others have waited for long."""
        return [self._pod("waiting").manifest for _ in range(3)]

    def _moved(self) -> Thing:
        pod = Thing(("Pod", "default", "m"), self.features, "placed")
        pod.draw(self.chance)
        thing = self._made(("MoveReservation", *pod.key[1:]))
        thing.pod = pod
        return thing

    def placed(self, key: Key, node_name: str) -> None:
        """Follow the placement of a pod."""
        thing = self.things[key]
        values = thing.values
        moved = self.things[key] = Thing(key, self.features, "placed")
        moved.values = {name: values.get(name) for name in moved.fields} | {"node": node_name}

    def next(self) -> tuple[Key, Manifest | None]:
        """Change one object: its manifest now, or None if it goes."""
        chance = self.chance
        if not self.things:
            return self._pod("placed").key, None
        missing = [key for key in self._possible() if key not in self.things]
        kind = chance.randrange(10)
        if kind == 0 and missing:
            thing = self._made(chance.choice(missing))
            self.changed = f"{thing.key} comes: {thing.values}"
            return thing.key, thing.manifest
        if kind == 1:
            thing = self._pod("placed")
            self.changed = f"{thing.key} comes: {thing.values}"
            return thing.key, thing.manifest
        favored = [key for key in self.favored if key in self.things]
        keys = favored if favored and chance.randrange(2) else sorted(self.things)
        thing = self.things[chance.choice(keys)]
        if kind <= 3 or not thing.fields:
            del self.things[thing.key]
            self.changed = f"{thing.key} goes: {thing.values}"
            return thing.key, None
        for _ in range(20):
            before = dict(thing.values)
            if name := thing.change(chance):
                told = f"{name} from {before[name]} to {thing.values[name]}"
                self.changed = f"{thing.key} changes {told}"
                break
        return thing.key, thing.manifest

    def _possible(self) -> list[Key]:
        others = [key for feature, keys in OTHERS if feature in self.features for key in keys]
        named = [("Namespace", "", name) for name in NAMESPACES]
        return [*others, *named, *(("Node", "", name) for name in NODES)]
