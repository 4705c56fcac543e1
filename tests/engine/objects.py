"""Turns manifests into the values that the engine takes, through the service's own parsers."""

from typing import Any

import msgspec

from service.engine import Cluster
from service.model.cluster.cluster_config import ClusterConfig, parse_config
from service.model.core.kind import DeclaredObject
from service.model.core.primitives import LabelSelector
from service.model.nodes.namespaces import parse_namespace
from service.model.nodes.node import Namespace, Node
from service.model.pods.pod import Pod
from service.model.registry.manifests import TemplateCache, parse_declared, parse_node, parse_pod
from service.model.workloads.disruption_budget import DisruptionBudget

Manifest = dict[str, Any]

TEMPLATES = TemplateCache()
"""Shared, so that equal specs are one value, as in the service."""


def config(settings: Manifest) -> ClusterConfig:
    return parse_config(settings)


def node(manifest: Manifest) -> Node:
    return parse_node(manifest).node


def namespace(manifest: Manifest) -> Namespace:
    return parse_namespace(manifest).subject


def budget(manifest: Manifest) -> DisruptionBudget:
    """What preemption reads of a PodDisruptionBudget, with the status that the manifest has."""
    status, selector = manifest.get("status") or {}, manifest.get("spec", {}).get("selector")
    return DisruptionBudget(
        namespace=manifest["metadata"]["namespace"],
        name=manifest["metadata"]["name"],
        selector=None if selector is None else msgspec.convert(selector, LabelSelector),
        disruptions_allowed=status.get("disruptionsAllowed", 0),
        disrupted_pods=frozenset(status.get("disruptedPods") or {}),
    )


def pod(manifest: Manifest, *, incoming: bool = False) -> Pod:
    """`incoming`: still to be placed, so that a `nodeName` is what the NodeName filter checks."""
    return parse_pod(manifest, TEMPLATES, to_place=incoming).created_now(TEMPLATES).pod


def kept(manifest: Manifest) -> DeclaredObject[Any]:
    """An object of whatever kept kind it says it is."""
    return parse_declared(manifest["kind"], manifest).kept


def cluster(
    settings: Manifest,
    namespaces: list[Manifest],
    nodes: list[Manifest],
    pods: list[Manifest],
    others: list[Manifest] = [],  # noqa: B006 - nobody changes it
) -> Cluster:
    """A cluster built in one go."""
    built = Cluster(config(settings))
    for each in namespaces:
        built.put_namespace(namespace(each))
    for each in nodes:
        built.put_node(node(each))
    for each in pods:
        built.put_pod(pod(each))
    for each in others:
        built.put_object(kept(each))
    return built
