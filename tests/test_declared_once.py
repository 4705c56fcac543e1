"""What is one thing is declared once: types with the same fields are about different things."""

import json
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from importlib import import_module
from pkgutil import walk_packages
from typing import get_args

import msgspec

import service
from service.model.plans.repair_changes import AnyRepairChange
from service.scheduler.protocol.plans import CHANGES
from tests.paths import ROOT

STRUCTS = {
    ("DataDomains", "Domains", "TopologySelectorLabelRequirement"): "objects of three kinds",
    ("Grant", "Grant"): "as it is kept, with nulls, and as it is shown, without",
    ("ObjectPage", "Snapshot"): "a part of the objects, and all of some kinds",
    ("Plugin", "ResourceWeight"): "what is weighed are plugins, or resources",
    ("PodName", "PodRef"): "in answers the namespace is always told",
    ("ReplicaSetSpec", "StatefulSetSpec"): "objects of two kinds",
}
"""Types with the same fields and why there are several."""

SCHEMAS = {
    ("BindingMessage", "WatchMessage"): "their data differ",
    ("ClaimRef", "EventObject", "PodIdentity"): "a claim, and a pod with and without its kind",
    (
        "Cluster",
        "ClusterPatch",
        "ClusterSettings",
        "DeletedCluster",
    ): "what may be left out differs",
    ("DataDomains", "Domains", "TopologySelectorLabelRequirement"): "objects of three kinds",
    ("Grant", "GrantSettings"): "one that is given needs a role that this version knows",
    ("LabelSelectorRequirement", "NodeSelectorRequirement"): "nodes know two more operators",
    ("LeaseMeta", "PodName", "PodRef"): "what may be left out differs",
    ("MetaVictims", "Victims"): "Kubernetes has both",
    ("PlanStep", "PlannedStep"): "of a step that comes back the reason may be left out",
    ("PriorityClass", "PriorityClassEntry"): "an object, and a part of a setting",
    ("ReplicaSetSpec", "ReplicationControllerSpec", "StatefulSetSpec"): "objects of three kinds",
    ("WebhookPatch", "WebhookSettings"): "of a change everything may be left out",
}
"""Schemas of the OpenAPI document with the same properties and why there are several."""

OF_ALL_OBJECTS = {"apiVersion", "kind", "metadata", "items", "spec", "status", "warnings"}


def structs(of: type = msgspec.Struct) -> Iterator[type[msgspec.Struct]]:
    for each in of.__subclasses__():
        yield each
        yield from structs(each)


def is_written(each: type) -> bool:
    """Whether a type stands in a module of the service, and was not made from something else."""
    module = sys.modules[each.__module__]
    written = vars(module).get(each.__name__) is each
    return written and module.__name__.startswith("service.")


ACT_WHEN_IMPORTED = ("__main__", "preload")


def alike(types: Iterable[tuple[str, frozenset[object]]]) -> list[tuple[str, ...]]:
    """The names of types that have the same fields, and at least two of them."""
    names: dict[frozenset[object], list[str]] = defaultdict(list)
    for name, fields in sorted(types, key=lambda each: each[0]):
        if len(fields) > 1:
            names[fields].append(name)
    return sorted(tuple(each) for each in names.values() if len(each) > 1)


def test_no_type_has_the_same_fields_as_another() -> None:
    for module in walk_packages(service.__path__, "service."):
        if not module.name.endswith(ACT_WHEN_IMPORTED):
            import_module(module.name)
    found = alike(
        (
            each.__name__,
            frozenset((own.name, str(own.type)) for own in msgspec.structs.fields(each)),
        )
        for each in structs()
        if is_written(each) and "__annotations__" in vars(each)
    )

    assert found == sorted(STRUCTS)


def test_no_schema_has_the_same_properties_as_another() -> None:
    document = json.loads((ROOT / "openapi/openapi.json").read_bytes())
    found = alike(
        (name, frozenset(schema.get("properties", {}).keys() - OF_ALL_OBJECTS))
        for name, schema in document["components"]["schemas"].items()
    )

    assert found == sorted(SCHEMAS)


def test_repairs_write_changes_of_nodes_and_pods_as_plans_take_them() -> None:
    """They name what they are about, where plans may also select it, so that the types differ."""
    shared = {each.__name__: each for each in get_args(AnyRepairChange) if each.__name__ in CHANGES}

    assert shared.keys() == {"UncordonNodes", "SetLabels", "SetTaints", "AddNodes", "RemovePods"}
    for name, each in shared.items():
        stated = {*each.__struct_fields__} - {"names", "namespace"}
        assert stated <= {*CHANGES[name].__struct_fields__}, name
