"""Which objects are valid, kind by kind: metadata, nodes, namespaces, pods, quotas, groups, classes.

Rules name fields relative to the object: `metadata.name`, `spec.taints[0].key`.
"""

from collections.abc import Mapping, Sequence

import msgspec
from msgspec.structs import replace

from service.model.core.primitives import ContainerImage, ObjectMeta
from service.model.nodes.node import NodeCondition, NodeSpec, NodeStatus
from service.model.objects.pod_group import COSCHEDULING, UPSTREAM, PodGroupSpec
from service.model.objects.priority_at_creation import PriorityClassFields
from service.model.validation import names, pods
from service.model.validation.combinators import (
    Problems,
    Record,
    Rule,
    TextCheck,
    anything,
    at,
    boolean,
    entries_of,
    items_of,
    list_of,
    map_of,
    nullable,
    one_of,
    record,
    text,
)
from service.model.validation.quotas_and_priority_classes import QUOTA_SPEC, class_has_value
from service.model.validation.resources import NODE_RESOURCES, quantities
from service.model.validation.selectors import LABELS
from service.model.validation.type_derived_rules import declared

ANNOTATIONS_BYTES_MAX = 256 * 1024


def _annotations_are_small(metadata: Record, path: str, problems: Problems) -> None:
    annotations = entries_of(metadata.get("annotations")).items()
    size = sum(len(key) + len(value) for key, value in annotations if isinstance(value, str))
    if size > ANNOTATIONS_BYTES_MAX:
        message = f"must have at most {ANNOTATIONS_BYTES_MAX} bytes in all"
        problems.add(at(path, "annotations"), message, size)


_OWNER_REFERENCE = record(
    {
        "apiVersion": text(),
        "kind": text(),
        "name": text(),
        "uid": text(names.uid),
        "controller": boolean,
    },
    closed=False,
)


def _metadata(name: TextCheck, *, namespaced: bool) -> Rule:
    rules: dict[str, Rule] = {
        "name": text(name),
        "namespace": text(names.dns_label) if namespaced else anything,
        "labels": LABELS,
        "annotations": map_of(names.annotation_key, text()),
        "uid": text(names.uid),
        "creationTimestamp": text(names.timestamp),
        "deletionTimestamp": text(names.timestamp),
        "ownerReferences": list_of(_OWNER_REFERENCE),
    }
    return declared(ObjectMeta, rules, also=(_annotations_are_small,))


def _taints_differ(spec: Record, path: str, problems: Problems) -> None:
    """A node has at most one taint for each key and effect."""
    seen = set()
    for index, taint in enumerate(items_of(spec.get("taints"))):
        pair = (repr(entries_of(taint).get("key")), repr(entries_of(taint).get("effect")))
        if pair in seen:
            message = "repeats the key and effect of another taint"
            problems.add(f"{at(path, 'taints')}[{index}]", message)
        seen.add(pair)


_NODE_SPEC = declared(
    NodeSpec,
    {"taints": list_of(pods.TAINT)},
    mistakes={"taint": "taints"},
    also=(_taints_differ,),
)
_IMAGE = declared(ContainerImage, {"names": list_of(text())})
_NODE_STATUS = declared(
    NodeStatus,
    {
        "allocatable": NODE_RESOURCES,
        "capacity": NODE_RESOURCES,
        "images": list_of(_IMAGE),
        "conditions": list_of(declared(NodeCondition, {})),
    },
)


class KindRules(msgspec.Struct, frozen=True):
    """The rules of a kind: its API version, whether it is namespaced, and which objects are valid.

    `envelope` is the rule for everything but `spec`, which has a rule of its own: specs that are
    known to be valid need no second look.
    """

    api_version: str
    namespaced: bool
    envelope: Rule
    spec: Rule


def _kind(
    kind: str,
    name: TextCheck,
    *,
    spec: Rule = anything,
    status: Rule = anything,
    namespaced: bool = False,
    api_version: str = "v1",
    other_versions: Sequence[str] = (),
) -> KindRules:
    rules = kind_rules(
        kind,
        name,
        namespaced=namespaced,
        api_version=api_version,
        other_versions=other_versions,
        fields={"spec": anything, "status": status},
    )
    return replace(rules, spec=spec)


def kind_rules(
    kind: str,
    name: TextCheck,
    *,
    namespaced: bool,
    api_version: str,
    fields: Mapping[str, Rule],
    required: Sequence[str] = (),
    other_versions: Sequence[str] = (),
) -> KindRules:
    """The rules of a kind, given those of some of its fields; the others may be anything."""
    envelope = record(
        {
            "apiVersion": one_of(api_version, *other_versions),
            "kind": one_of(kind),
            "metadata": _metadata(name, namespaced=namespaced),
            **fields,
        },
        required=("metadata", *required),
        closed=False,
    )
    return KindRules(api_version, namespaced, envelope, anything)


_POD_GROUP_SPEC = declared(PodGroupSpec, {"minResources": quantities(names.label_key)})
_PRIORITY_CLASS = declared(
    PriorityClassFields,
    {
        "apiVersion": one_of("scheduling.k8s.io/v1"),
        "kind": one_of("PriorityClass"),
        "metadata": _metadata(names.dns_subdomain, namespaced=False),
        "value": anything,
    },
    required=("metadata", "value"),
    also=(class_has_value,),
)

KINDS: Mapping[str, KindRules] = {
    "Node": _kind("Node", names.dns_subdomain, spec=nullable(_NODE_SPEC), status=_NODE_STATUS),
    "Namespace": _kind("Namespace", names.dns_label),
    "Pod": _kind("Pod", names.dns_subdomain, spec=pods.SPEC, status=pods.STATUS, namespaced=True),
    "ResourceQuota": _kind(
        "ResourceQuota", names.dns_subdomain, spec=nullable(QUOTA_SPEC), namespaced=True
    ),
    "PodGroup": _kind(
        "PodGroup",
        names.dns_subdomain,
        spec=nullable(_POD_GROUP_SPEC),
        namespaced=True,
        api_version=COSCHEDULING,
        other_versions=UPSTREAM,
    ),
    "PriorityClass": KindRules(
        api_version="scheduling.k8s.io/v1",
        namespaced=False,
        envelope=_PRIORITY_CLASS,
        spec=anything,
    ),
}
