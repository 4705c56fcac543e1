"""Applies a plan's changes to its fork."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from service.engine.state.nodes.node_table import HOSTNAME
from service.model.cluster.cluster_config import parse_config
from service.model.core.errors import Forbidden, InvalidManifest
from service.model.core.primitives import ObjectName
from service.model.json.patch import apply_patch
from service.model.nodes.condition_taints import with_condition_taints
from service.model.nodes.node import Node
from service.model.pods.spec_families import names_node
from service.model.registry.manifests import NodeManifest
from service.scheduler.decide.admission.pod_admission import as_created, was_admitted
from service.scheduler.decide.context import Steps
from service.scheduler.decide.node_lifecycle.client_writes import changed_taints
from service.scheduler.plans.fork import Fork
from service.scheduler.plans.selection import (
    field_error,
    namespaces_of,
    nodes_of,
    pods_of,
)
from service.scheduler.protocol.callers import Caller
from service.scheduler.protocol.plans import (
    AddNodes,
    CordonNodes,
    PlanChange,
    PutPods,
    RemoveNodes,
    RemovePods,
    SetConfig,
    SetLabels,
    SetNamespaceLabels,
    SetTaints,
    UncordonNodes,
)
from service.scheduler.replica.stored_kinds import ConfigManifest


class DisplacedPod(msgspec.Struct, frozen=True):
    """A pod whose node a plan removes, so that it waits for another one."""

    name: ObjectName
    node_name: str
    """The node that the pod was on."""


class ForkEditor(msgspec.Struct):
    """Applies one plan's changes to its fork."""

    fork: Fork
    caller: Caller
    displaced: list[DisplacedPod] = msgspec.field(default_factory=list)
    """The displaced pods, in the order in which their nodes were removed."""

    def make(self, changes: tuple[PlanChange, ...]) -> Steps[list[int]]:
        """Apply all changes in order, and return how many objects each one affects.

        Raises:
            InvalidManifest, NotFound, Forbidden: a change is impossible or not allowed.
        """
        counts = []
        for index, change in enumerate(changes):
            place = f"changes[{index}]"
            try:
                counts.append((yield from _MAKE[type(change)](self, change)))
            except InvalidManifest as error:
                raise error.under(place) from None
            except Forbidden as forbidden:
                raise forbidden.under(place) from None
        return counts


def _remove_nodes(editor: ForkEditor, change: RemoveNodes) -> Steps[int]:
    nodes = yield from nodes_of(editor.fork, change.nodes)
    for node in nodes:
        _displace(editor, node.name)
        editor.fork.replica.delete("Node", "", node.name)
        yield from editor.fork.pause()
    return len(nodes)


def _displace(editor: ForkEditor, node_name: str) -> None:
    """Displace a removed node's pods, deleting those bound to the node by name, such as daemons."""
    replica = editor.fork.replica
    slot = replica.cluster.nodes.slots[node_name]
    for pod in [pod for pod, _ in replica.cluster.placed_on(slot)]:
        if names_node(pod.spec) or pod.terminating:
            replica.delete("Pod", pod.namespace, pod.name)
            continue
        manifest = replica.pod(pod.namespace, pod.name)
        assert manifest is not None
        replica.put(manifest.without_node())
        editor.displaced.append(DisplacedPod((pod.namespace, pod.name), node_name))


def _cordon_nodes(editor: ForkEditor, change: CordonNodes) -> Steps[int]:
    nodes = yield from nodes_of(editor.fork, change.nodes)
    for node in nodes:
        yield from _put_node(editor, node, replace(node.node, unschedulable=True))
    return len(nodes)


def _uncordon_nodes(editor: ForkEditor, change: UncordonNodes) -> Steps[int]:
    nodes = yield from nodes_of(editor.fork, change.nodes)
    for node in nodes:
        yield from _put_node(editor, node, replace(node.node, unschedulable=False))
    return len(nodes)


def _set_labels(editor: ForkEditor, change: SetLabels) -> Steps[int]:
    nodes = yield from nodes_of(editor.fork, change.nodes)
    for node in nodes:
        labels = _relabelled(node.labels, change.labels)
        yield from _put_node(editor, node, replace(node.node, labels=labels))
    return len(nodes)


def _set_taints(editor: ForkEditor, change: SetTaints) -> Steps[int]:
    nodes = yield from nodes_of(editor.fork, change.nodes)
    for node in nodes:
        yield from _put_node(editor, node, replace(node.node, taints=change.taints))
    return len(nodes)


def _put_node(editor: ForkEditor, stored: NodeManifest, node: Node) -> Steps[None]:
    if editor.fork.replica.config.taints_nodes:
        node = replace(node, taints=with_condition_taints(node, editor.fork.context.now))
    editor.fork.put(replace(stored, node=node))
    yield from editor.fork.pause()


def _relabelled(labels: Mapping[str, str], changed: Mapping[str, str | None]) -> dict[str, str]:
    merged = {**labels, **changed}
    return {key: value for key, value in merged.items() if value is not None}


def _add_nodes(editor: ForkEditor, change: AddNodes) -> Steps[int]:
    template, domains = change.template, change.topology
    for index in range(change.count):
        name = f"{template.name}-{index}"
        if editor.fork.replica.get("Node", "", name) is not None:
            raise field_error("template.metadata.name", f"would name a node that is there: {name}")
        labels = dict(template.labels)
        if HOSTNAME in labels:
            labels[HOSTNAME] = name
        if domains is not None:
            labels[domains.key] = domains.values[index % len(domains.values)]
        yield from _put_node(
            editor, template, replace(template.node, name=name, labels=labels, uid="")
        )
    return change.count


def _remove_pods(editor: ForkEditor, change: RemovePods) -> Steps[int]:
    pods = yield from pods_of(editor.fork, change.pods, editor.caller)
    for pod in pods:
        editor.fork.replica.delete("Pod", pod.namespace, pod.name)
        yield from editor.fork.pause()
    return len(pods)


def _put_pods(editor: ForkEditor, change: PutPods) -> Steps[int]:
    context, caller = editor.fork.context, editor.caller
    for index, sent in enumerate(change.pods):
        known = was_admitted(sent, caller)
        try:
            created = as_created(context, sent, was_admitted=known)
        except InvalidManifest as error:
            raise error.under(f"pods[{index}]") from None
        editor.fork.put(created)
        yield from editor.fork.pause()
    return len(change.pods)


def _set_config(editor: ForkEditor, change: SetConfig) -> Steps[int]:
    present = msgspec.json.decode(msgspec.json.encode(editor.fork.replica.config))
    try:
        config = parse_config(apply_patch("merge", present, change.config))
    except InvalidManifest as error:
        raise error.under("config") from None
    before = editor.fork.replica.config
    yield from editor.fork.configure(ConfigManifest(config=config, body=b"{}"))
    for node, taints in changed_taints(editor.fork.replica, before, editor.fork.context.now):
        yield from _put_node(editor, node, replace(node.node, taints=taints))
    return 1


def _set_namespace_labels(editor: ForkEditor, change: SetNamespaceLabels) -> Steps[int]:
    namespaces = namespaces_of(editor.fork, change.namespaces, editor.caller)
    for stored in namespaces:
        labels = _relabelled(stored.labels, change.labels)
        namespace = replace(stored.namespace_object, labels=labels)
        editor.fork.put(replace(stored, namespace_object=namespace))
        yield from editor.fork.pause()
    return len(namespaces)


_MAKE: Mapping[type[PlanChange], Callable[[ForkEditor, Any], Steps[int]]] = {
    RemoveNodes: _remove_nodes,
    CordonNodes: _cordon_nodes,
    UncordonNodes: _uncordon_nodes,
    AddNodes: _add_nodes,
    SetLabels: _set_labels,
    SetTaints: _set_taints,
    RemovePods: _remove_pods,
    PutPods: _put_pods,
    SetConfig: _set_config,
    SetNamespaceLabels: _set_namespace_labels,
}
"""The function that applies each kind of change and returns how many objects it affects."""
