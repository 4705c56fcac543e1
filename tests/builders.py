"""Manifests that read like the sentence which describes them.

    pod("web-0").label(app="web").spread(1, "zone")
    node("n1").label(zone="a").taint("dedicated", "db")
    namespace("shop").label(team="red")

Each is a plain manifest (a `dict`) with methods; every method gives a new one.
"""

from copy import deepcopy
from typing import Any, Self

Manifest = dict[str, Any]
Selector = dict[str, Any] | None

IGNORED_DURING_EXECUTION = "requiredDuringSchedulingIgnoredDuringExecution"
REQUIRED_DURING_EXECUTION = "requiredDuringSchedulingRequiredDuringExecution"
HOST = "kubernetes.io/hostname"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def matching(**labels: str) -> Manifest:
    """A selector for pods with all these labels; without any it is empty, and matches all."""
    return {"matchLabels": labels} if labels else {}


def where(key: str, operator: str, *values: str) -> Manifest:
    """A selector of one expression: `where("service", "NotIn", "S")`."""
    return {"matchExpressions": [requirement(key, operator, *values)]}


def requirement(key: str, operator: str, *values: str) -> Manifest:
    return {"key": key, "operator": operator} | ({"values": list(values)} if values else {})


def term(topology_key: str, selector: Selector, **fields: Any) -> Manifest:
    """A pod (anti-)affinity term; `fields` as on the wire, such as `namespaces=[…]`."""
    return {"topologyKey": topology_key, "labelSelector": selector} | fields


class Builder(dict):  # type: ignore[type-arg]
    """A manifest under construction."""

    def _changed(self, *path: str) -> tuple[Self, Any]:
        """A copy, and the object at `path` inside of it, made if absent."""
        copy = deepcopy(self)
        inner: Any = copy
        for key in path:
            inner = inner.setdefault(key, {})
        return copy, inner

    def _appended(self, item: Any, *path: str) -> Self:
        copy, parent = self._changed(*path[:-1])
        parent.setdefault(path[-1], []).append(item)
        return copy

    def label(self, labels: dict[str, str] | None = None, **more: str) -> Self:
        """Add labels; those whose keys are no Python names are given in the dict."""
        copy, own = self._changed("metadata", "labels")
        own.update(labels or {}, **more)
        return copy

    def named(self, name: str) -> Self:
        """A copy of this manifest under another name."""
        copy, metadata = self._changed("metadata")
        metadata["name"] = name
        return copy

    @property
    def labels(self) -> dict[str, str]:
        return self["metadata"].get("labels", {})


class NamespaceBuilder(Builder):
    pass


class NodeBuilder(Builder):
    def allocatable(self, **amounts: str) -> Self:
        """Set what pods may use; `ephemeral_storage` means ephemeral-storage."""
        copy, own = self._changed("status", "allocatable")
        own.update({name.replace("_", "-"): amount for name, amount in amounts.items()})
        return copy

    def taint(self, key: str, value: str = "", effect: str = "NoSchedule") -> Self:
        return self._appended({"key": key, "value": value, "effect": effect}, "spec", "taints")

    def cordon(self) -> Self:
        copy, spec = self._changed("spec")
        spec["unschedulable"] = True
        return copy

    def image(self, name: str, size_bytes: int) -> Self:
        return self._appended({"names": [name], "sizeBytes": size_bytes}, "status", "images")


class PodBuilder(Builder):
    def owned_by(self, kind: str, name: str, version: str = "apps/v1") -> Self:
        """Let an object manage the pod."""
        owner = {"apiVersion": version, "kind": kind, "name": name, "controller": True}
        return self._appended(owner, "metadata", "ownerReferences")

    def scheduler_name(self, name: str) -> Self:
        """Have the pod placed by a profile."""
        copy, spec = self._changed("spec")
        spec["schedulerName"] = name
        return copy

    def claim(self, name: str) -> Self:
        """Mount the volume of a claim."""
        source = {"persistentVolumeClaim": {"claimName": name}}
        return self._appended({"name": name, **source}, "spec", "volumes")

    def devices(self, claim: str = "", template: str = "", name: str = "gpu") -> Self:
        """Use devices: those of a claim, or of one that is made from a template."""
        key = "resourceClaimName" if claim else "resourceClaimTemplateName"
        return self._appended({"name": name, key: claim or template}, "spec", "resourceClaims")

    def on(self, node_name: str) -> Self:
        """Place the pod on a node; a pod that is still to be placed then accepts only this node."""
        copy, spec = self._changed("spec")
        spec["nodeName"] = node_name
        return copy

    def terminating(self) -> Self:
        copy, metadata = self._changed("metadata")
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        return copy

    def priority(self, priority: int) -> Self:
        copy, spec = self._changed("spec")
        spec["priority"] = priority
        return copy

    def nominated(self, node_name: str) -> Self:
        """Have the pod wait for room on a node."""
        copy, status = self._changed("status")
        status["nominatedNodeName"] = node_name
        return copy

    def phase(self, phase: str) -> Self:
        copy, status = self._changed("status")
        status["phase"] = phase
        return copy

    def request(self, **amounts: str) -> Self:
        """Set what the first container requests."""
        copy, own = self._changed("spec")
        resources = own["containers"][0].setdefault("resources", {})
        resources.setdefault("requests", {}).update(
            {name.replace("_", "-"): amount for name, amount in amounts.items()}
        )
        return copy

    def host_port(self, port: int, protocol: str = "TCP", ip: str = "") -> Self:
        copy, own = self._changed("spec")
        taken = {"containerPort": port, "hostPort": port, "protocol": protocol, "hostIP": ip}
        own["containers"][0].setdefault("ports", []).append(taken)
        return copy

    def tolerate(self, key: str, value: str = "", effect: str = "") -> Self:
        operator = {"operator": "Equal", "value": value} if value else {"operator": "Exists"}
        return self._appended({"key": key, "effect": effect} | operator, "spec", "tolerations")

    def node_selector(self, **labels: str) -> Self:
        copy, own = self._changed("spec", "nodeSelector")
        own.update(labels)
        return copy

    def require_node(
        self, *requirements: Manifest, execution: str = IGNORED_DURING_EXECUTION
    ) -> Self:
        """Add a node selector term, which is ORed with those before; its requirements are ANDed."""
        one = {"matchExpressions": list(requirements)} if requirements else {}
        path = ("spec", "affinity", "nodeAffinity", execution, "nodeSelectorTerms")
        return self._appended(one, *path)

    def prefer_node(self, weight: int, *requirements: Manifest) -> Self:
        one = {"weight": weight, "preference": {"matchExpressions": list(requirements)}}
        return self._appended(one, "spec", "affinity", "nodeAffinity", PREFERRED)

    def require_affinity(
        self,
        key: str,
        selector: Selector,
        *,
        execution: str = IGNORED_DURING_EXECUTION,
        **fields: Any,
    ) -> Self:
        """Demand that the pod shares a domain of `key` with a pod that the selector matches."""
        path = ("spec", "affinity", "podAffinity", execution)
        return self._appended(term(key, selector, **fields), *path)

    def require_anti_affinity(
        self,
        key: str,
        selector: Selector,
        *,
        execution: str = IGNORED_DURING_EXECUTION,
        **fields: Any,
    ) -> Self:
        """Demand that the pod shares no domain of `key` with a pod that the selector matches."""
        path = ("spec", "affinity", "podAntiAffinity", execution)
        return self._appended(term(key, selector, **fields), *path)

    def prefer_affinity(self, weight: int, key: str, selector: Selector, **fields: Any) -> Self:
        weighted = {"weight": weight, "podAffinityTerm": term(key, selector, **fields)}
        return self._appended(weighted, "spec", "affinity", "podAffinity", PREFERRED)

    def prefer_anti_affinity(
        self, weight: int, key: str, selector: Selector, **fields: Any
    ) -> Self:
        weighted = {"weight": weight, "podAffinityTerm": term(key, selector, **fields)}
        return self._appended(weighted, "spec", "affinity", "podAntiAffinity", PREFERRED)

    def spread(
        self,
        max_skew: int,
        key: str,
        selector: Selector = None,
        *,
        soft: bool = False,
        **fields: Any,
    ) -> Self:
        """Spread pods over the domains of `key`; without a selector, those that have this pod's labels."""
        constraint = {
            "maxSkew": max_skew,
            "topologyKey": key,
            "whenUnsatisfiable": "ScheduleAnyway" if soft else "DoNotSchedule",
            "labelSelector": matching(**self.labels) if selector is None else selector,
        }
        return self._appended(constraint | fields, "spec", "topologySpreadConstraints")


def namespace(name: str) -> NamespaceBuilder:
    return NamespaceBuilder(metadata={"name": name})


def node(name: str) -> NodeBuilder:
    """A node with room for 8 cpu, 32Gi and 110 pods."""
    return NodeBuilder(
        metadata={"name": name},
        status={"allocatable": {"cpu": "8", "memory": "32Gi", "pods": "110"}},
    )


def pod(name: str, namespace: str = "default") -> PodBuilder:
    """A pod of one container that requests nothing."""
    return PodBuilder(
        metadata={"name": name, "namespace": namespace}, spec={"containers": [{"name": "main"}]}
    )


class ObjectBuilder(Builder):
    """A manifest of another kind, which it names itself."""


def service(name: str = "web", namespace: str = "default", **selector: str) -> ObjectBuilder:
    """A service for the pods with all these labels."""
    return ObjectBuilder(
        apiVersion="v1",
        kind="Service",
        metadata={"name": name, "namespace": namespace},
        spec={"selector": selector},
    )


def replica_set(name: str, selector: Selector, namespace: str = "default") -> ObjectBuilder:
    return ObjectBuilder(
        apiVersion="apps/v1",
        kind="ReplicaSet",
        metadata={"name": name, "namespace": namespace},
        spec={"selector": selector},
    )


def storage_class(name: str = "local", provisioner: str = "none", **fields: Any) -> ObjectBuilder:
    """A class whose claims wait for their first consumer; no volumes can be made of `none`."""
    return ObjectBuilder(
        apiVersion="storage.k8s.io/v1",
        kind="StorageClass",
        metadata={"name": name},
        provisioner="kubernetes.io/no-provisioner" if provisioner == "none" else provisioner,
        volumeBindingMode="WaitForFirstConsumer",
        **fields,
    )


def claim(name: str, size: str = "1Gi", namespace: str = "default", **spec: Any) -> ObjectBuilder:
    """A claim of the class `local`, unless another is given."""
    own = {"storageClassName": "local", "resources": {"requests": {"storage": size}}}
    return ObjectBuilder(
        apiVersion="v1",
        kind="PersistentVolumeClaim",
        metadata={"name": name, "namespace": namespace},
        spec=own | spec,
    )


def volume(name: str, size: str = "1Gi", node: str = "", **spec: Any) -> ObjectBuilder:
    """A volume of the class `local`, which can be used on one node if that is given."""
    required = {"nodeSelectorTerms": [{"matchExpressions": [requirement(HOST, "In", node)]}]}
    affinity = {"nodeAffinity": {"required": required}} if node else {}
    own = {"storageClassName": "local", "capacity": {"storage": size}, **affinity}
    return ObjectBuilder(
        apiVersion="v1", kind="PersistentVolume", metadata={"name": name}, spec=own | spec
    )


GPU = "gpu.example.com"
"""A driver and a class of devices."""


def device_class(name: str = GPU, expression: str = f'device.driver == "{GPU}"') -> ObjectBuilder:
    """A class of the devices for which an expression is true."""
    return ObjectBuilder(
        apiVersion="resource.k8s.io/v1",
        kind="DeviceClass",
        metadata={"name": name},
        spec={"selectors": [{"cel": {"expression": expression}}]},
    )


def resource_slice(node_name: str | None, *devices: Manifest, **spec: Any) -> ObjectBuilder:
    """The devices of one node, or those that several reach by what `spec` says."""
    name = node_name or "shared"
    reached = {} if node_name is None else {"nodeName": node_name}
    pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
    return ObjectBuilder(
        apiVersion="resource.k8s.io/v1",
        kind="ResourceSlice",
        metadata={"name": name},
        spec={"driver": GPU, "pool": pool, "devices": [*devices], **reached, **spec},
    )


def device(name: str, **attributes: str | int | bool) -> Manifest:
    """A device of a slice."""
    kinds = {bool: "bool", int: "int", str: "string"}
    told = {key: {kinds[type(value)]: value} for key, value in attributes.items()}
    return {"name": name, "attributes": told}


def asking(
    count: int = 1, *expressions: str, name: str = "gpu", class_name: str = GPU, **fields: Any
) -> Manifest:
    """A request of a claim for a number of devices."""
    selectors = [{"cel": {"expression": each}} for each in expressions]
    asked = {"deviceClassName": class_name, "count": count, "selectors": selectors, **fields}
    return {"name": name, "exactly": asked}


def device_claim(name: str, *requests: Manifest, **devices: Any) -> ObjectBuilder:
    """A claim to devices in the namespace default; by default to one."""
    return ObjectBuilder(
        apiVersion="resource.k8s.io/v1",
        kind="ResourceClaim",
        metadata={"name": name, "namespace": "default"},
        spec={"devices": {"requests": [*(requests or (asking(),))], **devices}},
    )


def claim_template(name: str, *requests: Manifest, **devices: Any) -> ObjectBuilder:
    """A template of such claims."""
    made = device_claim(name, *requests, **devices)
    return ObjectBuilder(
        made | {"kind": "ResourceClaimTemplate", "spec": {"spec": made["spec"]}},
    )
