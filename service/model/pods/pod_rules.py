"""Validation rules of pods: containers, tolerations, gates, and other fields scheduling reads.

Source: `pkg/apis/core/validation`, v1.35. Containers may lack an image and a name, and may share a
host port; fields that scheduling does not read are not checked.
"""

from collections.abc import Mapping

from service.model.core import names
from service.model.core.kind_rules import kind_rules
from service.model.core.primitives import Value
from service.model.core.resources import (
    CONTAINER_QUANTITIES,
    CONTAINER_RESOURCES,
    PAGES_NEED_COMPUTE,
    POD_RESOURCES,
    lacks_compute,
    overhead,
)
from service.model.core.selector_rules import LABELS
from service.model.core.type_rules import declared
from service.model.core.validators import (
    REQUIRED,
    Problems,
    Record,
    Rule,
    anything,
    at,
    boolean,
    entries_of,
    items_of,
    list_of,
    one_of,
    record,
    text,
)
from service.model.pods.affinity_rules import (
    AFFINITY,
    CONNECTIONS,
    DATA_AFFINITY,
    spread_constraints,
)
from service.model.pods.pod import (
    Container,
    ContainerPort,
    ContainerRestartRule,
    ContainerStatus,
    PodResourceClaim,
    PodSchedulingGate,
    Toleration,
    VolumeMount,
)
from service.model.pods.pod_fields import (
    PodCondition,
    PodResourceClaimStatus,
    PodSchedulingGroup,
    PodSpec,
    PodStatus,
    WorkloadReference,
)
from service.model.pods.pod_limits import check_pod_limits
from service.model.pods.volume_sources import (
    AWSElasticBlockStoreVolumeSource,
    AzureDiskVolumeSource,
    CinderVolumeSource,
    EphemeralVolumeSource,
    GCEPersistentDiskVolumeSource,
    ImageVolumeSource,
    ISCSIVolumeSource,
    PersistentVolumeClaimVolumeSource,
    PortworxVolumeSource,
    RBDVolumeSource,
    Volume,
)


def _key_or_exists(toleration: Record, path: str, problems: Problems) -> None:
    if not toleration.get("key") and toleration.get("operator") != "Exists":
        message = "must be Exists when key is empty, which means all keys and all values"
        problems.add(at(path, "operator"), message, toleration.get("operator"))


def _value_fits_operator(toleration: Record, path: str, problems: Problems) -> None:
    if toleration.get("operator") == "Exists" and toleration.get("value"):
        message = "must be empty when operator is Exists"
        problems.add(at(path, "value"), message, toleration["value"])


def _seconds_need_no_execute(toleration: Record, path: str, problems: Problems) -> None:
    if toleration.get("tolerationSeconds") is not None and toleration.get("effect") != "NoExecute":
        message = "must be NoExecute when tolerationSeconds is set"
        problems.add(at(path, "effect"), message, toleration.get("effect"))


TOLERATION = declared(
    Toleration,
    {"key": text(names.label_key, empty_ok=True), "value": text(names.label_value)},
    also=(_key_or_exists, _value_fits_operator, _seconds_need_no_execute),
)


_PORTS = list_of(
    declared(
        ContainerPort,
        {
            "hostIP": text(names.ip_address),
            "protocol": one_of("TCP", "UDP", "SCTP", ""),
            "name": text(names.port_name, empty_ok=True),
        },
    )
)

CONTAINER = declared(
    Container,
    {
        "name": text(names.dns_label, empty_ok=True),
        "ports": _PORTS,
        "resources": CONTAINER_RESOURCES,
        "restartPolicyRules": list_of(declared(ContainerRestartRule, {})),
        "volumeMounts": list_of(declared(VolumeMount, {"bindMountOptions": list_of(text())})),
    },
)


def _names_differ(spec: Record, path: str, problems: Problems) -> None:
    """Check that the names of all containers and init containers differ."""
    seen = set()
    for field in ("initContainers", "containers"):
        for index, container in enumerate(items_of(spec.get(field))):
            name = entries_of(container).get("name")
            if isinstance(name, str) and name in seen:
                where = f"{at(path, field)}[{index}].name"
                problems.add(where, "is the name of another container already", name)
            seen.add(name if isinstance(name, str) and name else None)


def _gates_differ(spec: Record, path: str, problems: Problems) -> None:
    seen = set()
    for index, gate in enumerate(items_of(spec.get("schedulingGates"))):
        name = entries_of(gate).get("name")
        if isinstance(name, str) and name in seen:
            problems.add(f"{at(path, 'schedulingGates')}[{index}]", "is there already", name)
        seen.add(name if isinstance(name, str) else None)


def _gated_is_unplaced(spec: Record, path: str, problems: Problems) -> None:
    if spec.get("nodeName") and spec.get("schedulingGates"):
        message = "can't be set until all schedulingGates have been cleared"
        problems.add(at(path, "nodeName"), message, spec["nodeName"])


def _host_network_ports(spec: Record, path: str, problems: Problems) -> None:
    """Check that host ports equal container ports if the pod uses the host's network."""
    if spec.get("hostNetwork") is not True:
        return
    for field in ("initContainers", "containers"):
        for i, container in enumerate(items_of(spec.get(field))):
            for j, port in enumerate(items_of(entries_of(container).get("ports"))):
                sent = entries_of(port)
                if sent.get("hostPort") not in (None, 0, sent.get("containerPort")):
                    where = f"{at(path, field)}[{i}].ports[{j}].hostPort"
                    problems.add(
                        where, "must match containerPort with hostNetwork", sent["hostPort"]
                    )


def _amounts(resources: Record) -> tuple[Record, Record]:
    return entries_of(resources.get("requests")), entries_of(resources.get("limits"))


def _pages_with_compute(spec: Record, path: str, problems: Problems) -> None:
    """Check that pod-level huge pages come with cpu or memory.

    Kubernetes validates after it has added what the containers request to the pod-level requests.
    """
    resources = entries_of(spec.get("resources"))
    containers = (
        entries_of(entries_of(container).get("resources"))
        for field in ("initContainers", "containers")
        for container in items_of(spec.get(field))
    )
    if not lacks_compute(*_amounts(resources)):
        return
    if lacks_compute(
        *(amounts for level in (resources, *containers) for amounts in _amounts(level))
    ):
        problems.add(at(path, "resources"), PAGES_NEED_COMPUTE)


def _not_empty(text: str) -> str | None:
    return None if text else "must not be empty"


def _names_its_claim(volume: Record, path: str, problems: Problems) -> None:
    """Check that an ephemeral volume has a name, from which its claim's name is derived."""
    if volume.get("ephemeral") is not None and not volume.get("name"):
        problems.add(at(path, "name"), REQUIRED)


def _source(type_: type[Value], rules: Mapping[str, Rule]) -> Rule:
    return declared(type_, {"readOnly": boolean, **rules})


_MONITORS = list_of(text(), at_least="must have at least one monitor", values=True)
_VOLUME = declared(
    Volume,
    {
        "persistentVolumeClaim": _source(
            PersistentVolumeClaimVolumeSource, {"claimName": text(_not_empty)}
        ),
        "ephemeral": declared(EphemeralVolumeSource, {}),
        "gcePersistentDisk": _source(GCEPersistentDiskVolumeSource, {"pdName": text(_not_empty)}),
        "awsElasticBlockStore": _source(
            AWSElasticBlockStoreVolumeSource, {"volumeID": text(_not_empty)}
        ),
        "azureDisk": _source(AzureDiskVolumeSource, {"diskURI": text(_not_empty), "kind": text()}),
        "cinder": _source(CinderVolumeSource, {"volumeID": text(_not_empty)}),
        "portworxVolume": _source(PortworxVolumeSource, {"volumeID": text(_not_empty)}),
        "iscsi": _source(ISCSIVolumeSource, {"iqn": text(_not_empty)}),
        "rbd": _source(RBDVolumeSource, {"monitors": _MONITORS, "image": text(_not_empty)}),
        "image": declared(ImageVolumeSource, {}),
    },
    also=(_names_its_claim,),
)


def _names_one_source(claim: Record, path: str, problems: Problems) -> None:
    sources = ("resourceClaimName", "resourceClaimTemplateName")
    if sum(claim.get(name) is not None for name in sources) != 1:
        problems.add(path, f"must have exactly one of {' and '.join(sources)}")


_RESOURCE_CLAIM = declared(
    PodResourceClaim,
    {
        "name": text(names.dns_label),
        "resourceClaimName": text(names.dns_subdomain),
        "resourceClaimTemplateName": text(names.dns_subdomain),
    },
    also=(_names_one_source,),
)


def _device_claims_differ(spec: Record, path: str, problems: Problems) -> None:
    seen = set()
    for index, claim in enumerate(items_of(spec.get("resourceClaims"))):
        name = entries_of(claim).get("name")
        if isinstance(name, str) and name in seen:
            problems.add(
                f"{at(path, 'resourceClaims')}[{index}].name", "is that of another one", name
            )
        seen.add(name if isinstance(name, str) else None)


_SCHEDULING_GROUP = declared(PodSchedulingGroup, {"podGroupName": text(names.dns_subdomain)})
_WORKLOAD_REFERENCE = declared(
    WorkloadReference,
    {
        "name": text(names.dns_subdomain),
        "podGroup": text(names.dns_label),
        "podGroupReplicaKey": text(names.dns_label, empty_ok=True),
    },
)


def _one_group(spec: Record, path: str, problems: Problems) -> None:
    if spec.get("workloadRef") is not None and spec.get("schedulingGroup") is not None:
        problems.add(at(path, "workloadRef"), "must not be set together with schedulingGroup")


SPEC = declared(
    PodSpec,
    {
        "containers": list_of(CONTAINER, at_least="must have at least one container"),
        "initContainers": list_of(CONTAINER),
        "overhead": overhead,
        "resources": POD_RESOURCES,
        "nodeName": text(names.dns_subdomain, empty_ok=True),
        "nodeSelector": LABELS,
        "affinity": AFFINITY,
        "tolerations": list_of(TOLERATION),
        "topologySpreadConstraints": spread_constraints,
        "connections": CONNECTIONS,
        "dataAffinity": DATA_AFFINITY,
        "schedulingGates": list_of(declared(PodSchedulingGate, {"name": text(names.label_key)})),
        "schedulerName": text(names.scheduler_name),
        "priorityClassName": text(names.dns_subdomain, empty_ok=True),
        "runtimeClassName": text(names.dns_subdomain, empty_ok=True),
        "resourceClaims": list_of(_RESOURCE_CLAIM),
        "volumes": list_of(_VOLUME),
        "schedulingGroup": _SCHEDULING_GROUP,
        "workloadRef": _WORKLOAD_REFERENCE,
    },
    required=("containers",),
    mistakes={
        "topologySpreadConstraint": "topologySpreadConstraints",
        "connection": "connections",
        "toleration": "tolerations",
        "schedulingGate": "schedulingGates",
        "nodeAffinity": "affinity.nodeAffinity",
        "podAffinity": "affinity.podAffinity",
        "podAntiAffinity": "affinity.podAntiAffinity",
    },
    also=(
        _names_differ,
        _gates_differ,
        _gated_is_unplaced,
        _host_network_ports,
        _pages_with_compute,
        _one_group,
        _device_claims_differ,
        check_pod_limits,
    ),
)

_RESIZED = record(
    {"requests": CONTAINER_QUANTITIES, "limits": CONTAINER_QUANTITIES, "claims": anything},
    closed=False,
)
_CONTAINER_STATUSES = list_of(
    declared(ContainerStatus, {"resources": _RESIZED, "allocatedResources": CONTAINER_QUANTITIES})
)
_CLAIM_STATUS = declared(
    PodResourceClaimStatus,
    {"name": text(names.dns_label), "resourceClaimName": text(names.dns_subdomain)},
)
STATUS = declared(
    PodStatus,
    {
        "startTime": text(names.timestamp),
        "nominatedNodeName": text(names.dns_subdomain, empty_ok=True),
        "conditions": list_of(declared(PodCondition, {})),
        "containerStatuses": _CONTAINER_STATUSES,
        "initContainerStatuses": _CONTAINER_STATUSES,
        "resources": _RESIZED,
        "allocatedResources": CONTAINER_QUANTITIES,
        "resourceClaimStatuses": list_of(_CLAIM_STATUS),
    },
)

POD_RULES = kind_rules(
    "Pod", names.dns_subdomain, namespaced=True, fields={"status": STATUS}, spec=SPEC
)
"""The validation rules of pods."""
