"""Table rows of objects: one function for each kind."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

Item = Mapping[str, Any]
ZONE = "topology.kubernetes.io/zone"
INSTANCE_TYPE = "node.kubernetes.io/instance-type"


def identity(item: Item) -> str:
    """Return `namespace/name`, or only the name of an object without a namespace."""
    metadata = item.get("metadata", item)
    namespace = metadata.get("namespace")
    return f"{namespace}/{metadata['name']}" if namespace else str(metadata["name"])


def labels_of(item: Item) -> str:
    """Return an object's labels in one line."""
    labels = item.get("metadata", {}).get("labels") or {}
    return ",".join(f"{key}={value}" for key, value in labels.items())


def pod_state(pod: Item) -> str:
    """Return a one-word state of a pod."""
    if pod.get("metadata", {}).get("deletionTimestamp"):
        return "Terminating"
    phase = pod.get("status", {}).get("phase")
    if phase in {"Succeeded", "Failed"}:
        return str(phase)
    return "Placed" if pod.get("spec", {}).get("nodeName") else "Pending"


def waits_for(pod: Item) -> str | None:
    """Return the message of a false `PodScheduled` condition, or None."""
    for condition in pod.get("status", {}).get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            return str(condition.get("message") or condition.get("reason"))
    return None


class Clock:
    """Computes ages relative to one moment, so that they are consistent within a table."""

    def __init__(self, now: datetime) -> None:
        self._now = now

    def age(self, item: Item) -> str | None:
        """Return an object's age in kubectl's format (`5m`, `3d4h`), or None if unknown."""
        return self.since(item.get("metadata", {}).get("creationTimestamp"))

    def since(self, moment: str | None) -> str | None:
        """Return the time since a moment (RFC 3339), formatted, or None."""
        if not moment:
            return None
        try:
            then = datetime.fromisoformat(moment)
        except ValueError:
            return None
        return _duration(self._now - (then if then.tzinfo else then.replace(tzinfo=UTC)))


def _duration(passed: timedelta) -> str:
    """Format a duration in one or two units, like k8s.io/apimachinery's `HumanDuration`."""
    seconds = max(int(passed.total_seconds()), 0)
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    for limit, text in (
        (120, f"{seconds}s"),
        (600, _two(minutes, "m", seconds % 60, "s")),
        (3 * 3600, f"{minutes}m"),
        (8 * 3600, _two(hours, "h", minutes % 60, "m")),
        (48 * 3600, f"{hours}h"),
        (8 * 86400, _two(days, "d", hours % 24, "h")),
        (2 * 365 * 86400, f"{days}d"),
    ):
        if seconds < limit:
            return text
    return _two(days // 365, "y", days % 365, "d")


def _two(more: int, unit: str, less: int, smaller: str) -> str:
    return f"{more}{unit}{less}{smaller}" if less else f"{more}{unit}"


def pod_row(pod: Item, clock: Clock) -> Sequence[object]:
    """Return a pod's row: its node, or why it waits."""
    node = pod.get("spec", {}).get("nodeName")
    return pod["metadata"]["name"], pod_state(pod), node, clock.age(pod), waits_for(pod)


def pod_wide(pod: Item) -> Sequence[object]:
    """Return a pod's wide columns: its owners, priority, nominated node, and scheduler."""
    spec, status = pod.get("spec", {}), pod.get("status", {})
    owners = pod["metadata"].get("ownerReferences") or ()
    return (
        ",".join(f"{owner['kind']}/{owner['name']}" for owner in owners),
        spec.get("priority"),
        status.get("nominatedNodeName"),
        spec.get("schedulerName"),
    )


def node_row(node: Item, clock: Clock) -> Sequence[object]:
    """Return a node's state, zone, sizes, and taints."""
    metadata, spec = node["metadata"], node.get("spec") or {}
    room = sizes_of(node)
    taints = [_taint(taint) for taint in spec.get("taints") or ()]
    cordoned = ["cordoned"] if spec.get("unschedulable") else []
    zone = (metadata.get("labels") or {}).get(ZONE)
    sizes = [room.get(resource) for resource in ("cpu", "memory", "pods")]
    known = metadata["name"], node_state(node), zone
    return *known, *sizes, clock.age(node), ", ".join(cordoned + taints)


def node_state(node: Item) -> str | None:
    """Return Ready, NotReady, or Silent (the node stopped reporting), or None if unknown."""
    for condition in (node.get("status") or {}).get("conditions") or ():
        if condition.get("type") == "Ready":
            if condition.get("status") == "True":
                return "Ready"
            return "Silent" if condition.get("reason") == "NodeStatusUnknown" else "NotReady"
    return None


def node_wide(node: Item) -> Sequence[object]:
    """Return a node's wide columns: its type, and its other resources."""
    labels = node["metadata"].get("labels") or {}
    others = (
        f"{name} {size}"
        for name, size in sizes_of(node).items()
        if name not in {"cpu", "memory", "pods"}
    )
    return labels.get(INSTANCE_TYPE), ", ".join(others)


def sizes_of(node: Item) -> Mapping[str, Any]:
    """Return a node's resources available to pods."""
    status = node.get("status") or {}
    sizes: Mapping[str, Any] = status.get("allocatable") or status.get("capacity") or {}
    return sizes


def _taint(taint: Item) -> str:
    value = f"={taint['value']}" if taint.get("value") else ""
    return f"{taint['key']}{value}:{taint['effect']}"


def taints_of(node: Item) -> Iterable[str]:
    """Return a node's taints in the notation of `kubectl taint`."""
    return map(_taint, (node.get("spec") or {}).get("taints") or ())


def labelled_row(item: Item, clock: Clock) -> Sequence[object]:
    """Return the row of an object whose kind has no columns of its own."""
    return item["metadata"]["name"], clock.age(item), labels_of(item)


def quota_row(quota: Item, clock: Clock) -> Sequence[object]:
    """Return a quota's row, with the usage of each limit."""
    used = (quota.get("status") or {}).get("used") or {}
    hard = (quota.get("spec") or {}).get("hard") or {}
    pairs = [f"{name} {used.get(name, 0)}/{limit}" for name, limit in hard.items()]
    return quota["metadata"]["name"], clock.age(quota), ", ".join(pairs)


def pod_group_row(group: Item, clock: Clock) -> Sequence[object]:
    """Return a pod group's row, with the state of its members."""
    status = group.get("status") or {}
    least = _least_members(group.get("spec") or {})
    counts = [status.get(name) for name in ("scheduled", "running")]
    return group["metadata"]["name"], status.get("phase"), least, *counts, clock.age(group)


def plan_row(plan: Item, clock: Clock) -> Sequence[object]:
    """Return a plan's row, with its progress."""
    status = plan.get("status") or {}
    counts = [status.get(name) for name in ("phase", "evicted", "leaving", "waiting")]
    return plan["metadata"]["name"], *counts, clock.age(plan)


def _least_members(spec: Item) -> object:
    """Return how many members a group needs, or None if its policy sets no number."""
    policy = spec.get("schedulingPolicy")
    return (
        spec.get("minMember", 1) if policy is None else (policy.get("gang") or {}).get("minCount")
    )


def event_row(event: Item, clock: Clock) -> Sequence[object]:
    """Return an event's row: the object and what happened."""
    about = event.get("regarding") or event.get("involvedObject") or {}
    when = event.get("lastTimestamp") or event.get("eventTime")
    what = f"{about.get('kind', '')} {identity(about) if about.get('name') else ''}".strip()
    message = event.get("note") or event.get("message")
    return clock.since(when), event.get("type"), event.get("reason"), what, message


def cluster_row(cluster: Item, _: Clock) -> Sequence[object]:
    """Return a cluster's row, with the numbers of its objects."""
    counts = [cluster["counts"][name] for name in ("nodes", "pods", "pending")]
    return cluster["name"], cluster["revision"], *counts
