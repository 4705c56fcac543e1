"""Hypothesis strategies for volumes: few names and sizes, so that claims, volumes and pods meet."""

from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

Manifest = dict[str, Any]

NODES = ("n1", "n2", "n3", "n4")
CLAIMS = ("data-0", "data-1", "data-2")
PODS = ("probe-0", "p1", "p2")
VOLUMES = ("pv-0", "pv-1", "pv-2", "pv-3")
CLASSES = ("wait", "local", "now")
DRIVERS = ("csi.example.com", "ebs.csi.aws.com")
ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
OLD_ZONE = "failure-domain.beta.kubernetes.io/zone"
SIZES = ("1Gi", "2Gi", "3Gi")
MODES = ("ReadWriteOnce", "ReadWriteMany", "ReadWriteOncePod")
BOUND = {"pv.kubernetes.io/bind-completed": "yes"}
BETA_CLASS = "volume.beta.kubernetes.io/storage-class"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
DELETED = "2026-01-01T00:00:00Z"


def seldom(value: object) -> SearchStrategy[Any]:
    """One time in six a value, else None."""
    return st.integers(0, 5).map(lambda drawn: None if drawn else value)


def one_of(*values: Any) -> SearchStrategy[Any]:
    return st.sampled_from(values)


def without_none(**fields: Any) -> Manifest:
    return {name: value for name, value in fields.items() if value is not None}


@st.composite
def node_labels(draw: DrawFn) -> Manifest:
    """Zones under new and old names, and no zone at all."""
    return without_none(
        **{
            ZONE: draw(one_of("a", "b", "c", None)),
            OLD_ZONE: draw(one_of("a", "b", None, None)),
            REGION: draw(one_of("r", "s", None)),
        }
    )


@st.composite
def pod_volumes(draw: DrawFn) -> list[Manifest]:
    """What a pod mounts: mostly claims."""
    sources = draw(st.lists(source(), max_size=3))
    return [{"name": f"v{number}", **each} for number, each in enumerate(sources)]


@st.composite
def source(draw: DrawFn) -> Manifest:
    reads = draw(st.booleans())
    name = draw(one_of("a", "b"))
    kind = draw(one_of("claim", "claim", "claim", "claim", "own", "gce", "ebs", "iscsi", "rbd"))
    match kind:
        case "claim":
            return {"persistentVolumeClaim": {"claimName": draw(one_of(*CLAIMS))}}
        case "own":
            return {"ephemeral": {"volumeClaimTemplate": {"spec": {}}}}
        case "gce":
            return {"gcePersistentDisk": {"pdName": name, "readOnly": reads}}
        case "ebs":
            return {"awsElasticBlockStore": {"volumeID": name, "readOnly": reads}}
        case "iscsi":
            return {"iscsi": {"iqn": name, "lun": 0, "targetPortal": "p", "readOnly": reads}}
    monitors = draw(st.lists(one_of("m1", "m2"), min_size=1, max_size=2))
    pool = draw(one_of("rbd", "pool", None))
    return {"rbd": without_none(monitors=monitors, image=name, pool=pool, readOnly=reads)}


def objects(namespaces: tuple[str, ...]) -> SearchStrategy[Manifest]:
    """Any object that says something of volumes; mostly claims and volumes."""
    return st.one_of(
        claims(namespaces),
        claims(namespaces),
        volumes(namespaces),
        volumes(namespaces),
        classes(),
        csi_nodes(),
        drivers(),
        capacities(),
        attachments(),
    )


@st.composite
def claims(draw: DrawFn, namespaces: tuple[str, ...]) -> Manifest:
    owner = draw(one_of(*PODS))
    ephemeral = draw(st.integers(0, 3)) == 0
    name = f"{owner}-v{draw(st.integers(0, 2))}" if ephemeral else draw(one_of(*CLAIMS))
    bound = draw(st.booleans())
    annotations = dict(BOUND) if bound and draw(st.integers(0, 5)) else {}
    annotations |= without_none(
        **{
            SELECTED_NODE: draw(seldom(draw(one_of(*NODES)))),
            BETA_CLASS: draw(seldom(draw(one_of(*CLASSES)))),
        }
    )
    references = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "name": owner,
            "uid": draw(one_of(f"u-{owner}", f"u-{owner}", "other")),
            "controller": draw(st.integers(0, 4)) > 0,
        }
    ]
    metadata = without_none(
        name=name,
        namespace=draw(one_of(*namespaces)),
        uid=draw(one_of("one", "two")),
        annotations=annotations,
        ownerReferences=references if ephemeral else None,
        deletionTimestamp=draw(seldom(DELETED)),
    )
    spec = without_none(
        accessModes=[draw(one_of(*MODES))],
        resources={"requests": {"storage": draw(one_of(*SIZES))}},
        storageClassName=draw(one_of("wait", *CLASSES, "missing", "", None)),
        volumeName=draw(one_of(*VOLUMES)) if bound else None,
        volumeMode=draw(seldom("Block")),
        volumeAttributesClassName=draw(seldom("gold")),
        selector=draw(seldom({"matchLabels": {"media": "ssd"}})),
    )
    status = without_none(phase=draw(seldom("Lost")))
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": metadata,
        "spec": spec,
        "status": status,
    }


@st.composite
def volumes(draw: DrawFn, namespaces: tuple[str, ...]) -> Manifest:
    labels = without_none(
        media=draw(one_of("ssd", "hdd", None)),
        **{
            ZONE: draw(one_of("a", "b", "a__b", "a____b", "", None, None, None)),
            OLD_ZONE: draw(one_of("a", "b", None, None, None)),
        },
    )
    metadata = without_none(
        name=draw(one_of(*VOLUMES)),
        labels=labels,
        annotations=without_none(**{BETA_CLASS: draw(seldom("local"))}),
        deletionTimestamp=draw(seldom(DELETED)),
    )
    reference = without_none(
        namespace=draw(one_of(*namespaces)),
        name=draw(one_of(*CLAIMS)),
        uid=draw(one_of("one", "two", None)),
    )
    spec = without_none(
        capacity={"storage": draw(one_of(*SIZES))},
        accessModes=[*MODES] if draw(st.booleans()) else [draw(one_of(*MODES))],
        storageClassName=draw(one_of(*CLASSES, "", None)),
        volumeMode=draw(seldom("Block")),
        volumeAttributesClassName=draw(seldom("gold")),
        claimRef=reference if draw(st.integers(0, 2)) == 0 else None,
        nodeAffinity=draw(affinities()),
        **draw(backing()),
    )
    status = without_none(phase=draw(one_of("Available", "Available", "Bound", "Released", None)))
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": metadata,
        "spec": spec,
        "status": status,
    }


@st.composite
def backing(draw: DrawFn) -> Manifest:
    handle = draw(one_of("a", "b", "c"))
    match draw(st.integers(0, 3)):
        case 0:
            return {"awsElasticBlockStore": {"volumeID": handle}}
        case 1:
            return {"nfs": {"server": "s", "path": "/"}}
    return {"csi": {"driver": draw(one_of(*DRIVERS)), "volumeHandle": handle}}


@st.composite
def affinities(draw: DrawFn) -> Manifest | None:
    if draw(st.booleans()):
        return None
    terms = draw(st.lists(term(), min_size=1, max_size=2))
    return {"required": {"nodeSelectorTerms": terms}}


@st.composite
def term(draw: DrawFn) -> Manifest:
    fields = [{"key": "metadata.name", "operator": "In", "values": [draw(one_of(*NODES))]}]
    match draw(st.integers(0, 9)):
        case 0:
            return {}
        case 1:
            return {"matchFields": fields}
        case 2:
            requirement = {"key": ZONE, "operator": "DoesNotExist"}
        case 3:
            requirement = {"key": REGION, "operator": "NotIn", "values": ["r"]}
        case 4 | 5 | 6:
            values = draw(st.lists(one_of(*NODES), min_size=1, max_size=2))
            requirement = {"key": "kubernetes.io/hostname", "operator": "In", "values": values}
        case _:
            requirement = {"key": ZONE, "operator": "In", "values": [draw(one_of("a", "b"))]}
    return without_none(matchExpressions=[requirement], matchFields=draw(seldom(fields)))


@st.composite
def classes(draw: DrawFn) -> Manifest:
    name = draw(one_of(*CLASSES))
    provisioners = {"local": "kubernetes.io/no-provisioner"}
    makers = (*DRIVERS, *DRIVERS, "kubernetes.io/aws-ebs")
    topologies = [
        {"matchLabelExpressions": [{"key": ZONE, "values": ["a", "c"]}]},
        {"matchLabelExpressions": [{"key": REGION, "values": ["r"]}]},
        {},
    ]
    return without_none(
        apiVersion="storage.k8s.io/v1",
        kind="StorageClass",
        metadata={"name": name},
        provisioner=provisioners.get(name, draw(one_of(*makers))),
        volumeBindingMode=None if name == "now" else "WaitForFirstConsumer",
        allowedTopologies=draw(one_of(None, None, [], topologies[:1], topologies[:2], topologies)),
    )


@st.composite
def csi_nodes(draw: DrawFn) -> Manifest:
    drivers = [
        {"name": name, "nodeID": "i", **limit}
        for name in DRIVERS
        if (limit := draw(one_of(None, {}, *({"allocatable": {"count": n}} for n in range(4)))))
        is not None
    ]
    metadata = {"name": draw(one_of(*NODES))}
    return _storage("CSINode", metadata=metadata, spec={"drivers": drivers})


@st.composite
def drivers(draw: DrawFn) -> Manifest:
    metadata = {"name": draw(one_of(*DRIVERS))}
    spec = {
        "storageCapacity": draw(st.booleans()),
        "preventPodSchedulingIfMissing": draw(st.booleans()),
    }
    return _storage("CSIDriver", metadata=metadata, spec=spec)


@st.composite
def capacities(draw: DrawFn) -> Manifest:
    selectors = ({}, {"matchLabels": {ZONE: "a"}}, {"matchLabels": {ZONE: "b", REGION: "r"}})
    unlabelled = {"matchExpressions": [{"key": ZONE, "operator": "NotIn", "values": ["a"]}]}
    return _storage(
        "CSIStorageCapacity",
        metadata={"name": draw(one_of("one", "two")), "namespace": "default"},
        storageClassName=draw(one_of("wait", "now")),
        nodeTopology=draw(one_of(None, *selectors, unlabelled)),
        capacity=draw(one_of(None, *SIZES)),
        maximumVolumeSize=draw(seldom("2Gi")),
    )


@st.composite
def attachments(draw: DrawFn) -> Manifest:
    spec = {
        "attacher": draw(one_of(*DRIVERS)),
        "nodeName": draw(one_of(*NODES)),
        "source": {"persistentVolumeName": draw(one_of(*VOLUMES))},
    }
    metadata = {"name": draw(one_of("one", "two", "three"))}
    return _storage("VolumeAttachment", metadata=metadata, spec=spec)


def _storage(kind: str, **fields: Any) -> Manifest:
    return without_none(apiVersion="storage.k8s.io/v1", kind=kind, **fields)
