"""The node state that client writes preserve, and the taints that conditions add.

A PUT of a whole node does not restart timers in progress.
"""

from collections.abc import Iterator

from msgspec.structs import replace

from service.model.cluster.cluster_config import ClusterConfig
from service.model.core.primitives import Taint
from service.model.nodes.condition_taints import (
    asked_keys,
    with_condition_taints,
    without_condition_taints,
)
from service.model.registry.manifests import NodeManifest
from service.scheduler.decide.context import DecisionContext
from service.scheduler.replica.replica import Replica
from service.scheduler.replica.stored_kinds import NodeState


def with_remembered_state(
    context: DecisionContext, sent: NodeManifest, old: NodeManifest
) -> NodeManifest:
    """Return an update of a node, with the state that clients cannot undo.

    NoExecute taints keep the time when they were added, so that an update does not restart the
    countdown. Taints required by a condition stay as long as the condition does. A silent node
    stays silent until it reports; the update's Ready status is stored until then.
    """
    if not old.node.taints and old.node.ready in ("", "True"):
        return sent
    state = context.replica.node_state(old.name)
    silent = state is not None and state.silent
    if context.replica.config.evicts_for_taints or silent:
        sent = _with(sent, _timed(sent.node.taints, old.node.taints))
    if state is not None and silent:
        sent = _still_silent(context.replica, sent, old, state)
    return _keeping_asked(context, sent, old)


def taint_by_conditions(config: ClusterConfig, node: NodeManifest, now: str) -> NodeManifest:
    """Return a node with the taints that its conditions require, if the cluster taints nodes."""
    return _with(node, with_condition_taints(node.node, now)) if config.taints_nodes else node


def changed_taints(
    replica: Replica, before: ClusterConfig, now: str
) -> Iterator[tuple[NodeManifest, tuple[Taint, ...]]]:
    """Yield the nodes whose taints change with the configuration, with their new taints."""
    config = replica.config
    if config.taints_nodes == before.taints_nodes:
        return
    for node in [node for node in replica.cluster.nodes.nodes if node is not None]:
        taints = node.taints
        if config.taints_nodes:
            taints = with_condition_taints(node, now)
        elif config.node_conditions == "Ignore":
            taints = without_condition_taints(node)
        if taints != node.taints:
            manifest = replica.node(node.name)
            assert manifest is not None
            yield manifest, taints


def note_deletion(replica: Replica, name: str) -> None:
    """Record the deletion of a node that has pods; otherwise drop the node's stored state."""
    state = replica.node_state(name)
    fails = replica.config.fails_pods_of_deleted_nodes
    if fails and any(not pod.finished for pod in replica.cluster.pods_of(name)):
        deleted = NodeState(name=name, deleted=True)
        if state != deleted:
            replica.put(deleted)
    elif state is not None:
        replica.delete(state.kind, "", name)


def _timed(taints: tuple[Taint, ...], old: tuple[Taint, ...]) -> tuple[Taint, ...]:
    """Return taints, copying missing times from equal earlier taints."""
    times = {(taint.key, taint.value, taint.effect): taint.time_added for taint in old}
    return tuple(
        taint
        if taint.time_added is not None
        else replace(taint, time_added=times.get((taint.key, taint.value, taint.effect)))
        for taint in taints
    )


def _keeping_asked(context: DecisionContext, sent: NodeManifest, old: NodeManifest) -> NodeManifest:
    """Keep the taints that conditions require, if the cluster taints nodes."""
    required_keys = asked_keys(sent.node)
    if not required_keys or not context.replica.config.taints_nodes:
        return sent
    present = {(taint.key, taint.effect) for taint in sent.node.taints}
    required = tuple(
        taint
        for taint in old.node.taints
        if taint.key in required_keys and (taint.key, taint.effect) not in present
    )
    return _with(sent, (*sent.node.taints, *required))


def _still_silent(
    replica: Replica, sent: NodeManifest, old: NodeManifest, state: NodeState
) -> NodeManifest:
    if sent.node.ready not in ("Unknown", state.told_ready):
        replica.put(replace(state, told_ready=sent.node.ready))
    if sent.node.ready == old.node.ready:
        return sent
    condition = old.readiness()
    return sent if condition is None else sent.with_condition(condition)


def _with(manifest: NodeManifest, taints: tuple[Taint, ...]) -> NodeManifest:
    return manifest if taints == manifest.node.taints else manifest.with_taints(taints)
