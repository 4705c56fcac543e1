"""Finds the objects selected by a plan's change."""

from collections.abc import Callable, Iterator

from service.model.core.errors import FieldError, InvalidManifest
from service.model.core.selectors import matches
from service.model.nodes.namespaces import NamespaceManifest
from service.model.registry.manifests import DEFAULT_NAMESPACE, NodeManifest, PodManifest
from service.scheduler.decide.context import Steps
from service.scheduler.decide.object_writes import not_found
from service.scheduler.plans.fork import Fork
from service.scheduler.protocol.callers import Caller
from service.scheduler.protocol.plans import Domains, Selection

_STEP_OBJECTS = 200


def nodes_of(fork: Fork, selection: Selection) -> Steps[list[NodeManifest]]:
    """Return the selected nodes, ordered by name.

    Raises:
        NotFound: a named node does not exist.
    """
    if selection.names is not None:
        nodes = [_node(fork, name) for name in dict.fromkeys(selection.names)]
    else:
        nodes = yield from _all_nodes(fork)
    return sorted(
        (node for node in nodes if _is_meant(selection, node)), key=lambda node: node.name
    )


def pods_of(fork: Fork, selection: Selection, caller: Caller) -> Steps[list[PodManifest]]:
    """Return the selected pods, ordered by namespace and name.

    Raises:
        NotFound: a named pod does not exist.
        Forbidden: the caller may not place pods in a named namespace.
    """
    if selection.namespace is not None:
        _require_placing(caller, selection.namespace)
    if selection.names is not None:
        namespace = selection.namespace or DEFAULT_NAMESPACE
        _require_placing(caller, namespace)
        pods = [_pod(fork, namespace, name) for name in dict.fromkeys(selection.names)]
    else:
        pods = yield from _all_pods(fork, selection, _reach(caller))
    chosen = [pod for pod in pods if _is_chosen(fork, selection, pod)]
    return sorted(chosen, key=lambda pod: (pod.namespace, pod.name))


def namespaces_of(fork: Fork, selection: Selection, caller: Caller) -> list[NamespaceManifest]:
    """Return the selected namespaces that are stored, ordered by name.

    Raises:
        NotFound: a named namespace is not stored.
        Forbidden: the caller may not place pods in one of them.
    """
    for name in selection.names or ():
        _require_placing(caller, name)
        if fork.replica.get("Namespace", "", name) is None:
            raise not_found("Namespace", "", name)
    reaches = _reach(caller)
    return sorted(
        (
            stored.manifest
            for stored in fork.replica.objects("Namespace")
            if isinstance(stored.manifest, NamespaceManifest)
            and reaches(stored.manifest.name)
            and (selection.names is None or stored.manifest.name in selection.names)
            and (selection.selector is None or matches(selection.selector, stored.manifest.labels))
        ),
        key=lambda namespace: namespace.name,
    )


def _all_nodes(fork: Fork) -> Steps[list[NodeManifest]]:
    nodes = []
    for index, stored in enumerate(fork.replica.objects("Node")):
        assert isinstance(stored.manifest, NodeManifest)
        nodes.append(stored.manifest)
        if index % _STEP_OBJECTS == _STEP_OBJECTS - 1:
            yield
    return nodes


def _all_pods(
    fork: Fork, selection: Selection, reaches: Callable[[str], bool]
) -> Steps[list[PodManifest]]:
    """Return the pods of a namespace, or of all reachable ones; for domains, node by node."""
    pods = []
    every = (
        _pods_everywhere(fork)
        if selection.topology is None
        else _pods_on_nodes(fork, selection.topology)
    )
    for index, pod in enumerate(every):
        if selection.namespace in (None, pod.namespace) and reaches(pod.namespace):
            pods.append(pod)
        if index % _STEP_OBJECTS == _STEP_OBJECTS - 1:
            yield
    return pods


def _pods_everywhere(fork: Fork) -> Iterator[PodManifest]:
    for stored in fork.replica.objects("Pod"):
        assert isinstance(stored.manifest, PodManifest)
        yield stored.manifest


def _pods_on_nodes(fork: Fork, topology: Domains) -> Iterator[PodManifest]:
    nodes = fork.replica.cluster.nodes
    for slot, node in enumerate(nodes.nodes):
        if node is not None and node.labels.get(topology.key) in topology.values:
            for pod, _ in fork.replica.cluster.placed_on(slot):
                yield _pod(fork, pod.namespace, pod.name)


def _is_meant(selection: Selection, node: NodeManifest) -> bool:
    if selection.selector is not None and not matches(selection.selector, node.labels):
        return False
    domains = selection.topology
    return domains is None or node.labels.get(domains.key) in domains.values


def _is_chosen(fork: Fork, selection: Selection, pod: PodManifest) -> bool:
    if selection.selector is not None and not matches(selection.selector, pod.labels):
        return False
    domains = selection.topology
    if domains is None:
        return True
    node = None if pod.pod.node_name is None else fork.replica.cluster.node(pod.pod.node_name)
    return node is not None and node.labels.get(domains.key) in domains.values


def _node(fork: Fork, name: str) -> NodeManifest:
    stored = fork.replica.get("Node", "", name)
    if stored is None:
        raise not_found("Node", "", name)
    assert isinstance(stored.manifest, NodeManifest)
    return stored.manifest


def _pod(fork: Fork, namespace: str, name: str) -> PodManifest:
    pod = fork.replica.pod(namespace, name)
    if pod is None:
        raise not_found("Pod", namespace, name)
    return pod


def _reach(caller: Caller) -> Callable[[str], bool]:
    """Return a predicate for namespaces where the caller may place pods; others are invisible."""
    where = caller.principal.namespaces("place", caller.cluster)
    return lambda namespace: where is None or namespace in where


def _require_placing(caller: Caller, namespace: str) -> None:
    caller.require("place", namespace, "a plan changes only what its caller may place.")


def field_error(path: str, message: str, value: object = None) -> InvalidManifest:
    """Return the error for one field of a plan."""
    shown = value if isinstance(value, str | int) else None
    return InvalidManifest([FieldError(path, message, shown)])
