"""Warnings about fields that Kubernetes reads and Moorage ignores, and about rules without effect.

Each field of a manifest is honored, rejected with its path, or ignored with a warning; none is
dropped silently. `IGNORED_FIELDS` declares the ignored ones. Each distinct spec is searched once
(`service.model.pods.template_cache`); other parts of a manifest are only decoded for the search if
their bytes contain the name of an ignored field.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

import msgspec

from service.model.core.resources import is_charged
from service.model.core.validators import at, entries_of, items_of, key_at

WARNINGS_MAX = 100
"""The most warnings in one response; one more then states how many others there are."""

PREEMPTION = "PreemptionIgnored"
DEVICE_CLAIMS = "DeviceClaimsIgnored"
RUNTIME_CLASS = "RuntimeClassIgnored"
VOLUMES = "VolumesIgnored"
UNKNOWN_SCHEDULER = "UnknownScheduler"
FEATURE_OFF = "FeatureOff"
GROUP_FIELD = "GroupFieldIgnored"
DEVICE_FIELD = "DeviceFieldIgnored"
RULE_NEVER_HOLDS = "RuleNeverHolds"
RULE_NEVER_MATTERS = "RuleNeverMatters"
RULE_LEAVES_OUT_ITS_POD = "RuleLeavesOutItsPod"
RULES_CONTRADICT = "RulesContradict"
_MORE = "MoreWarnings"

Json = Mapping[str, object]


class WarningKind(NamedTuple):
    """The message of a code's warnings; `meaning` is the text of the page `/warnings/<code>`."""

    message: str
    meaning: str


WARNINGS: Mapping[str, WarningKind] = {
    VOLUMES: WarningKind(
        "is not read: nothing keeps the pod on nodes that can reach the volume",
        "Kubernetes places a pod only where its volumes can be attached: in the zone of the volume "
        "(VolumeZone, VolumeBinding), within the limits of the node (NodeVolumeLimits), and apart from "
        "others that use the same disk (VolumeRestrictions). With the cluster's setting `volumes: Honor`, "
        "the default, so does Moorage. This warning is told where the setting is `Ignore`, so that the "
        "pod is placed as if it had no volumes, and of disks of other kinds that only pods name.",
    ),
    DEVICE_CLAIMS: WarningKind(
        "is not read: no device is allocated to the pod",
        "The pod claims devices (dynamic resource allocation). With the cluster's setting "
        "`deviceClaims: Allocate`, the default, it is given them together with its node. This warning is "
        "told where the setting is `Ignore`, so that the pod is placed as if it claimed nothing; where it "
        "is `Refuse`, of pods that are on a node already, which is a fact and never refused; and of "
        "devices that stand for extended resources, or that PodGroups claim, which Moorage does not "
        "allocate.",
    ),
    DEVICE_FIELD: WarningKind(
        "is not read: in Kubernetes v1.35 the feature that it belongs to is off, or not there yet",
        "The field belongs to a feature of dynamic resource allocation that is off by default in "
        "Kubernetes v1.35: devices that share counters or can be allocated several times, taints and "
        "binding conditions of devices, nodes of single devices, devices as extended resources. It is "
        "kept and returned. As in Kubernetes, a slice with shared counters or with nodes of single "
        "devices is passed over as a whole, and a device that takes of counters or has binding conditions "
        "is not given to anybody; taints keep nobody away, and every device is given to one claim at a "
        "time.",
    ),
    GROUP_FIELD: WarningKind(
        "is not read: the group is placed by its own policy and constraints, and its members are evicted one by one",
        "A PodGroup of `scheduling.k8s.io` is placed by its policy and its topology constraint. "
        "Preemption evicts single pods, by the priority of each: what a PodGroup says about its priority "
        "and about disruption is kept, and not acted on.",
    ),
    RUNTIME_CLASS: WarningKind(
        "is not read: no runtime classes are kept here, so that the class adds no overhead, node selector or toleration",
        "A kube-apiserver adds a RuntimeClass's overhead, node selector and tolerations to the pod when "
        "it creates it. So does Moorage in clusters that have any RuntimeClass. This warning is told "
        "where there is none, so that nothing is added. A pod that was created by a kube-apiserver has "
        "them in its spec already, where they are honoured.",
    ),
    PREEMPTION: WarningKind(
        "is not acted on: no pod is evicted to make room",
        "In Kubernetes a pod of higher priority evicts others if it finds no room. In Moorage it waits "
        "for room, unless the cluster's setting `queuePreemption` is `Evict`. A placement with "
        "`preemption: Propose` says whom Kubernetes would evict, and one with `Evict` has them evicted. "
        "All of these heed this field in pods.",
    ),
    "PodResizeIgnored": WarningKind(
        "is not read: while the pod as a whole is resized, it counts with what its spec asks for",
        "Kubernetes counts a pod whose resources as a whole are being resized with the larger of what it "
        "asks for and what the node has granted. Moorage does so for containers, not for the pod as a whole.",
    ),
    "DeclaredFeaturesIgnored": WarningKind(
        "is not read: pods are placed whether or not the node has the features that they need",
        "Kubernetes keeps pods off nodes that do not declare a feature which the pod needs (the gate "
        "NodeDeclaredFeatures). Moorage does not infer features from pods.",
    ),
    "MinResourcesIgnored": WarningKind(
        "is not read: the search for places knows what each member needs",
        "The coscheduling plugin uses `minResources` to give up early. Moorage searches places for the "
        "members themselves and needs no estimate. The field is kept and returned.",
    ),
    "QuotaNotCharged": WarningKind(
        "is never charged: only pods are counted here",
        "The quota limits something else than pods and what they use, such as services, so nothing is "
        "ever charged to it. The limit is kept and returned.",
    ),
    UNKNOWN_SCHEDULER: WarningKind(
        "is no scheduling profile of the cluster: the pod is stored, and Moorage never places it",
        "A pod is placed by the profile that its `schedulerName` names. No profile of the cluster has "
        "this name, so the pod waits for another scheduler; asked for a placement, Moorage denies it.",
    ),
    FEATURE_OFF: WarningKind(
        "is not read: the cluster has switched off the feature that it belongs to",
        "The cluster's setting `features` says which features are on. A field of a feature that is off is "
        "dropped from new objects. Objects that had it when the feature was switched off keep it, and it "
        "is read again when the feature is switched on.",
    ),
    "NotKept": WarningKind(
        "is not kept: of a PriorityClass only the name is, and what pods get of it",
        "A PriorityClass is no object of its own here: it sets its entry of the cluster's setting "
        "`priorityClasses`, which has its name, `value`, `globalDefault` and `preemptionPolicy`.",
    ),
    RULE_NEVER_HOLDS: WarningKind(
        "can never hold, so that no node takes the pod",
        "No node, or no pod, whatever its labels, can satisfy the rule: its requirements exclude each "
        "other, such as two values for one label, or a node selector and a node affinity that have no "
        "node in common. The pod is stored, and is placed nowhere. The warning follows from the manifest "
        "alone, so it is told in every cluster.",
    ),
    RULE_NEVER_MATTERS: WarningKind(
        "changes nothing",
        "The rule can be left out without changing any decision: it selects nothing, it repeats another "
        "one, or it prefers what is required anyway. Mostly this is a mistake in a selector.",
    ),
    RULES_CONTRADICT: WarningKind(
        "contradicts another rule of the pod",
        "A required affinity and a required anti-affinity select the same pods in the same domains. The "
        "one asks for a domain with such a pod, the other for one without. Only a pod that its own "
        "affinity selects can be placed, while no other such pod is there; all others wait for ever.",
    ),
    RULE_LEAVES_OUT_ITS_POD: WarningKind(
        "does not select the pod itself",
        "A spread constraint counts the pods that its selector selects. If the pod that has the "
        "constraint is none of them, it keeps to the counts of others, but pods like it may all go to one "
        "domain. Mostly the selector was meant to have the pod's own labels. Written pods that wait are "
        "looked at for this, and not those that are placed in bulk.",
    ),
    _MORE: WarningKind(
        "is about more fields than an answer lists",
        f"An answer lists at most {WARNINGS_MAX} warnings. The message says how many it leaves out. Send "
        "fewer objects at once to see them all.",
    ),
}
"""All kinds of warnings, by code."""


class FieldWarning(msgspec.Struct, frozen=True):
    """A field of a manifest that is passed over, or a rule in it that has no effect."""

    field: str
    """Path of the field in the request, such as `pods[3].spec.volumes[0].persistentVolumeClaim`."""
    code: str
    """What sort of field it is, in CamelCase; `/warnings/<code>` has more about it."""
    message: str
    """What it means for the object."""

    def under(self, prefix: str) -> "FieldWarning":
        """Return the warning with a prefix before its path, for an object inside a request."""
        return FieldWarning(at(prefix, self.field), self.code, self.message) if prefix else self


FieldWarnings = Sequence[FieldWarning]


def warning(field: str, code: str) -> FieldWarning:
    """Build the warning with this code for a field."""
    return FieldWarning(field, code, WARNINGS[code].message)


class WarningList:
    """The warnings of one response, and how many were omitted."""

    def __init__(self) -> None:
        self._told: list[FieldWarning] = []
        self._left_out = 0

    def add(self, warnings: FieldWarnings, prefix: str = "") -> None:
        """Add the warnings about an object at `prefix`, its path in the request."""
        room = WARNINGS_MAX - len(self._told)
        self._told += [item.under(prefix) for item in warnings[:room]]
        self._left_out += max(0, len(warnings) - room)

    def told(self) -> list[FieldWarning] | msgspec.UnsetType:
        """Return the warnings to put in the response, or UNSET if there are none."""
        if not self._told:
            return msgspec.UNSET
        if not self._left_out:
            return self._told
        more = FieldWarning("", _MORE, f"{self._left_out} more warnings are not listed")
        return [*self._told, more]


def _is_set(value: object, _: Json) -> bool:
    """Return whether a field has a value; an empty or false value counts as absent."""
    return bool(value)


def _may_preempt(policy: object, spec: Json) -> bool:
    """Return whether `preemptionPolicy` has an effect; kube-apiserver sets it on every pod."""
    priority = spec.get("priority")
    ranked = priority > 0 if isinstance(priority, int) else bool(spec.get("priorityClassName"))
    return ranked and _preempts(policy, spec)


def _preempts(policy: object, _: Json) -> bool:
    return bool(policy) and policy != "Never"


def _keeps_together(mode: object, _: Json) -> bool:
    """Return whether a group is only evicted as a whole; v1.36 and v1.37 spell this differently."""
    return mode == "PodGroup" or "all" in entries_of(mode)


def _is_not_charged(resource: object, _: Json) -> bool:
    return isinstance(resource, str) and not is_charged(resource)


class IgnoredField(msgspec.Struct, frozen=True):
    """An ignored field and the code of its warning.

    In `path`, `[]` stands for every item of a list and `[*]` for every key of a map. `when` decides
    whether to warn; it is called with the field's value (or the key) and the object that contains
    it.
    """

    kind: str
    path: str
    code: str
    when: Callable[[object, Json], bool] = _is_set
    setting: str = ""
    """The cluster setting that makes Moorage honor the field; other values reject or ignore it."""

    @property
    def steps(self) -> list[str]:
        """The names along the path."""
        return self.path.split(".")

    @property
    def name(self) -> str:
        """The name of the field itself."""
        return self.steps[-1].partition("[")[0]


_VOLUMES_READ = (
    "persistentVolumeClaim",
    "ephemeral",
    "awsElasticBlockStore",
    "azureDisk",
    "cinder",
    "gcePersistentDisk",
    "iscsi",
    "portworxVolume",
    "rbd",
)
"""Volumes that kube-scheduler's volume plugins read."""

_OF_PODS = {
    "spec.volumes[].azureFile": VOLUMES,
    "spec.volumes[].vsphereVolume": VOLUMES,
    "spec.runtimeClassName": RUNTIME_CLASS,
    "status.resources": "PodResizeIgnored",
    "status.allocatedResources": "PodResizeIgnored",
    "status.extendedResourceClaimStatus": DEVICE_CLAIMS,
    "status.nodeAllocatableResourceClaimStatuses": DEVICE_CLAIMS,
}

_OF_DEVICES = (
    "spec.resourceClaims",
    "spec.containers[].resources.claims",
    "spec.initContainers[].resources.claims",
    "status.resourceClaimStatuses",
)

_OF_GROUPS = (
    "spec.priority",
    "spec.priorityClassName",
    "spec.preemptionPolicy",
)

_OF_SLICES = (
    "spec.perDeviceNodeSelection",
    "spec.sharedCounters",
    "spec.devices[].allNodes",
    "spec.devices[].allowMultipleAllocations",
    "spec.devices[].bindingConditions",
    "spec.devices[].bindingFailureConditions",
    "spec.devices[].bindsToNode",
    "spec.devices[].consumesCounters",
    "spec.devices[].nodeAllocatableResourceMappings",
    "spec.devices[].nodeName",
    "spec.devices[].nodeSelector",
    "spec.devices[].taints",
    "spec.devices[].capacity[*].requestPolicy",
)
_OF_CLAIMS = tuple(
    (kind, f"{spec}.devices.{path}")
    for kind, spec in (("ResourceClaim", "spec"), ("ResourceClaimTemplate", "spec.spec"))
    for path in (
        "constraints[].distinctAttribute",
        "requests[].exactly.capacity",
        "requests[].exactly.tolerations",
        "requests[].firstAvailable[].capacity",
        "requests[].firstAvailable[].tolerations",
    )
)

_OF_ALPHA_DEVICES = (
    ("ResourceSlice", "spec.devices[].consumesCounters[].compatibilityGroups"),
    ("ResourceSlice", "spec.devices[].nodeAllocatableResources"),
    ("ResourceSlice", "spec.skipNodeOperations"),
    *(
        (kind, f"{spec}.devices.requests[].{request}.derivedAttributes")
        for kind, spec in (("ResourceClaim", "spec"), ("ResourceClaimTemplate", "spec.spec"))
        for request in ("exactly", "firstAvailable[]")
    ),
)
"""Fields of devices whose gates are off by default in Kubernetes v1.37."""
_OF_RESULTS = tuple(
    f"status.allocation.devices.results[].{name}"
    for name in (
        "bindingConditions",
        "bindingFailureConditions",
        "consumedCapacity",
        "shareID",
        "skipNodeOperations",
        "tolerations",
    )
)

_NOT_KEPT = ("description", "metadata.labels", "metadata.annotations")

IGNORED_FIELDS: Sequence[IgnoredField] = (
    *(IgnoredField("Pod", path, code) for path, code in _OF_PODS.items()),
    *(
        IgnoredField("Pod", f"spec.volumes[].{source}", VOLUMES, setting="volumes")
        for source in _VOLUMES_READ
    ),
    *(IgnoredField("Pod", path, DEVICE_CLAIMS, setting="deviceClaims") for path in _OF_DEVICES),
    IgnoredField("Pod", "spec.preemptionPolicy", PREEMPTION, _may_preempt),
    IgnoredField("Node", "status.declaredFeatures", "DeclaredFeaturesIgnored"),
    *(IgnoredField("PriorityClass", path, "NotKept") for path in _NOT_KEPT),
    IgnoredField("PriorityClass", "preemptionPolicy", PREEMPTION, _preempts),
    IgnoredField("PodGroup", "spec.minResources", "MinResourcesIgnored"),
    *(IgnoredField("PodGroup", path, GROUP_FIELD) for path in _OF_GROUPS),
    *(IgnoredField("ResourceSlice", path, DEVICE_FIELD) for path in _OF_SLICES),
    *(IgnoredField(kind, path, DEVICE_FIELD) for kind, path in _OF_CLAIMS),
    *(IgnoredField(kind, path, DEVICE_FIELD) for kind, path in _OF_ALPHA_DEVICES),
    *(IgnoredField("ResourceClaim", path, DEVICE_FIELD) for path in _OF_RESULTS),
    IgnoredField("DeviceClass", "spec.extendedResourceName", DEVICE_FIELD),
    IgnoredField("PodGroup", "spec.disruptionMode", GROUP_FIELD, _keeps_together),
    IgnoredField("PodGroup", "spec.resourceClaims", DEVICE_CLAIMS),
    IgnoredField("ResourceQuota", "spec.hard[*]", "QuotaNotCharged", _is_not_charged),
)
"""All ignored fields, declared per kind of object."""

_BY_KIND: Mapping[str, Sequence[IgnoredField]] = {
    kind: [field for field in IGNORED_FIELDS if field.kind == kind]
    for kind in dict.fromkeys(field.kind for field in IGNORED_FIELDS)
}


def _names_in(declared: Sequence[IgnoredField]) -> re.Pattern[bytes]:
    """Return a pattern that matches encoded objects containing any of the fields."""
    names = sorted({field.name for field in declared})
    return re.compile(f'"(?:{"|".join(names)})"'.encode())


_NAMES = {kind: _names_in(declared) for kind, declared in _BY_KIND.items()}
_NAMES_OF_PODS = {
    part: _names_in([field for field in _BY_KIND["Pod"] if field.steps[0] == part])
    for part in ("spec", "status")
}


def warnings_in(kind: str, fields: Json) -> tuple[FieldWarning, ...]:
    """Find the ignored fields of a valid manifest or a part of one.

    Each declaration yields at most one warning, about the first matching field.
    """
    warnings = []
    for declared in _BY_KIND.get(kind, ()):
        places = [
            path
            for path, value, owner in _places(fields, declared.steps, "")
            if declared.when(value, owner)
        ]
        if places:
            warnings.append(_about(declared, places))
    return tuple(warnings)


def warnings_in_members(kind: str, members: bytes) -> tuple[FieldWarning, ...]:
    """Run `warnings_in` on the encoded members of an object."""
    if kind not in _NAMES or _NAMES[kind].search(members) is None:
        return ()
    return warnings_in(kind, entries_of(msgspec.json.decode(b"{%b}" % members)))


def warnings_in_part(part: Literal["spec", "status"], encoded: bytes) -> tuple[FieldWarning, ...]:
    """Run `warnings_in` on the encoded spec or status of a pod."""
    if _NAMES_OF_PODS[part].search(encoded) is None:
        return ()
    return warnings_in("Pod", {part: msgspec.json.decode(encoded)})


def _about(declared: IgnoredField, places: Sequence[str]) -> FieldWarning:
    first = warning(places[0], declared.code)
    if len(places) == 1:
        return first
    return msgspec.structs.replace(first, message=f"{first.message} ({len(places)} like it)")


def _places(fields: object, steps: Sequence[str], path: str) -> Iterator[tuple[str, object, Json]]:
    """Yield the path, value, and owner of every field that matches a path with `[]` and `[*]`."""
    owner = entries_of(fields)
    name, _, suffix = steps[0].partition("[")
    here, value = at(path, name), owner.get(name)
    if suffix == "*]" and len(steps) == 1:
        yield from ((key_at(here, key), key, owner) for key in entries_of(value))
    elif suffix == "*]":
        for key, item in entries_of(value).items():
            yield from _places(item, steps[1:], key_at(here, key))
    elif not suffix and len(steps) == 1:
        yield here, value, owner
    elif not suffix:
        yield from _places(value, steps[1:], here)
    else:
        for index, item in enumerate(items_of(value)):
            yield from _places(item, steps[1:], f"{here}[{index}]")
