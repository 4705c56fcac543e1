"""Which objects are valid, kind by kind: metadata, nodes, namespaces, pods, quotas, groups, classes.

Rules name fields relative to the object: `metadata.name`, `spec.taints[0].key`.
"""

from collections.abc import Mapping

import msgspec

from service.model.validation import names, pods
from service.model.validation.quotas import QUOTA_SPEC, class_has_value
from service.model.validation.resources import NODE_RESOURCES, quantities
from service.model.validation.rules import (
    INT32_MAX,
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
    whole_number,
)
from service.model.validation.selectors import LABELS

ANNOTATIONS_BYTES_MAX = 256 * 1024


def _annotations_are_small(metadata: Record, path: str, problems: Problems) -> None:
    annotations = entries_of(metadata.get("annotations")).items()
    size = sum(len(key) + len(value) for key, value in annotations if isinstance(value, str))
    if size > ANNOTATIONS_BYTES_MAX:
        message = f"must have at most {ANNOTATIONS_BYTES_MAX} bytes in all"
        problems.add(at(path, "annotations"), message, size)


def _metadata(name: TextCheck, *, namespaced: bool) -> Rule:
    fields: dict[str, Rule] = {
        "name": text(name),
        "labels": LABELS,
        "annotations": map_of(names.annotation_key, text()),
        "uid": text(names.uid),
        "creationTimestamp": text(names.timestamp),
        "deletionTimestamp": text(names.timestamp),
        "resourceVersion": text(),
    }
    if namespaced:
        fields["namespace"] = text(names.dns_label)
    return record(fields, required=("name",), closed=False, also=(_annotations_are_small,))


def _taints_differ(spec: Record, path: str, problems: Problems) -> None:
    """A node has at most one taint for each key and effect."""
    seen = set()
    for index, taint in enumerate(items_of(spec.get("taints"))):
        pair = (repr(entries_of(taint).get("key")), repr(entries_of(taint).get("effect")))
        if pair in seen:
            message = "repeats the key and effect of another taint"
            problems.add(f"{at(path, 'taints')}[{index}]", message)
        seen.add(pair)


_NODE_SPEC = record(
    {"taints": list_of(pods.TAINT), "unschedulable": boolean},
    closed=False,
    hints={"taint": "taints"},
    also=(_taints_differ,),
)
_IMAGE = record(
    {"names": list_of(text()), "sizeBytes": whole_number(0, 2**63 - 1)},
    closed=False,
)
_NODE_STATUS = record(
    {"allocatable": NODE_RESOURCES, "capacity": NODE_RESOURCES, "images": list_of(_IMAGE)},
    closed=False,
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
) -> KindRules:
    fields: dict[str, Rule] = {
        "apiVersion": one_of(api_version),
        "kind": one_of(kind),
        "metadata": _metadata(name, namespaced=namespaced),
        "spec": anything,
        "status": status,
    }
    envelope = record(fields, required=("metadata",), closed=False)
    return KindRules(api_version, namespaced, envelope, spec)


_POD_GROUP_SPEC = record(
    {
        "minMember": whole_number(1, INT32_MAX),
        "minResources": quantities(names.label_key),
        "scheduleTimeoutSeconds": whole_number(1, INT32_MAX),
    }
)


def _pod_group_name(text: str) -> str | None:
    """Check that a group's name fits a label value, too, since pods name their group in a label."""
    return names.dns_subdomain(text) or names.label_value(text)


_PRIORITY_CLASS = record(
    {
        "apiVersion": one_of("scheduling.k8s.io/v1"),
        "kind": one_of("PriorityClass"),
        "metadata": _metadata(names.dns_subdomain, namespaced=False),
        "value": anything,
        "globalDefault": boolean,
    },
    required=("metadata", "value"),
    closed=False,
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
        _pod_group_name,
        spec=nullable(_POD_GROUP_SPEC),
        namespaced=True,
        api_version="scheduling.x-k8s.io/v1alpha1",
    ),
    "PriorityClass": KindRules(
        api_version="scheduling.k8s.io/v1",
        namespaced=False,
        envelope=_PRIORITY_CLASS,
        spec=anything,
    ),
}
