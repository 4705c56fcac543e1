"""Updates nodes' taints to match their readiness, at the rate that their zones allow."""

from datetime import datetime
from typing import NamedTuple

from msgspec.structs import replace

from service.model.core.primitives import Taint
from service.model.nodes.condition_taints import (
    READINESS_KEYS,
    TAINT_OF,
    with_condition_taints,
    with_readiness,
)
from service.model.nodes.node import NodeCondition
from service.model.nodes.node_manifest import READY
from service.model.registry.manifests import NodeManifest
from service.scheduler.decide.context import DecisionContext
from service.scheduler.decide.node_lifecycle.taints import (
    added_at,
    evicting_taints,
    in_whole_seconds,
)
from service.scheduler.decide.node_lifecycle.zones import (
    Zone,
    ZoneCount,
    allowed_now,
    count_zones,
    zone_of,
)
from service.scheduler.protocol.intents import SweepNodes
from service.scheduler.replica.stored_kinds import NodeState

SILENT_REASON = "NodeStatusUnknown"
SILENT_MESSAGE = "Kubelet stopped posting node status."
"""The wording of Kubernetes' node controller."""
RENEWED_REASON = "NodeLeaseRenewed"
RENEWED_MESSAGE = "The node reports again."


class NodeReadiness(NamedTuple):
    """A node with its stored state and its current readiness."""

    manifest: NodeManifest
    state: NodeState | None
    ready: str
    """The status that the Ready condition should have."""
    is_silent: bool
    """Whether the node has that status because it is silent."""

    @property
    def was_silent(self) -> bool:
        """Return whether the node was already known to be silent."""
        return self.state is not None and self.state.silent


def judge(manifest: NodeManifest, state: NodeState | None, intent: SweepNodes) -> NodeReadiness:
    """Judge a node's readiness from its last report and from whether it still reports."""
    node = manifest.node
    if state is not None and state.silent:
        returned = intent.silent is not None and node.name not in intent.silent
        if returned:
            return NodeReadiness(manifest, state, state.told_ready, is_silent=False)
        return NodeReadiness(manifest, state, "Unknown", is_silent=True)
    if intent.judges and intent.silent and node.name in intent.silent:
        return NodeReadiness(manifest, state, "Unknown", is_silent=True)
    return NodeReadiness(manifest, state, node.ready, is_silent=False)


class Readiness:
    """The effect of all nodes' readiness on each node's taints."""

    def __init__(
        self, context: DecisionContext, judged: list[NodeReadiness], now: datetime
    ) -> None:
        self._context = context
        self._config = context.replica.config
        self._now = now
        self._at = in_whole_seconds(now)
        counts = count_zones((node.manifest.node, node.ready) for node in judged)
        self.all_down = bool(counts) and all(count.is_down for count in counts.values())
        self.due: datetime | None = None
        """When the next waiting node may get the NoExecute taint, or None."""
        self._may_evict = self._chosen(judged, counts)

    def with_due_taints(self, judged: NodeReadiness) -> NodeManifest:
        """Return the node with the condition and taints due now."""
        manifest = self._with_condition(judged)
        if judged.ready == "" and not judged.was_silent:
            return manifest  # The node's readiness is unknown, so its owner manages its taints.
        taints = self._taints(judged)
        return manifest if taints == manifest.node.taints else manifest.with_taints(taints)

    def remember(self, judged: NodeReadiness) -> None:
        """Store whether the node is silent."""
        replica, name = self._context.replica, judged.manifest.name
        if judged.is_silent and not judged.was_silent:
            ready = judged.manifest.node.ready
            replica.put(NodeState(name=name, silent=True, told_ready=ready))
        elif judged.was_silent and not judged.is_silent:
            replica.delete(NodeState.kind, "", name)

    def _chosen(self, judged: list[NodeReadiness], counts: dict[Zone, ZoneCount]) -> frozenset[str]:
        """Choose the nodes that get the NoExecute taint now, the longest unready first."""
        waiting: dict[Zone, list[tuple[str, str]]] = {}
        last: dict[Zone, datetime] = {}
        for node_readiness in judged:
            node, zone = node_readiness.manifest.node, zone_of(node_readiness.manifest.node)
            own = [taint for taint in node.taints if taint.key in READINESS_KEYS]
            times = [time for taint in evicting_taints(own) if (time := added_at(taint))]
            if times:
                last[zone] = max(*times, last.get(zone, times[0]))
            elif node_readiness.ready in TAINT_OF:
                since = min((taint.time_added or "" for taint in own), default=self._at)
                waiting.setdefault(zone, []).append((since, node.name))
        if self.all_down:
            return frozenset()
        chosen: list[str] = []
        for zone, nodes in waiting.items():
            rate = counts.get(zone, ZoneCount(ready=1)).rate(self._config)
            number, next_at = allowed_now(rate, last.get(zone), self._now)
            chosen += [name for _, name in sorted(nodes)[:number]]
            if len(nodes) > number and next_at is not None:
                self.due = min(self.due or next_at, next_at)
        return frozenset(chosen)

    def _taints(self, judged: NodeReadiness) -> tuple[Taint, ...]:
        node = judged.manifest.node
        if not self._config.taints_nodes:  # The node was silent while silence still led to a taint.
            return with_readiness(node.taints, "True", self._at)
        ready = judged.ready or "True"  # The node was silent, and never reported its readiness.
        taints = with_condition_taints(replace(node, ready=ready), self._at)
        if judged.ready not in TAINT_OF:
            return taints
        if not self.all_down:
            evicts = node.name in self._may_evict
            return with_readiness(taints, judged.ready, self._at, evicting=evicts)
        return tuple(
            taint
            for taint in taints
            if taint.key not in READINESS_KEYS or taint.effect != "NoExecute"
        )

    def _with_condition(self, judged: NodeReadiness) -> NodeManifest:
        manifest = judged.manifest
        if judged.is_silent:
            if manifest.node.ready == "Unknown" and judged.was_silent:
                return manifest
            condition = self._condition("Unknown", SILENT_REASON, SILENT_MESSAGE)
            before = manifest.readiness()
            heard = "" if before is None else before.last_heartbeat_time
            return manifest.with_condition(replace(condition, last_heartbeat_time=heard))
        if not judged.was_silent or manifest.node.ready != "Unknown":
            return manifest
        if judged.ready == "":
            return manifest.without_condition(READY)
        renewed = self._condition(judged.ready, RENEWED_REASON, RENEWED_MESSAGE)
        return manifest.with_condition(replace(renewed, last_heartbeat_time=self._at))

    def _condition(self, status: str, reason: str, message: str) -> NodeCondition:
        return NodeCondition(
            type=READY,
            status=status,
            reason=reason,
            message=message,
            last_transition_time=self._at,
        )
