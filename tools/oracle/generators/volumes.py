"""Volumes: claims, persistent volumes, classes, drivers, capacities, and disks in line."""

from collections.abc import Sequence
from typing import Any

from tools.oracle.generators import quantities
from tools.oracle.generators.affinity import node_requirement
from tools.oracle.generators.draws import Draws, Manifest, without_absent
from tools.oracle.generators.labels import HOSTNAME, POD_LABELS, REGION, ZONE, selector
from tools.oracle.generators.nodes import GIB, MIB, ZONES
from tools.oracle.generators.pods import DELETED

CSI, DISK, EBS = "csi.example.com", "disk.csi.example.com", "ebs.csi.aws.com"
DRIVERS = (CSI, DISK, EBS)
NO_PROVISIONER = "kubernetes.io/no-provisioner"
WAIT, IMMEDIATE = "WaitForFirstConsumer", "Immediate"
BOUND = {"pv.kubernetes.io/bind-completed": "yes", "pv.kubernetes.io/bound-by-controller": "yes"}
SELECTED_NODE = "volume.kubernetes.io/selected-node"
BETA_CLASS = "volume.beta.kubernetes.io/storage-class"
BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"
CLASSES = ("fast", "gold", "slow", "local", "missing", "")
MODES = ("ReadWriteOnce", "ReadWriteMany", "ReadOnlyMany")
SIZES = tuple(size * GIB for size in (1, 2, 5, 10, 20, 50))


def classes(draws: Draws) -> list[Manifest]:
    """Draw the storage classes: a mode and topologies for each of the names."""
    drawn: list[Manifest] = [
        {"metadata": {"name": "fast"}, "provisioner": CSI, "volumeBindingMode": WAIT},
        {"metadata": {"name": "gold"}, "provisioner": DISK, "volumeBindingMode": WAIT},
        {"metadata": {"name": "slow"}, "provisioner": DISK},
        {"metadata": {"name": "local"}, "provisioner": NO_PROVISIONER, "volumeBindingMode": WAIT},
    ]
    if draws.happens(0.3):
        drawn[2]["volumeBindingMode"] = IMMEDIATE
    for item in drawn[:2]:
        if draws.happens(0.4):
            item["allowedTopologies"] = [_topology(draws) for _ in range(draws.randint(0, 2))]
    return drawn


def _topology(draws: Draws) -> Manifest:
    expressions = [{"key": ZONE, "values": draws.some(ZONES, 1, 3)}]
    if draws.happens(0.2):
        expressions.append({"key": REGION, "values": ["r1"]})
    return {} if draws.happens(0.08) else {"matchLabelExpressions": expressions}


class Storage:
    """The volume objects of a case under construction, and the pods' use of them."""

    def __init__(self, draws: Draws, nodes: Sequence[Manifest], namespace: str) -> None:
        self._draws = draws
        self._nodes = nodes
        self._namespace = namespace
        self._sizes = 0
        self.claims: list[Manifest] = []
        self.volumes: list[Manifest] = []

    def volume(self, class_name: str, at_least: int = 0, **spec: Any) -> Manifest:
        """Add a persistent volume; no two have the same size, so that the smallest is known."""
        draws, name = self._draws, f"pv-{len(self.volumes):02}"
        self._sizes += 1
        capacity = max(at_least, draws.choice(SIZES)) + self._sizes * MIB
        drawn: Manifest = {
            "metadata": {"name": name, "labels": {}},
            "spec": {
                "capacity": {"storage": quantities.size(draws, capacity)},
                "accessModes": draws.some(MODES, 1),
                **self._source(name),
                **draws.optional(0.9 if class_name else 0.5, "storageClassName", class_name),
                **spec,
            },
            "status": {"phase": draws.weighted({"Available": 9, "Released": 1, "Pending": 1})},
        }
        self._vary_volume(drawn)
        self.volumes.append(drawn)
        return drawn

    def _source(self, name: str) -> Manifest:
        draws = self._draws
        kind = draws.weighted({"csi": 6, "nfs": 3, "local": 1, "awsElasticBlockStore": 1})
        if kind == "csi":
            handle = f"h-{name}" if draws.happens(0.9) else "h-shared"
            return {"csi": {"driver": draws.choice(DRIVERS[:2]), "volumeHandle": handle}}
        if kind == "nfs":
            return {"nfs": {"server": "10.1.2.3", "path": f"/{name}"}}
        if kind == "local":
            return {"local": {"path": f"/{name}"}}
        return {"awsElasticBlockStore": {"volumeID": f"vol-{name}"}}

    def _vary_volume(self, volume: Manifest) -> None:
        draws, metadata, spec = self._draws, volume["metadata"], volume["spec"]
        if "local" in spec or draws.happens(0.35):
            spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": self._terms("local" in spec)}}
        if draws.happens(0.25):
            key = draws.choice((ZONE, ZONE, REGION, BETA_ZONE))
            values = ("r1", "r2") if key == REGION else ZONES
            metadata["labels"][key] = "__".join(draws.some(values, 1, 2))
        if draws.happens(0.3):
            metadata["labels"]["tier"] = draws.choice(POD_LABELS["tier"])
        if draws.happens(0.08):
            spec["volumeMode"] = draws.choice(("Block", "Filesystem"))
        if draws.happens(0.05):
            metadata["deletionTimestamp"] = DELETED

    def _terms(self, is_local: bool) -> list[Manifest]:  # noqa: FBT001
        draws = self._draws
        if is_local or draws.happens(0.4):
            names = [node["metadata"]["name"] for node in self._nodes]
            values = draws.some(names, 1, 3)
            return [{"matchExpressions": [{"key": HOSTNAME, "operator": "In", "values": values}]}]
        return [
            {"matchExpressions": [node_requirement(draws) for _ in range(draws.randint(1, 2))]}
            for _ in range(draws.randint(1, 2))
        ]

    def claim(self, state: str | None = None) -> str:
        """Add a claim in some state, with volumes that may fit it, and return its name."""
        draws, name = self._draws, f"data-{len(self.claims)}"
        states = {"waiting": 8, "bound": 6, "selected": 2, "prebound": 1, "immediate": 1, "lost": 1}
        state = state or draws.weighted(states)
        if state == "absent":
            return "data-absent"
        requested, class_name = draws.choice(SIZES), draws.choice(("fast", "gold", "local"))
        if state == "immediate":
            class_name = draws.choice(("slow", "missing", ""))
        drawn: Manifest = {
            "metadata": {"name": name, "namespace": self._namespace, "annotations": {}},
            "spec": {
                "accessModes": draws.some(MODES, 1, 2),
                "resources": {"requests": {"storage": quantities.size(draws, requested)}},
                "storageClassName": class_name,
            },
            "status": {"phase": "Pending"},
        }
        self.claims.append(drawn)
        self._settle(drawn, state, requested)
        drawn["metadata"] = without_absent(drawn["metadata"])
        return name

    def _settle(self, claim: Manifest, state: str, requested: int) -> None:
        draws, metadata, spec = self._draws, claim["metadata"], claim["spec"]
        reference = {"namespace": self._namespace, "name": metadata["name"]}
        if state in ("bound", "prebound", "lost"):
            volume = self.volume(spec["storageClassName"], requested, claimRef=reference)
            spec["volumeName"] = volume["metadata"]["name"]
            if state != "prebound":
                metadata["annotations"] = dict(BOUND)
                claim["status"]["phase"] = "Bound" if state == "bound" else "Lost"
            if state == "lost" or draws.happens(0.04):
                spec["volumeName"] = "pv-gone"
        elif state == "selected":
            names = [node["metadata"]["name"] for node in self._nodes]
            metadata["annotations"][SELECTED_NODE] = draws.choice(names)
        else:
            self._offer(claim, requested)
        if state in ("bound", "waiting") and draws.happens(0.05):
            metadata["deletionTimestamp"] = DELETED
        if draws.happens(0.05):
            metadata["annotations"][BETA_CLASS] = draws.choice(CLASSES[:4])

    def _offer(self, claim: Manifest, requested: int) -> None:
        """Add volumes that a waiting claim may be bound to."""
        draws, spec = self._draws, claim["spec"]
        if draws.happens(0.15):
            spec["selector"] = {} if draws.happens(0.2) else selector(draws, POD_LABELS)
        if draws.happens(0.05):
            spec["volumeMode"] = "Block"
        for _ in range(draws.randint(0, 3)):
            at_least = requested if draws.happens(0.6) else 0
            volume = self.volume(spec["storageClassName"], at_least)
            if draws.happens(0.7):
                volume["spec"]["accessModes"] = list(MODES)
            if draws.happens(0.2):
                ours = draws.happens(0.5)
                volume["spec"]["claimRef"] = {
                    "namespace": self._namespace,
                    "name": claim["metadata"]["name"] if ours else "other",
                }

    def objects(self) -> Manifest:
        """Return the lists of a case."""
        return {"persistentVolumes": self.volumes, "persistentVolumeClaims": self.claims}


def use(manifest: Manifest, *claims: str) -> None:
    """Have a pod use claims."""
    volumes = manifest["spec"].setdefault("volumes", [])
    for name in claims:
        source = {"claimName": name}
        volumes.append({"name": f"v{len(volumes)}", "persistentVolumeClaim": source})


def use_ephemeral(draws: Draws, manifest: Manifest, storage: Storage) -> None:
    """Have a pod use an ephemeral volume, whose claim may be missing or of somebody else."""
    uid = manifest["metadata"].setdefault("uid", f"uid-{manifest['metadata']['name']}")
    template = {"spec": {"accessModes": ["ReadWriteOnce"]}}
    source = {"name": "scratch", "ephemeral": {"volumeClaimTemplate": template}}
    manifest["spec"].setdefault("volumes", []).append(source)
    if draws.happens(0.12):
        return
    storage.claim(draws.choice(("waiting", "bound")))
    metadata = storage.claims[-1]["metadata"]
    old, metadata["name"] = metadata["name"], f"{manifest['metadata']['name']}-scratch"
    owner = {"apiVersion": "v1", "kind": "Pod", "name": manifest["metadata"]["name"]}
    owner |= {"uid": uid if draws.happens(0.9) else "uid-other", "controller": True}
    metadata["ownerReferences"] = [owner]
    for volume in storage.volumes:
        reference = volume["spec"].get("claimRef")
        if reference is not None and reference["name"] == old:
            reference["name"] = metadata["name"]


def add_disk(draws: Draws, manifest: Manifest) -> None:
    """Add a disk in line, of one of the kinds that two pods may not share."""
    volumes = manifest["spec"].setdefault("volumes", [])
    number = draws.choice(("1", "2"))
    read_only = draws.optional(0.5, "readOnly", draws.happens(0.7))
    kind = draws.choice(("gcePersistentDisk", "awsElasticBlockStore", "iscsi", "rbd"))
    portal = {"targetPortal": "10.0.0.1:3260", "lun": draws.choice((0, 1)), "iqn": f"iqn.{number}"}
    source: dict[str, Manifest] = {
        "gcePersistentDisk": {"pdName": f"pd-{number}"},
        "awsElasticBlockStore": {"volumeID": f"vol-{number}"},
        "iscsi": portal,
        "rbd": {
            "monitors": draws.some(("m1", "m2", "m3"), 1, 2),
            "pool": draws.choice(("p", "q")),
            "image": f"i-{number}",
        },
    }
    volumes.append({"name": f"v{len(volumes)}", kind: source[kind] | read_only})


def csi_nodes(draws: Draws, nodes: Sequence[Manifest], share: float = 0.85) -> list[Manifest]:
    """Draw what the nodes' drivers can attach; some nodes have no driver, or say nothing."""
    drawn = []
    for node in nodes:
        if not draws.happens(share):
            continue
        name = node["metadata"]["name"]
        drivers = [
            {
                "name": driver,
                "nodeID": name,
                **draws.optional(0.8, "allocatable", _limit(draws)),
            }
            for driver in DRIVERS
            if draws.happens(0.7)
        ]
        drawn.append({"metadata": {"name": name}, "spec": {"drivers": drivers}})
    return drawn


def _limit(draws: Draws) -> Manifest:
    return draws.optional(0.9, "count", draws.choice((0, 1, 1, 2, 3)))


def csi_drivers(draws: Draws) -> list[Manifest]:
    """Draw drivers, with storage capacity or without; at most one has to be on a pod's node.

    If a node lacked two such drivers, the order of a map would decide which of them is named.
    """
    needed = draws.choice((*DRIVERS[:2], None))
    return [
        {
            "metadata": {"name": name},
            "spec": {
                **draws.optional(0.8, "storageCapacity", draws.happens(0.7)),
                **draws.optional(0.7, "preventPodSchedulingIfMissing", name == needed),
            },
        }
        for name in DRIVERS
        if draws.happens(0.8)
    ]


def capacities(draws: Draws, nodes: Sequence[Manifest]) -> list[Manifest]:
    """Draw where the drivers have room."""
    names = [node["metadata"]["name"] for node in nodes]
    drawn: list[Manifest] = []
    for number in range(draws.randint(0, 8)):
        topology: Manifest | None = draws.choice(
            (
                {"matchLabels": {HOSTNAME: draws.choice(names)}},
                {"matchLabels": {ZONE: draws.choice(ZONES)}},
                {"matchExpressions": [{"key": ZONE, "operator": "Exists"}]},
                {},
                None,
            )
        )
        item: Manifest = {
            "metadata": {"name": f"cap-{number}", "namespace": "kube-system"},
            "storageClassName": draws.choice(CLASSES[:3]),
            **({} if topology is None else {"nodeTopology": topology}),
        }
        if draws.happens(0.9):
            item["capacity"] = quantities.size(draws, draws.choice(SIZES) * 4)
        if draws.happens(0.25):
            item["maximumVolumeSize"] = quantities.size(draws, draws.choice(SIZES))
        drawn.append(item)
    return drawn


def attachments(
    draws: Draws, nodes: Sequence[Manifest], volumes: Sequence[Manifest]
) -> list[Manifest]:
    """Draw attachments of persistent volumes to nodes."""
    of_csi = [volume for volume in volumes if "csi" in volume["spec"]]
    return [
        {
            "metadata": {"name": f"va-{number}"},
            "spec": {
                "attacher": volume["spec"]["csi"]["driver"],
                "nodeName": draws.choice(nodes)["metadata"]["name"],
                "source": {"persistentVolumeName": volume["metadata"]["name"]},
            },
            "status": {"attached": True},
        }
        for number, volume in enumerate(draws.some(of_csi, 0, 3))
    ]
