"""One sweep over all nodes: readiness, NoExecute taints, and deleted nodes.

A sweep is decided like any request, on top of all earlier ones, and again after a lost race. Times
come from the database's clock.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta

from msgspec.structs import replace

from service.model.core.primitives import ObjectName, Taint
from service.model.nodes.condition_taints import READINESS_KEYS
from service.model.nodes.node import Node
from service.model.pods.pod import PodSpec
from service.model.pods.status import DELETED_NODE_REASON
from service.model.registry.manifests import PodManifest
from service.scheduler.decide.context import Decision, DecisionContext, Steps
from service.scheduler.decide.node_lifecycle.readiness_taints import NodeReadiness, Readiness, judge
from service.scheduler.decide.node_lifecycle.taints import (
    AT_ONCE,
    Tolerated,
    evicting_taints,
    first_tolerations,
    in_whole_seconds,
    leaves_at,
    parse_time,
    with_defaults,
)
from service.scheduler.decide.status.pod_conditions import (
    placed_at,
    record_evicted,
    with_eviction,
    with_failure,
)
from service.scheduler.protocol.answers import NodesAnswer
from service.scheduler.protocol.intents import SweepNodes
from service.scheduler.replica.stored_kinds import NodeState

TAINT_REASON = "DeletionByTaintManager"
TAINT_MESSAGE = "Taint manager: deleting due to NoExecute taint"
DELETED_MESSAGE = "PodGC: node no longer exists"
"""The wording of Kubernetes' pod garbage collector."""
CHANGES_MAX = 500
"""How many objects one sweep changes at most; the next sweep does the rest."""
_STEP_NODES = 200
"""How many nodes are examined in one step, before other tasks may run."""


def sweep_nodes(context: DecisionContext, intent: SweepNodes) -> Decision[NodesAnswer]:
    """Update taints by readiness, evict pods for taints, and end pods of deleted nodes.

    Raises:
        Overloaded: too many races were lost.
    """
    context.check_attempts("The nodes could not be looked at in time.")
    sweep = _Sweep(context, intent)
    yield from sweep.run()
    return NodesAnswer(revision=context.replica.revision, due=sweep.due(), all_down=sweep.all_down)


class _Sweep:
    """One sweep over all nodes, based on a single state and time."""

    def __init__(self, context: DecisionContext, intent: SweepNodes) -> None:
        self._context = context
        self._replica = context.replica
        self._config = context.replica.config
        self._intent = intent
        self._now = intent.clock()
        self._left = CHANGES_MAX
        self._times: list[datetime] = []
        """The times at which something becomes due."""
        self._tolerated: dict[tuple[int, tuple[Taint, ...]], Tolerated | None] = {}
        """The tolerations that each spec, by id, has for a node's taints."""
        self.all_down = False

    def run(self) -> Steps[None]:
        """Update taints, evict pods, and end the pods of deleted nodes, as far as each is due."""
        yield from self._keep_readiness()
        for node in self._tainted():
            self._keep_times(node)
            yield
            self._evict_from(node.name)
        for name in [key[1] for key in self._replica.keys(NodeState.kind)]:
            yield
            self._end_pods_of(name)

    def due(self) -> datetime | None:
        """Return when the next sweep is due even without changes, or None."""
        if self._left <= 0:
            return self._now
        return min(self._times, default=None)

    # Readiness

    def _keep_readiness(self) -> Steps[None]:
        nodes = self._nodes()
        if not self._any_unready(nodes):
            return
        judged: list[NodeReadiness] = []
        for place, node in enumerate(nodes):
            if place % _STEP_NODES == _STEP_NODES - 1:
                yield
            manifest = self._replica.node(node.name)
            assert manifest is not None
            judged.append(
                judge(manifest, self._replica.node_state(node.name), self._effective_intent())
            )
        readiness = Readiness(self._context, judged, self._now)
        self.all_down = readiness.all_down
        for place, node_readiness in enumerate(judged):
            if place % _STEP_NODES == _STEP_NODES - 1:
                yield
            if self._manages or node_readiness.was_silent:
                self._keep(readiness, node_readiness)
        if readiness.due is not None and self._manages:
            self._times.append(readiness.due)

    def _any_unready(self, nodes: list[Node]) -> bool:
        """Return whether any node is unready, silent, or has a readiness taint; usually none is."""
        if self._intent.silent or self._replica.keys(NodeState.kind):
            return True
        return any(
            node.ready not in ("", "True")
            or any(taint.key in READINESS_KEYS for taint in node.taints)
            for node in nodes
        )

    @property
    def _manages(self) -> bool:
        """Return whether conditions and silence lead to taints in this cluster."""
        return self._config.taints_nodes

    def _effective_intent(self) -> SweepNodes:
        """Return the intent, without silent nodes if silence has no effect in this cluster."""
        return self._intent if self._manages else replace(self._intent, silent=frozenset())

    def _keep(self, readiness: Readiness, judged: NodeReadiness) -> None:
        if self._left <= 0:
            return
        manifest = readiness.with_due_taints(judged)
        if manifest is not judged.manifest:
            self._replica.put(manifest)
            self._left -= 1
        readiness.remember(judged)

    # Taints that evict

    def _tainted(self) -> list[Node]:
        if not self._config.evicts_for_taints:
            return []
        return [node for node in self._nodes() if evicting_taints(node.taints)]

    def _keep_times(self, node: Node) -> None:
        """Set the time of taints added without one."""
        if self._left <= 0 or all(taint.time_added for taint in evicting_taints(node.taints)):
            return
        manifest = self._replica.node(node.name)
        assert manifest is not None
        at = in_whole_seconds(self._now)
        timed = tuple(
            replace(taint, time_added=at)
            if taint.effect == "NoExecute" and taint.time_added is None
            else taint
            for taint in node.taints
        )
        self._replica.put(manifest.with_taints(timed))
        self._left -= 1

    def _evict_from(self, name: str) -> None:
        cluster = self._replica.cluster
        node = cluster.node(name)
        assert node is not None
        taints = evicting_taints(node.taints)
        state = self._replica.node_state(name)
        if state is not None and state.silent and not self._intent.judges:
            # The node may not have had a chance to report yet.
            taints = tuple(taint for taint in taints if taint.key not in READINESS_KEYS)
        for pod in cluster.pods_of(name) if taints else ():
            if self._left <= 0:
                return
            if not pod.terminating and not pod.finished:
                self._evict_if_due(pod.namespace, pod.name, taints)

    def _evict_if_due(self, namespace: str, name: str, taints: tuple[Taint, ...]) -> None:
        manifest = self._replica.pod(namespace, name)
        assert manifest is not None
        tolerated = self._tolerations(manifest.pod.spec, taints)
        end = leaves_at(tolerated)
        if end is not None and AT_ONCE < end <= self._now:
            came = placed_at(manifest)
            end = leaves_at(tolerated, parse_time(came)) if came else end
        if end is None:
            return
        if end > self._now:
            self._times.append(end)
            return
        if end > AT_ONCE:
            self._context.hold_until(end)
        self._replica.put(with_eviction(self._context, manifest, TAINT_REASON, TAINT_MESSAGE))
        record_evicted(self._context, manifest, "NoExecuteTaint", TAINT_MESSAGE)
        self._left -= 1

    def _tolerations(self, spec: PodSpec, taints: tuple[Taint, ...]) -> Tolerated | None:
        key = (id(spec), taints)
        if key not in self._tolerated:
            tolerations = with_defaults(spec.tolerations, self._config)
            self._tolerated[key] = first_tolerations(taints, tolerations)
        return self._tolerated[key]

    # Deleted nodes

    def _end_pods_of(self, name: str) -> None:
        """End a deleted node's pods when their time is over, unless the node is recreated."""
        state = self._replica.node_state(name)
        if state is None or not state.deleted or self._left <= 0:
            return
        pods = [pod for pod in self._replica.cluster.pods_of(name) if not pod.finished]
        is_back = self._replica.cluster.node(name) is not None
        if is_back or not pods or not self._config.fails_pods_of_deleted_nodes:
            self._replica.delete(state.kind, "", name)
            return
        since = self._now if state.deleted_at is None else state.deleted_at
        end = since + timedelta(seconds=self._config.orphan_grace_seconds)
        if end > self._now:
            if state.deleted_at is None:
                self._replica.put(replace(state, deleted_at=since))
            self._times.append(end)
            return
        self._context.hold_until(end)
        keys = [(pod.namespace, pod.name) for pod in pods]
        self._fail(key for key in keys[: self._left])
        if len(keys) <= self._left:
            self._replica.delete(state.kind, "", name)
        self._left -= len(keys)

    def _fail(self, keys: Iterable[ObjectName]) -> None:
        for key in keys:
            manifest = self._replica.pod(*key)
            assert isinstance(manifest, PodManifest)
            self._replica.put(
                with_failure(self._context, manifest, DELETED_NODE_REASON, DELETED_MESSAGE)
            )
            record_evicted(self._context, manifest, "DeletedNode", DELETED_MESSAGE)

    def _nodes(self) -> list[Node]:
        return sorted(
            (node for node in self._replica.cluster.nodes.nodes if node is not None),
            key=lambda node: node.name,
        )
