"""The storage kinds: claims, volumes, classes, drivers, capacities, and attachments.

The wire types hold the fields that rules read, and `volume_object` converts them to the types of
`service.model.volumes.volume`.
"""

from collections.abc import Callable, Mapping
from typing import cast

from msgspec.structs import replace

from service.model.core import names
from service.model.core.kind import DeclaredObject, KindSpec
from service.model.core.primitives import (
    LabelSelector,
    NodeSelector,
    NodeSelectorTerm,
    Partial,
    Quantities,
)
from service.model.core.quantity import ceil_whole, parse_quantity
from service.model.core.resources import quantities, quantity
from service.model.core.selector_rules import LABEL_SELECTOR, NODE_SELECTOR
from service.model.core.validators import (
    INT32_MAX,
    Rule,
    boolean,
    list_of,
    one_of,
    record,
    text,
    whole_number,
)
from service.model.pods.volume_sources import (
    AWSElasticBlockStoreVolumeSource,
    AzureDiskVolumeSource,
    CinderVolumeSource,
    GCEPersistentDiskVolumeSource,
    PortworxVolumeSource,
)
from service.model.volumes.volume import (
    ZONE_KEYS,
    ClaimRef,
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    DiskName,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    Topology,
    VolumeAttachment,
    VolumeObject,
    ZoneLabels,
    in_tree_disk,
)

BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
"""The annotation of a claim that is completely bound to its `volumeName`."""
SELECTED_NODE = "volume.kubernetes.io/selected-node"
"""The annotation of a claim for the node on which its volume is being provisioned."""
BETA_CLASS = "volume.beta.kubernetes.io/storage-class"
"""The annotation that takes precedence over `storageClassName`."""
IS_DEFAULT_CLASS = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
"""The annotations that make a class the default; one of them must be "true"."""
DEFAULTED_CLASS = "moorage.dev/default-storage-class"
"""The annotation of a claim without a class for the default class assigned to it."""
ZONES_SEPARATOR = "__"
STORAGE = "storage"
IMMEDIATE, WAIT_FOR_CONSUMER = "Immediate", "WaitForFirstConsumer"


class StorageRequirements(Partial, frozen=True, kw_only=True):
    """How large a volume has to be."""

    requests: Quantities | None = None
    """The least size, as `storage`."""


class PersistentVolumeClaimSpec(Partial, frozen=True, kw_only=True):
    """What a claim asks for. Other fields are kept and returned as they are."""

    access_modes: tuple[str, ...] = ()
    """How the volume is to be mounted; it has to offer all of these."""
    resources: StorageRequirements | None = None
    """How large the volume has to be."""
    selector: LabelSelector | None = None
    """Which volumes may be bound, by their labels; absent: any."""
    storage_class_name: str | None = None
    """Name of the class."""
    volume_attributes_class_name: str | None = None
    """Name of the class of attributes that the volume has to have."""
    volume_mode: str = "Filesystem"
    """Filesystem or Block."""
    volume_name: str = ""
    """Name of the volume that it is bound to."""


class PhaseStatus(Partial, frozen=True, kw_only=True):
    """How far an object has come."""

    phase: str = ""
    """The phase: of a claim Pending, Bound or Lost; of a volume Pending, Available, Bound, Released or Failed."""


class PersistentVolumeClaimBody(Partial, frozen=True, kw_only=True):
    """The fields of a claim that scheduling reads."""

    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()
    """What it asks for."""
    status: PhaseStatus = PhaseStatus()
    """How far its binding has come."""


class VolumeNodeAffinity(Partial, frozen=True, kw_only=True):
    """The nodes on which a volume can be used."""

    required: NodeSelector | None = None
    """Selects the nodes; absent: all."""


class CSIVolumeSource(Partial, frozen=True, kw_only=True):
    """A volume of a CSI driver."""

    driver: str
    """Name of the driver."""
    volume_handle: str
    """What the driver calls the volume."""


class PersistentVolumeSpec(Partial, frozen=True, kw_only=True):
    """What a volume offers. Other fields are kept and returned as they are."""

    capacity: Quantities | None = None
    """The size, as `storage`."""
    access_modes: tuple[str, ...] = ()
    """How it can be mounted."""
    claim_ref: ClaimRef | None = None
    """The claim that it is bound to, or kept for."""
    storage_class_name: str | None = None
    """Name of the class."""
    volume_attributes_class_name: str | None = None
    """Name of the class of its attributes."""
    volume_mode: str = "Filesystem"
    """Filesystem or Block."""
    node_affinity: VolumeNodeAffinity | None = None
    """The nodes on which it can be used."""
    csi: CSIVolumeSource | None = None
    """Where it comes from, if from a CSI driver."""
    aws_elastic_block_store: AWSElasticBlockStoreVolumeSource | None = None
    """The disk of Amazon's cloud that it is."""
    gce_persistent_disk: GCEPersistentDiskVolumeSource | None = None
    """The disk of Google's cloud that it is."""
    azure_disk: AzureDiskVolumeSource | None = None
    """The disk of Microsoft's cloud that it is."""
    cinder: CinderVolumeSource | None = None
    """The disk of OpenStack that it is."""
    portworx_volume: PortworxVolumeSource | None = None
    """The volume of Portworx that it is."""


class PersistentVolumeBody(Partial, frozen=True, kw_only=True):
    """The fields of a volume that scheduling reads."""

    spec: PersistentVolumeSpec = PersistentVolumeSpec()
    """What it offers."""
    status: PhaseStatus = PhaseStatus()
    """Whether it is free."""


class TopologySelectorLabelRequirement(Partial, frozen=True, kw_only=True):
    """A label that nodes have to have."""

    key: str
    """Label key."""
    values: tuple[str, ...]
    """The values, of which the node has to have one."""


class TopologySelectorTerm(Partial, frozen=True, kw_only=True):
    """Labels that nodes have to have."""

    match_label_expressions: tuple[TopologySelectorLabelRequirement, ...] = ()
    """Requirements that all have to hold; none match no node."""


class StorageClassBody(Partial, frozen=True, kw_only=True):
    """The fields of a storage class that scheduling reads; other fields are returned as sent."""

    provisioner: str
    """Name of the driver that makes volumes of the class."""
    volume_binding_mode: str = IMMEDIATE
    """Immediate, or WaitForFirstConsumer: claims are bound when a pod that uses them is placed."""
    allowed_topologies: tuple[TopologySelectorTerm, ...] = ()
    """The nodes for which volumes can be made: any of these; none: all."""


class VolumeNodeResources(Partial, frozen=True, kw_only=True):
    """What a driver can do on a node."""

    count: int | None = None
    """How many volumes can be attached; absent: any number."""


class CSINodeDriver(Partial, frozen=True, kw_only=True):
    """A driver on a node."""

    name: str
    """Name of the driver."""
    allocatable: VolumeNodeResources | None = None
    """How many volumes of it the node takes."""


class CSINodeSpec(Partial, frozen=True, kw_only=True):
    """The drivers on a node."""

    drivers: tuple[CSINodeDriver, ...] = ()
    """The drivers that run there."""


class CSINodeBody(Partial, frozen=True, kw_only=True):
    """The fields of a CSINode that scheduling reads."""

    spec: CSINodeSpec = CSINodeSpec()
    """The drivers that run there."""


class CSIDriverSpec(Partial, frozen=True, kw_only=True):
    """What a driver can do. Other fields are kept and returned as they are."""

    storage_capacity: bool = False
    """Whether `CSIStorageCapacity` objects say where it has room."""
    prevent_pod_scheduling_if_missing: bool = False
    """Whether pods with volumes of the driver need a node on which it runs, from Kubernetes 1.37 on."""


class CSIDriverBody(Partial, frozen=True, kw_only=True):
    """The fields of a CSI driver that scheduling reads."""

    spec: CSIDriverSpec = CSIDriverSpec()
    """What it can do."""


class CSIStorageCapacityBody(Partial, frozen=True, kw_only=True):
    """A driver's storage capacity for one class on a set of nodes."""

    storage_class_name: str
    """Name of the class."""
    node_topology: LabelSelector | None = None
    """Selects the nodes; absent: none."""
    capacity: str | int | float | None = None
    """How much room there is."""
    maximum_volume_size: str | int | float | None = None
    """How large a volume may be; taken before `capacity`."""


class VolumeAttachmentSource(Partial, frozen=True, kw_only=True):
    """What is attached."""

    persistent_volume_name: str = ""
    """Name of the volume."""


class VolumeAttachmentSpec(Partial, frozen=True, kw_only=True):
    """Which volume is attached to which node, and by whom."""

    attacher: str
    """Name of the driver."""
    node_name: str
    """Name of the node."""
    source: VolumeAttachmentSource = VolumeAttachmentSource()
    """What is attached."""


class VolumeAttachmentBody(Partial, frozen=True, kw_only=True):
    """The fields of a volume attachment that scheduling reads."""

    spec: VolumeAttachmentSpec
    """Which volume is attached to which node."""


# Conversion from wire types to the values that rules read


def volume_object(kept: DeclaredObject[Partial]) -> VolumeObject | None:
    """Convert an object of a storage kind to the value that rules read; return None for others."""
    read = _READERS.get(kept.kind)
    return None if read is None else read(kept)


def _claim(kept: DeclaredObject[PersistentVolumeClaimBody]) -> PersistentVolumeClaim:
    spec = kept.body.spec
    requests = spec.resources.requests if spec.resources is not None else None
    return PersistentVolumeClaim(
        namespace=kept.namespace,
        name=kept.name,
        uid=kept.uid,
        class_name=_class_name(kept.annotations, spec.storage_class_name),
        class_field=spec.storage_class_name or "",
        volume_name=spec.volume_name,
        is_bound=bool(spec.volume_name) and BIND_COMPLETED in kept.annotations,
        access_modes=spec.access_modes,
        requested=_storage(requests),
        volume_mode=spec.volume_mode,
        attributes_class=spec.volume_attributes_class_name or "",
        selector=spec.selector,
        selected_node=kept.annotations.get(SELECTED_NODE),
        controller_uid=kept.controller.uid if kept.controller is not None else "",
        is_lost=kept.body.status.phase == "Lost",
        terminating=kept.terminating,
    )


def _volume(kept: DeclaredObject[PersistentVolumeBody]) -> PersistentVolume:
    spec, phase = kept.body.spec, kept.body.status.phase
    return PersistentVolume(
        name=kept.name,
        labels=kept.labels,
        class_name=_class_name(kept.annotations, spec.storage_class_name),
        class_field=spec.storage_class_name or "",
        capacity=_storage(spec.capacity),
        access_modes=frozenset(spec.access_modes),
        volume_mode=spec.volume_mode,
        attributes_class=spec.volume_attributes_class_name or "",
        claim=spec.claim_ref,
        is_available=phase in ("", "Available"),
        terminating=kept.terminating,
        affinity=_affinity(spec.node_affinity.required if spec.node_affinity else None),
        zones=_zones(kept.labels),
        disk=_disk(spec),
        handle=spec.csi.volume_handle if spec.csi is not None else None,
    )


def _class_name(annotations: Mapping[str, str], name: str | None) -> str:
    return annotations.get(BETA_CLASS, name or "")


def _storage(amounts: Quantities | None) -> int:
    return parse_quantity((amounts or {}).get(STORAGE, 0))


def _affinity(required: NodeSelector | None) -> NodeSelector | None:
    """Return a volume's node affinity without `matchFields`, which kube-scheduler ignores.

    A term with no other requirement then matches every node.
    """
    if required is None or any(map(_is_of_fields, required.node_selector_terms)):
        return None
    terms = (term and replace(term, match_fields=None) for term in required.node_selector_terms)
    return replace(required, node_selector_terms=tuple(terms))


def _is_of_fields(term: NodeSelectorTerm | None) -> bool:
    return bool(term and term.match_fields and not term.match_expressions)


def _zones(labels: Mapping[str, str]) -> ZoneLabels:
    """Return the zone labels, except those with an empty part, which kube-scheduler ignores."""
    parts = {key: labels[key].split(ZONES_SEPARATOR) for key in ZONE_KEYS if key in labels}
    return tuple((key, frozenset(values)) for key, values in parts.items() if all(values))


def _disk(spec: PersistentVolumeSpec) -> DiskName | None:
    if spec.csi is not None:
        return DiskName(spec.csi.driver, spec.csi.volume_handle)
    return in_tree_disk(spec)


def _storage_class(kept: DeclaredObject[StorageClassBody]) -> StorageClass:
    return StorageClass(
        name=kept.name,
        provisioner=kept.body.provisioner,
        waits_for_consumer=kept.body.volume_binding_mode == WAIT_FOR_CONSUMER,
        allowed_topologies=tuple(map(_topology, kept.body.allowed_topologies)),
    )


def _topology(term: TopologySelectorTerm) -> Topology:
    return tuple((expression.key, expression.values) for expression in term.match_label_expressions)


def _csi_node(kept: DeclaredObject[CSINodeBody]) -> CSINode:
    limits = {
        driver.name: driver.allocatable.count
        for driver in kept.body.spec.drivers
        if driver.allocatable is not None and driver.allocatable.count is not None
    }
    drivers = frozenset(driver.name for driver in kept.body.spec.drivers)
    return CSINode(name=kept.name, limits=limits, drivers=drivers)


def _csi_driver(kept: DeclaredObject[CSIDriverBody]) -> CSIDriver:
    spec = kept.body.spec
    return CSIDriver(
        name=kept.name,
        reports_capacity=spec.storage_capacity,
        is_required=spec.prevent_pod_scheduling_if_missing,
    )


def _capacity(kept: DeclaredObject[CSIStorageCapacityBody]) -> CSIStorageCapacity:
    capacity, size_max = kept.body.capacity, kept.body.maximum_volume_size
    if size_max is None:
        size_max = capacity
    return CSIStorageCapacity(
        namespace=kept.namespace,
        name=kept.name,
        class_name=kept.body.storage_class_name,
        capacity=ceil_whole(parse_quantity(capacity or 0)),
        size_max=None if size_max is None else parse_quantity(size_max),
        nodes=kept.body.node_topology,
    )


def _attachment(kept: DeclaredObject[VolumeAttachmentBody]) -> VolumeAttachment:
    spec = kept.body.spec
    return VolumeAttachment(
        name=kept.name,
        attacher=spec.attacher,
        node_name=spec.node_name,
        volume_name=spec.source.persistent_volume_name,
    )


# Validation rules

_MODES = list_of(one_of("ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod"))
_SIZES = quantities(names.label_key)
_PHASE = record({"phase": text()}, closed=False)


def _not_empty(value: str) -> str | None:
    return None if value else "must not be empty"


def _in_part(*required: str, **fields: Rule) -> Rule:
    return record(fields, required=required, closed=False)


_CLAIM_SPEC = _in_part(
    accessModes=_MODES,
    resources=_in_part(requests=_SIZES),
    selector=LABEL_SELECTOR,
    storageClassName=text(names.dns_subdomain, empty_ok=True),
    volumeAttributesClassName=text(names.dns_subdomain, empty_ok=True),
    volumeMode=one_of("Filesystem", "Block"),
    volumeName=text(),
)
_VOLUME_SPEC = _in_part(
    capacity=_SIZES,
    accessModes=_MODES,
    claimRef=_in_part(namespace=text(), name=text(), uid=text()),
    storageClassName=text(names.dns_subdomain, empty_ok=True),
    volumeAttributesClassName=text(names.dns_subdomain, empty_ok=True),
    volumeMode=one_of("Filesystem", "Block"),
    nodeAffinity=_in_part(required=NODE_SELECTOR),
    csi=_in_part("driver", "volumeHandle", driver=text(_not_empty), volumeHandle=text(_not_empty)),
    awsElasticBlockStore=_in_part("volumeID", volumeID=text(_not_empty), readOnly=boolean),
    gcePersistentDisk=_in_part("pdName", pdName=text(_not_empty), readOnly=boolean),
    azureDisk=_in_part("diskURI", diskURI=text(_not_empty), kind=text()),
    cinder=_in_part("volumeID", volumeID=text(_not_empty)),
    portworxVolume=_in_part("volumeID", volumeID=text(_not_empty)),
)
_TOPOLOGY = _in_part(
    matchLabelExpressions=list_of(
        _in_part(
            "key",
            "values",
            key=text(names.label_key),
            values=list_of(
                text(names.label_value), at_least="must have at least one value", values=True
            ),
        )
    )
)
_DRIVER = _in_part(
    "name",
    name=text(_not_empty),
    allocatable=_in_part(count=whole_number(0, INT32_MAX)),
)

PERSISTENT_VOLUME_CLAIM = KindSpec(
    kind="PersistentVolumeClaim",
    plural="persistentvolumeclaims",
    body=PersistentVolumeClaimBody,
    fields={"spec": _CLAIM_SPEC, "status": _PHASE},
    short_names=("pvc",),
    description="Claims to volumes. A claim whose class waits for its first consumer is bound, in "
    "one change, with the pod that uses it when that is placed.",
    example={
        "metadata": {"name": "data-db-0", "namespace": "shop"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "fast",
            "resources": {"requests": {"storage": "10Gi"}},
        },
    },
)
PERSISTENT_VOLUME = KindSpec(
    kind="PersistentVolume",
    plural="persistentvolumes",
    namespaced=False,
    changed_by="observe",
    body=PersistentVolumeBody,
    fields={"spec": _VOLUME_SPEC, "status": _PHASE},
    short_names=("pv",),
    description="Volumes that are there, with the nodes on which they can be used. One without a "
    "status is available.",
    example={
        "metadata": {"name": "disk-7"},
        "spec": {
            "capacity": {"storage": "100Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "local",
            "nodeAffinity": {
                "required": {
                    "nodeSelectorTerms": [
                        {
                            "matchExpressions": [
                                {
                                    "key": "kubernetes.io/hostname",
                                    "operator": "In",
                                    "values": ["node-7"],
                                }
                            ]
                        }
                    ]
                }
            },
        },
        "status": {"phase": "Available"},
    },
)
STORAGE_CLASS = KindSpec(
    kind="StorageClass",
    plural="storageclasses",
    api_version="storage.k8s.io/v1",
    namespaced=False,
    changed_by="observe",
    is_public=True,
    body=StorageClassBody,
    fields={
        "provisioner": text(),
        "volumeBindingMode": one_of(IMMEDIATE, WAIT_FOR_CONSUMER),
        "allowedTopologies": list_of(_TOPOLOGY),
    },
    required=("provisioner",),
    short_names=("sc",),
    description="Classes of volumes: who makes them, for which nodes, and when claims are bound.",
    example={
        "metadata": {"name": "fast"},
        "provisioner": "ebs.csi.aws.com",
        "volumeBindingMode": "WaitForFirstConsumer",
    },
)
CSI_NODE = KindSpec(
    kind="CSINode",
    plural="csinodes",
    api_version="storage.k8s.io/v1",
    namespaced=False,
    changed_by="observe",
    is_public=True,
    body=CSINodeBody,
    fields={"spec": _in_part("drivers", drivers=list_of(_DRIVER))},
    description="The CSI drivers on each node, and how many volumes can be attached there.",
    example={
        "metadata": {"name": "node-7"},
        "spec": {
            "drivers": [{"name": "ebs.csi.aws.com", "nodeID": "i-7", "allocatable": {"count": 25}}]
        },
    },
)
CSI_DRIVER = KindSpec(
    kind="CSIDriver",
    plural="csidrivers",
    api_version="storage.k8s.io/v1",
    namespaced=False,
    changed_by="observe",
    is_public=True,
    body=CSIDriverBody,
    fields={"spec": _in_part(storageCapacity=boolean, preventPodSchedulingIfMissing=boolean)},
    description="CSI drivers, whether they report where they have room for volumes, and whether "
    "pods with their volumes need a node on which they run.",
    example={"metadata": {"name": "topolvm.io"}, "spec": {"storageCapacity": True}},
)
CSI_STORAGE_CAPACITY = KindSpec(
    kind="CSIStorageCapacity",
    plural="csistoragecapacities",
    api_version="storage.k8s.io/v1",
    changed_by="observe",
    body=CSIStorageCapacityBody,
    fields={
        "storageClassName": text(),
        "nodeTopology": LABEL_SELECTOR,
        "capacity": quantity,
        "maximumVolumeSize": quantity,
    },
    required=("storageClassName",),
    description="The room that a driver has for volumes of a class on some nodes.",
    example={
        "metadata": {"name": "fast-node-7", "namespace": "storage"},
        "storageClassName": "fast",
        "nodeTopology": {"matchLabels": {"kubernetes.io/hostname": "node-7"}},
        "capacity": "500Gi",
    },
)
VOLUME_ATTACHMENT = KindSpec(
    kind="VolumeAttachment",
    plural="volumeattachments",
    api_version="storage.k8s.io/v1",
    namespaced=False,
    changed_by="observe",
    body=VolumeAttachmentBody,
    fields={
        "spec": _in_part(
            "attacher",
            "nodeName",
            attacher=text(_not_empty),
            nodeName=text(_not_empty),
            source=_in_part(persistentVolumeName=text()),
        )
    },
    required=("spec",),
    description="Volumes that are attached to nodes, which count towards the limits there.",
    example={
        "metadata": {"name": "csi-7"},
        "spec": {
            "attacher": "ebs.csi.aws.com",
            "nodeName": "node-7",
            "source": {"persistentVolumeName": "disk-7"},
        },
    },
)

VOLUME_KINDS = (
    PERSISTENT_VOLUME_CLAIM,
    PERSISTENT_VOLUME,
    STORAGE_CLASS,
    CSI_NODE,
    CSI_DRIVER,
    CSI_STORAGE_CAPACITY,
    VOLUME_ATTACHMENT,
)
_READERS = cast(
    "Mapping[str, Callable[[DeclaredObject[Partial]], VolumeObject]]",
    {
        PERSISTENT_VOLUME_CLAIM.kind: _claim,
        PERSISTENT_VOLUME.kind: _volume,
        STORAGE_CLASS.kind: _storage_class,
        CSI_NODE.kind: _csi_node,
        CSI_DRIVER.kind: _csi_driver,
        CSI_STORAGE_CAPACITY.kind: _capacity,
        VOLUME_ATTACHMENT.kind: _attachment,
    },
)
