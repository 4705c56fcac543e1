"""Validation rules of nodes and namespaces."""

from service.model.core import names
from service.model.core.kind_rules import kind_rules
from service.model.core.primitives import ContainerImage
from service.model.core.resources import NODE_RESOURCES
from service.model.core.selector_rules import TAINT
from service.model.core.type_rules import declared
from service.model.core.validators import (
    Problems,
    Record,
    at,
    entries_of,
    items_of,
    list_of,
    nullable,
    text,
)
from service.model.nodes.node import NodeCondition, NodeSpec, NodeStatus


def _taints_differ(spec: Record, path: str, problems: Problems) -> None:
    """Check that no two taints have the same key and effect."""
    seen = set()
    for index, taint in enumerate(items_of(spec.get("taints"))):
        pair = (repr(entries_of(taint).get("key")), repr(entries_of(taint).get("effect")))
        if pair in seen:
            message = "repeats the key and effect of another taint"
            problems.add(f"{at(path, 'taints')}[{index}]", message)
        seen.add(pair)


def _features_sorted(status: Record, path: str, problems: Problems) -> None:
    """Check that the declared features are sorted and differ, as a kubelet reports them."""
    features = items_of(status.get("declaredFeatures"))
    for index in range(1, len(features)):
        before, feature = features[index - 1], features[index]
        if not isinstance(before, str) or not isinstance(feature, str) or before < feature:
            continue
        message = "is there already" if before == feature else "must be sorted alphabetically"
        problems.add(f"{at(path, 'declaredFeatures')}[{index}]", message, feature)


_NODE_SPEC = declared(
    NodeSpec,
    {"taints": list_of(TAINT)},
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
        "declaredFeatures": list_of(text(names.feature_name), values=True),
    },
    also=(_features_sorted,),
)

NODE_RULES = kind_rules(
    "Node", names.dns_subdomain, fields={"status": _NODE_STATUS}, spec=nullable(_NODE_SPEC)
)
NAMESPACE_RULES = kind_rules("Namespace", names.dns_label)
