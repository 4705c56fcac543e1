"""A cluster that changes, kept as the manifests themselves."""

from collections.abc import Iterable
from copy import copy
from typing import Any, Self

from tests.reference.pipeline import evaluate_view
from tests.reference.view import Manifest, View, name_of, namespace_of, spec_of


class ReferenceCluster:
    """Objects by key; every question is answered from scratch."""

    def __init__(self, config: Manifest, objects: Iterable[tuple[str, Manifest]] = ()) -> None:
        """`objects`: pairs of kind and manifest."""
        self.config = config
        self.namespaces: dict[str, Manifest] = {}
        self.nodes: dict[str, Manifest] = {}
        self.pods: dict[tuple[str, str], Manifest] = {}
        put = {"Node": self.put_node, "Namespace": self.put_namespace, "Pod": self.put_pod}
        self.objects: dict[tuple[str, str, str], Manifest] = {}
        for kind, manifest in objects:
            put.get(kind, self.put_object)(manifest)

    def put_node(self, node: Manifest) -> None:
        self.nodes[name_of(node)] = node

    def delete_node(self, name: str) -> None:
        del self.nodes[name]

    def put_namespace(self, namespace: Manifest) -> None:
        self.namespaces[name_of(namespace)] = namespace

    def delete_namespace(self, name: str) -> None:
        """Its labels are forgotten; its pods stay."""
        del self.namespaces[name]

    def put_pod(self, pod: Manifest) -> None:
        self.pods[namespace_of(pod), name_of(pod)] = pod

    def delete_pod(self, namespace: str, name: str) -> None:
        del self.pods[namespace, name]

    def put_object(self, manifest: Manifest) -> None:
        """Store an object of any other kind."""
        self.objects[manifest["kind"], namespace_of(manifest), name_of(manifest)] = manifest

    def delete_object(self, kind: str, namespace: str, name: str) -> None:
        del self.objects[kind, namespace, name]

    def bind(self, pod: Manifest, node_name: str) -> Manifest:
        """Store the pod as placed."""
        placed = pod | {"spec": spec_of(pod) | {"nodeName": node_name}}
        self.put_pod(placed)
        return placed

    def view(self) -> View:
        return View(
            self.config,
            self.namespaces.values(),
            self.nodes.values(),
            self.pods.values(),
            self.objects.values(),
        )

    def evaluate(self, pod: Manifest) -> dict[str, Any]:
        """Do what `evaluate` does for a pod that is not itself among those stored."""
        return evaluate_view(self.view(), pod)

    def copy(self) -> Self:
        """The cluster as it is now; manifests are shared, for nobody changes them in place."""
        twin = copy(self)
        twin.namespaces = dict(self.namespaces)
        twin.nodes = dict(self.nodes)
        twin.pods = dict(self.pods)
        twin.objects = dict(self.objects)
        return twin
