"""From manifests to the values that the engine takes, through the service's own parsers."""

from typing import Any

from service.engine import Cluster
from service.model.config import ClusterConfig, parse_config
from service.model.manifest import TemplateCache, parse_namespace, parse_node, parse_pod
from service.model.objects import Namespace, Node, Pod

Manifest = dict[str, Any]

TEMPLATES = TemplateCache()
"""Shared, so that equal specs are one value, as in the service."""


def config(settings: Manifest) -> ClusterConfig:
    return parse_config(settings)


def node(manifest: Manifest) -> Node:
    return parse_node(manifest).node


def namespace(manifest: Manifest) -> Namespace:
    return parse_namespace(manifest).subject


def pod(manifest: Manifest, *, incoming: bool = False) -> Pod:
    """`incoming`: still to be placed, so that a `nodeName` is what the NodeName filter checks."""
    return parse_pod(manifest, TEMPLATES, to_place=incoming).created_now(TEMPLATES).pod


def cluster(
    settings: Manifest,
    namespaces: list[Manifest],
    nodes: list[Manifest],
    pods: list[Manifest],
) -> Cluster:
    """A cluster built in one go."""
    built = Cluster(config(settings))
    for each in namespaces:
        built.put_namespace(namespace(each))
    for each in nodes:
        built.put_node(node(each))
    for each in pods:
        built.put_pod(pod(each))
    return built
