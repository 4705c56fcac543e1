"""Expands workloads into pods: Deployments, StatefulSets, DaemonSets, Jobs, CronJobs, and others.

Moorage runs no controllers, so a workload is expanded once, when its manifest is read. Names depend
only on the manifest, so reading the same manifest again yields the same pods. A workload whose pods
or replica sets are in the same files, as in the output of `kubectl get`, is not expanded.
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any
from uuid import NAMESPACE_URL, uuid5

import msgspec

from moorage.cli.exceptions import Refused, WrongUsage

Object = dict[str, Any]

NodesOf = Callable[[Object], Sequence[str]]
"""Returns the nodes on which a daemon belongs, given one of its pods."""

GROUPS = frozenset({"apps", "batch", "extensions", "v1"})
KEPT = frozenset({"ReplicaSet", "ReplicationController", "StatefulSet"})
"""Workloads that are also stored themselves, because rules read their selectors."""

TEMPLATE = "spec.template"
JOB_TEMPLATE = "spec.jobTemplate"
HASH_LABEL = "pod-template-hash"
HASH_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
HASH_LENGTH = 10
"""Kubernetes' alphabet and length for such hashes, chosen so that they spell no words."""

_DAEMONS_TOLERATE = tuple(
    {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": effect}
    for key, effect in (
        ("not-ready", "NoExecute"),
        ("unreachable", "NoExecute"),
        ("disk-pressure", "NoSchedule"),
        ("memory-pressure", "NoSchedule"),
        ("pid-pressure", "NoSchedule"),
        ("unschedulable", "NoSchedule"),
    )
)
"""Source: `AddOrUpdateDaemonPodTolerations` in pkg/controller/daemon/util, v1.35."""

_NETWORK = {
    "key": "node.kubernetes.io/network-unavailable",
    "operator": "Exists",
    "effect": "NoSchedule",
}
_COUNT = re.compile(r" \(and \d+ more\)$")
"""Matches the count of further pods with the same fault, which is shown only once."""

_PLACE = re.compile(r"\b(?:items|pods)\[(\d+)\](?:\.(?=spec\b|metadata\b))?")


@dataclass(frozen=True)
class Origin:
    """The origin of an object: a workload, and the path of its pod template."""

    workload: str
    template: str


@dataclass
class Expansion:
    """Objects, with workloads replaced by the pods made from them."""

    objects: list[Object] = field(default_factory=list)
    origins: list[Origin | None] = field(default_factory=list)
    """The origin of each object, or None for an object read from a file."""

    def add(self, item: Object, origin: Origin | None) -> None:
        """Add one object."""
        self.objects.append(item)
        self.origins.append(origin)

    def only(self, *, pods: bool) -> "Expansion":
        """Return only the pods, or everything except pods."""
        part = Expansion()
        for item, origin in zip(self.objects, self.origins, strict=True):
            if (item.get("kind", "Pod") == "Pod") is pods:
                part.add(item, origin)
        return part

    def part(self, start: int, end: int) -> "Expansion":
        """Return the objects from `start` to `end`."""
        return Expansion(self.objects[start:end], self.origins[start:end])

    def refused(self, error: Refused) -> Refused:
        """Return the refusal with its fields named as in the manifests that were read."""
        problem = dict(error.problem)
        errors = [
            {**entry, "field": self.named(str(entry.get("field")))}
            for entry in problem.get("errors") or ()
        ]
        problem["errors"] = [
            entry for number, entry in enumerate(errors) if entry not in errors[:number]
        ]
        more = len(problem["errors"]) - 1
        counted = f" (and {more} more)" if more > 0 else ""
        problem["detail"] = _COUNT.sub(counted, self.named(str(problem.get("detail") or "")))
        return Refused(problem)

    def named(self, text: str) -> str:
        """Rewrite `pods[3].spec.x` as `Deployment shop/web: spec.template.spec.x`."""

        def name(match: re.Match[str]) -> str:
            number = int(match[1])
            origin = self.origins[number] if number < len(self.origins) else None
            if origin is None:
                return match[0]
            return f"{origin.workload}: {origin.template}{'.' if match[0].endswith('.') else ''}"

        return _PLACE.sub(name, text)


def expand(objects: Sequence[Object], nodes_of: NodesOf) -> Expansion:
    """Replace workloads by their pods.

    Raises:
        WrongUsage: a workload has no template, or its selector does not match the template.
    """
    owned = {_key(item, owner) for item in objects for owner in _owners(item)}
    expansion = Expansion()
    for item in objects:
        kind = workload_kind(item)
        if kind is None:
            expansion.add(item, None)
            continue
        name = (item.get("metadata") or {}).get("name")
        if kind in KEPT:
            expansion.add(item, None)
        if _key(item, {"kind": kind, "name": name}) not in owned:
            workload = _Workload(item)
            for made in _MAKERS[kind](workload, nodes_of):
                expansion.add(made, workload.origin)
    return expansion


def workload_kind(item: Object) -> str | None:
    """Return the kind of a workload that can be expanded into pods, or None."""
    group = str(item.get("apiVersion", "apps")).partition("/")[0]
    kind = str(item.get("kind"))
    return kind if kind in _MAKERS and group in GROUPS else None


def pod_of(item: Object) -> Object:
    """Return one pod of a workload, without an owner; return a pod unchanged.

    Raises:
        WrongUsage: the workload has no valid template.
    """
    if workload_kind(item) is None:
        return item
    workload = _Workload(item)
    pod = workload.pod(workload.name, {})
    del pod["metadata"]["ownerReferences"]
    return pod


class _Workload:
    """A manifest that describes pods."""

    def __init__(self, item: Object) -> None:
        self.item = item
        self.kind = str(item["kind"])
        self.metadata: Object = item.get("metadata") or {}
        self.name = str(self.metadata.get("name", ""))
        self.namespace = str(self.metadata.get("namespace") or "default")
        self.spec: Object = item.get("spec") or {}
        path = f"{JOB_TEMPLATE}.{TEMPLATE}" if self.kind == "CronJob" else TEMPLATE
        self.origin = Origin(f"{self.kind} {self.namespace}/{self.name}", path)
        if self.kind == "CronJob":
            self.spec = (self.spec.get("jobTemplate") or {}).get("spec") or {}
        self._check()

    @property
    def template(self) -> Object:
        """The workload's pod template."""
        template: Object = self.spec["template"]
        return template

    @property
    def replicas(self) -> int:
        """The number of pods wanted, one by default."""
        return self.number("replicas", 1)

    def number(self, name: str, default: int) -> int:
        """Return an integer field of the spec.

        Raises:
            WrongUsage: the field is not an integer.
        """
        value = self.spec.get(name)
        if value is None:
            return default
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise WrongUsage(f"{self.origin.workload}: spec.{name} must be a whole number.")
        return value

    def hash(self) -> str:
        """Return a short hash of the template, which gives a changed template new pod names."""
        digest = hashlib.sha256(msgspec.json.encode(self.template, order="deterministic")).digest()
        return "".join(HASH_LETTERS[byte % len(HASH_LETTERS)] for byte in digest[:HASH_LENGTH])

    def pod(self, name: str, owner: Object, labels: Mapping[str, str] | None = None) -> Object:
        """Make one pod from the template."""
        template = deepcopy(self.template)
        metadata = template.get("metadata") or {}
        kept = {key: metadata[key] for key in ("annotations", "finalizers") if key in metadata}
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": name,
                "namespace": self.namespace,
                "labels": {**(metadata.get("labels") or {}), **(labels or {})},
                **kept,
                "ownerReferences": [owner],
            },
            "spec": template.get("spec") or {},
        }

    def owner(self, kind: str, api_version: str, name: str) -> Object:
        """Return an owner reference to the controller of the pods."""
        own = self.metadata.get("uid") if kind == self.kind else None
        unique = f"moorage:{self.namespace}/{kind}/{name}"
        return {
            "apiVersion": api_version,
            "kind": kind,
            "name": name,
            "uid": own or str(uuid5(NAMESPACE_URL, unique)),
            "controller": True,
            "blockOwnerDeletion": True,
        }

    def _check(self) -> None:
        template = self.spec.get("template")
        if not isinstance(template, dict) or not isinstance(template.get("spec"), dict):
            raise WrongUsage(f"{self.origin.workload}: {self.origin.template}.spec is required.")
        selector = self.spec.get("selector") or {}
        wanted = selector if self.kind == "ReplicationController" else selector.get("matchLabels")
        labels = (template.get("metadata") or {}).get("labels") or {}
        if self.kind not in {"Job", "CronJob"} and not (wanted or {}).items() <= labels.items():
            raise WrongUsage(
                f"{self.origin.workload}: {TEMPLATE}.metadata.labels must have the labels of spec.selector."
            )


def _of_deployment(workload: _Workload, _: NodesOf) -> Iterator[Object]:
    """Make a replica set and its pods, like the deployment controller."""
    label = {HASH_LABEL: workload.hash()}
    name = f"{workload.name}-{label[HASH_LABEL]}"
    owner = workload.owner("ReplicaSet", "apps/v1", name)
    labels = (workload.template.get("metadata") or {}).get("labels") or {}
    selector = deepcopy(workload.spec.get("selector") or {})
    selector["matchLabels"] = {**(selector.get("matchLabels") or {}), **label}
    yield {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": name,
            "namespace": workload.namespace,
            "labels": {**labels, **label},
            "ownerReferences": [workload.owner("Deployment", "apps/v1", workload.name)],
        },
        "spec": {"replicas": workload.replicas, "selector": selector},
    }
    for number in range(workload.replicas):
        yield workload.pod(f"{name}-{number}", owner, label)


def _of_replicas(workload: _Workload, _: NodesOf) -> Iterator[Object]:
    version = str(workload.item.get("apiVersion", "apps/v1"))
    owner = workload.owner(workload.kind, version, workload.name)
    for number in range(workload.replicas):
        yield workload.pod(f"{workload.name}-{number}", owner)


def _of_stateful_set(workload: _Workload, _: NodesOf) -> Iterator[Object]:
    """Yield pods with stable names, each after its claims."""
    owner = workload.owner("StatefulSet", "apps/v1", workload.name)
    ordinals = workload.spec.get("ordinals") or {}
    start = int(ordinals.get("start") or 0)
    for number in range(start, start + workload.replicas):
        name = f"{workload.name}-{number}"
        labels = {
            "statefulset.kubernetes.io/pod-name": name,
            "apps.kubernetes.io/pod-index": str(number),
        }
        pod = workload.pod(name, owner, labels)
        claims = [
            _claim(workload, template, name)
            for template in workload.spec.get("volumeClaimTemplates") or ()
        ]
        yield from (claim for _, claim in claims)
        taken = {volume for volume, _ in claims}
        others = [
            other for other in pod["spec"].get("volumes") or () if other.get("name") not in taken
        ]
        if claims:
            pod["spec"]["volumes"] = others + [
                {"name": volume, "persistentVolumeClaim": {"claimName": claim["metadata"]["name"]}}
                for volume, claim in claims
            ]
        yield pod


def _claim(workload: _Workload, template: Object, pod: str) -> tuple[str, Object]:
    volume = str((template.get("metadata") or {}).get("name", ""))
    metadata = {
        **(template.get("metadata") or {}),
        "name": f"{volume}-{pod}",
        "namespace": workload.namespace,
    }
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata}
    return volume, {**claim, "spec": deepcopy(template.get("spec") or {})}


def _of_daemon_set(workload: _Workload, nodes_of: NodesOf) -> Iterator[Object]:
    """Make a pod for each node where the daemon belongs, bound to the node by affinity."""
    owner = workload.owner("DaemonSet", "apps/v1", workload.name)
    anywhere = _as_daemon(workload.pod(f"{workload.name}-{workload.hash()}", owner))
    try:
        nodes = nodes_of(anywhere)
    except Refused as error:
        raise Expansion([anywhere], [workload.origin]).refused(error) from None
    for node in nodes:
        pod = deepcopy(anywhere)
        pod["metadata"]["name"] = f"{workload.name}-{node}"
        _require_node(pod["spec"], node)
        yield pod


def _as_daemon(pod: Object) -> Object:
    spec = pod["spec"]
    more = [*_DAEMONS_TOLERATE, *([_NETWORK] if spec.get("hostNetwork") else [])]
    own = spec.get("tolerations") or []
    spec["tolerations"] = [*own, *(toleration for toleration in more if toleration not in own)]
    return pod


def _require_node(spec: Object, node: str) -> None:
    """Add the node's name to each term of the required node affinity, as Kubernetes does."""
    field_of_node = {"key": "metadata.name", "operator": "In", "values": [node]}
    affinity = spec.setdefault("affinity", {}).setdefault("nodeAffinity", {})
    required = affinity.setdefault("requiredDuringSchedulingIgnoredDuringExecution", {})
    terms = required.get("nodeSelectorTerms") or [{}]
    required["nodeSelectorTerms"] = [{**term, "matchFields": [field_of_node]} for term in terms]


def _of_job(workload: _Workload, _: NodesOf) -> Iterator[Object]:
    """Make a job's initial pods: as many as may run at once."""
    if workload.spec.get("suspend") or (workload.item.get("spec") or {}).get("suspend"):
        return
    name = f"{workload.name}-next" if workload.kind == "CronJob" else workload.name
    owner = workload.owner("Job", "batch/v1", name)
    parallelism = workload.number("parallelism", 1)
    wanted = min(parallelism, workload.number("completions", parallelism))
    indexed = workload.spec.get("completionMode") == "Indexed"
    for number in range(wanted):
        labels = {"job-name": name, "batch.kubernetes.io/job-name": name}
        if indexed:
            labels["batch.kubernetes.io/job-completion-index"] = str(number)
        yield workload.pod(f"{name}-{number}", owner, labels)


_MAKERS: Mapping[str, Callable[[_Workload, NodesOf], Iterator[Object]]] = {
    "Deployment": _of_deployment,
    "ReplicaSet": _of_replicas,
    "ReplicationController": _of_replicas,
    "StatefulSet": _of_stateful_set,
    "DaemonSet": _of_daemon_set,
    "Job": _of_job,
    "CronJob": _of_job,
}


def _owners(item: Object) -> Iterable[Object]:
    return (item.get("metadata") or {}).get("ownerReferences") or ()


def _key(item: Object, owner: Object) -> tuple[object, object, object]:
    """Return the key that identifies an owner within an object's namespace."""
    return (
        (item.get("metadata") or {}).get("namespace") or "default",
        owner.get("kind"),
        owner.get("name"),
    )
