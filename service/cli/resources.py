"""The kinds of objects that the commands know: their paths, short names and columns."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from service.cli.errors import WrongUsage
from service.model.kept_kinds import KEPT_KINDS
from service.model.kept_object import KeptKind

Item = Mapping[str, Any]
ZONE = "topology.kubernetes.io/zone"


@dataclass(frozen=True, kw_only=True)
class Resource:
    """One kind of objects, and how a table shows it."""

    plural: str
    kind: str
    names: tuple[str, ...]
    namespaced: bool = False
    columns: tuple[str, ...]
    row: Callable[[Item], Sequence[object]]
    order: Callable[[Item], str] | None = None
    """Returns what a list is sorted by; None if by namespace and name, as the server sends it."""


def find_resource(name: str) -> Resource:
    """Return the kind that has a name such as `pods`, `pod` or `po`.

    Raises:
        WrongUsage: no kind has this name.
    """
    for resource in RESOURCES:
        if name.lower() in resource.names:
            return resource
    known = ", ".join(resource.plural for resource in RESOURCES)
    raise WrongUsage(f"No such kind: {name}. Known kinds: {known}.")


def identity(item: Item) -> str:
    """Return `namespace/name`, or only the name of an object without a namespace."""
    metadata = item.get("metadata", item)
    namespace = metadata.get("namespace")
    return f"{namespace}/{metadata['name']}" if namespace else str(metadata["name"])


def split_identity(text: str, namespace: str | None) -> tuple[str, str]:
    """Split `namespace/name`; a name without a slash is in `namespace`, or else in `default`.

    Raises:
        WrongUsage: `text` and `namespace` name different namespaces.
    """
    head, slash, tail = text.partition("/")
    if slash and namespace and namespace != head:
        raise WrongUsage(f"{text} is not in the namespace {namespace}.")
    return (head, tail) if slash else (namespace or "default", text)


def pod_state(pod: Item) -> str:
    """Return one word for the state of a pod."""
    if pod.get("metadata", {}).get("deletionTimestamp"):
        return "Terminating"
    phase = pod.get("status", {}).get("phase")
    if phase in {"Succeeded", "Failed"}:
        return str(phase)
    return "Placed" if pod.get("spec", {}).get("nodeName") else "Pending"


def _pod_row(pod: Item) -> Sequence[object]:
    metadata = pod["metadata"]
    node = pod.get("spec", {}).get("nodeName")
    return metadata.get("namespace"), metadata["name"], pod_state(pod), node, _waits_for(pod)


def _waits_for(pod: Item) -> str | None:
    """Return the message of the `PodScheduled` condition while that is false."""
    for condition in pod.get("status", {}).get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            return str(condition.get("message") or condition.get("reason"))
    return None


def _node_row(node: Item) -> Sequence[object]:
    metadata, spec, status = node["metadata"], node.get("spec") or {}, node.get("status") or {}
    room = status.get("allocatable") or status.get("capacity") or {}
    taints = [_taint(taint) for taint in spec.get("taints") or ()]
    cordoned = ["cordoned"] if spec.get("unschedulable") else []
    zone = (metadata.get("labels") or {}).get(ZONE)
    sizes = [room.get(resource) for resource in ("cpu", "memory", "pods")]
    return metadata["name"], node_state(node), zone, *sizes, ", ".join(cordoned + taints)


def node_state(node: Item) -> str | None:
    """Return Ready or NotReady, or Silent if the node has stopped reporting; None if nobody says it."""
    for condition in (node.get("status") or {}).get("conditions") or ():
        if condition.get("type") == "Ready":
            if condition.get("status") == "True":
                return "Ready"
            return "Silent" if condition.get("reason") == "NodeStatusUnknown" else "NotReady"
    return None


def _taint(taint: Item) -> str:
    value = f"={taint['value']}" if taint.get("value") else ""
    return f"{taint['key']}{value}:{taint['effect']}"


def _labelled_row(item: Item) -> Sequence[object]:
    return item["metadata"]["name"], _labels(item)


def _labels(item: Item) -> str:
    labels = item["metadata"].get("labels") or {}
    return ",".join(f"{key}={value}" for key, value in labels.items())


def _quota_row(quota: Item) -> Sequence[object]:
    metadata = quota["metadata"]
    used = (quota.get("status") or {}).get("used") or {}
    hard = (quota.get("spec") or {}).get("hard") or {}
    pairs = [f"{name} {used.get(name, 0)}/{limit}" for name, limit in hard.items()]
    return metadata.get("namespace"), metadata["name"], ", ".join(pairs)


def _pod_group_row(group: Item) -> Sequence[object]:
    metadata, status = group["metadata"], group.get("status") or {}
    least = _least_members(group.get("spec") or {})
    counts = [status.get(name) for name in ("scheduled", "running")]
    return metadata.get("namespace"), metadata["name"], status.get("phase"), least, *counts


def _least_members(spec: Item) -> object:
    """How many members a group needs; None if its policy demands no number."""
    policy = spec.get("schedulingPolicy")
    return (
        spec.get("minMember", 1) if policy is None else (policy.get("gang") or {}).get("minCount")
    )


def _kept(declared: KeptKind) -> Resource:
    namespaced = declared.namespaced
    return Resource(
        plural=declared.plural,
        kind=declared.kind,
        names=(declared.plural, declared.kind.lower(), *declared.short_names),
        namespaced=namespaced,
        columns=("namespace", "name", "labels") if namespaced else ("name", "labels"),
        row=_namespaced_row if namespaced else _labelled_row,
    )


def _namespaced_row(item: Item) -> Sequence[object]:
    metadata = item["metadata"]
    return metadata.get("namespace"), metadata["name"], _labels(item)


def _event_row(event: Item) -> Sequence[object]:
    about = event.get("regarding") or event.get("involvedObject") or {}
    when = event.get("eventTime") or event.get("lastTimestamp")
    reason = event.get("reason")
    what = f"{about.get('kind', '')} {identity(about) if about.get('name') else ''}".strip()
    return when, event.get("type"), reason, what, event.get("note") or event.get("message")


RESOURCES = (
    Resource(
        plural="nodes",
        kind="Node",
        names=("nodes", "node", "no"),
        columns=("name", "state", "zone", "cpu", "memory", "pods", "taints"),
        row=_node_row,
    ),
    Resource(
        plural="namespaces",
        kind="Namespace",
        names=("namespaces", "namespace", "ns"),
        columns=("name", "labels"),
        row=_labelled_row,
    ),
    Resource(
        plural="pods",
        kind="Pod",
        names=("pods", "pod", "po"),
        namespaced=True,
        columns=("namespace", "name", "state", "node", "waits for"),
        row=_pod_row,
    ),
    Resource(
        plural="resourcequotas",
        kind="ResourceQuota",
        names=("resourcequotas", "resourcequota", "quota", "quotas"),
        namespaced=True,
        columns=("namespace", "name", "used/hard"),
        row=_quota_row,
    ),
    Resource(
        plural="podgroups",
        kind="PodGroup",
        names=("podgroups", "podgroup", "pg", "pgs"),
        namespaced=True,
        columns=("namespace", "name", "phase", "min member", "scheduled", "running"),
        row=_pod_group_row,
    ),
    *map(_kept, KEPT_KINDS.values()),
    Resource(
        plural="events",
        kind="Event",
        names=("events", "event", "ev"),
        namespaced=True,
        columns=("time", "type", "reason", "object", "message"),
        row=_event_row,
        order=lambda event: str(event.get("lastTimestamp")),
    ),
)
