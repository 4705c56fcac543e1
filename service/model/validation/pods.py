"""Which pods are valid: containers, tolerations, gates, and what else scheduling reads.

Source: `pkg/apis/core/validation`, v1.35. Containers may lack an image and a name, and may share a
host port; fields that scheduling does not read are not looked at.
"""

from service.model.validation import names
from service.model.validation.affinity import AFFINITY, spread_constraints
from service.model.validation.resources import (
    CONTAINER_RESOURCES,
    OVERHEAD,
    POD_RESOURCES,
    PORTS,
)
from service.model.validation.rules import (
    INT32_MAX,
    Problems,
    Record,
    anything,
    at,
    boolean,
    entries_of,
    items_of,
    list_of,
    one_of,
    record,
    text,
    whole_number,
)
from service.model.validation.selectors import LABELS

_INT64 = (-(2**63), 2**63 - 1)
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


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


TOLERATION = record(
    {
        "key": text(names.label_key, empty_ok=True),
        "operator": one_of("Equal", "Exists", ""),
        "value": text(names.label_value),
        "effect": one_of(*_EFFECTS, ""),
        "tolerationSeconds": whole_number(*_INT64),
    },
    also=(_key_or_exists, _value_fits_operator, _seconds_need_no_execute),
)

TAINT = record(
    {
        "key": text(names.label_key),
        "value": text(names.label_value),
        "effect": one_of(*_EFFECTS),
        "timeAdded": text(names.timestamp),
    },
    required=("key", "effect"),
)

CONTAINER = record(
    {
        "name": text(names.dns_label, empty_ok=True),
        "image": text(),
        "ports": PORTS,
        "resources": CONTAINER_RESOURCES,
        "restartPolicy": one_of("Always", "OnFailure", "Never"),
    },
    closed=False,
)


def _names_differ(spec: Record, path: str, problems: Problems) -> None:
    """A name identifies one container or init container of the pod."""
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
    """In the host's network a container's port is the host's."""
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


SPEC = record(
    {
        "containers": list_of(CONTAINER, at_least="must have at least one container"),
        "initContainers": list_of(CONTAINER),
        "overhead": OVERHEAD,
        "resources": POD_RESOURCES,
        "nodeName": text(names.dns_subdomain, empty_ok=True),
        "nodeSelector": LABELS,
        "affinity": AFFINITY,
        "tolerations": list_of(TOLERATION),
        "topologySpreadConstraints": spread_constraints,
        "schedulingGates": list_of(record({"name": text(names.label_key)}, required=("name",))),
        "schedulerName": text(names.scheduler_name),
        "priority": whole_number(-INT32_MAX - 1, INT32_MAX),
        "priorityClassName": text(names.dns_subdomain, empty_ok=True),
        "preemptionPolicy": one_of("PreemptLowerPriority", "Never"),
        "activeDeadlineSeconds": whole_number(1, INT32_MAX),
        "hostNetwork": boolean,
    },
    required=("containers",),
    closed=False,
    hints={
        "topologySpreadConstraint": "topologySpreadConstraints",
        "toleration": "tolerations",
        "schedulingGate": "schedulingGates",
        "nodeAffinity": "affinity.nodeAffinity",
        "podAffinity": "affinity.podAffinity",
        "podAntiAffinity": "affinity.podAntiAffinity",
    },
    also=(_names_differ, _gates_differ, _gated_is_unplaced, _host_network_ports),
)

_RESIZED = record(
    {"requests": OVERHEAD, "limits": OVERHEAD, "claims": anything},
    closed=False,
)
_CONTAINER_STATUSES = list_of(
    record(
        {"name": text(), "resources": _RESIZED, "allocatedResources": OVERHEAD},
        closed=False,
    )
)
_CONDITION = record(
    {"type": text(), "status": text(), "reason": text(), "message": text()},
    required=("type",),
    closed=False,
)
STATUS = record(
    {
        "phase": text(),
        "conditions": list_of(_CONDITION),
        "containerStatuses": _CONTAINER_STATUSES,
        "initContainerStatuses": _CONTAINER_STATUSES,
    },
    closed=False,
)
