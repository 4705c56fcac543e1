"""Pod calls: placements, bindings, evictions, status reports, and queries about pods."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Unpack, cast

from moorage.batches import batched
from moorage.kinds import KINDS, NAMESPACE_DEFAULT, path_parts
from moorage.options import PlacementOptions, camel_cased
from moorage.requests import Manifest, asking, dry, posting_once, putting, reading
from moorage.synchronous.calls import Calls

if TYPE_CHECKING:
    from moorage import types


NODES_PER_REPORT = 1_000
"""The maximum number of nodes that the server accepts in one report."""


class PodCalls(Calls):
    """Calls about pods and their nodes. Writes take effect once, however often they are sent.

    A reused `idempotency_key` repeats the first answer. So an orchestrator that stores the key
    before the call can learn the outcome after a crash.
    """

    def place(
        self,
        pods: Iterable[Manifest],
        *,
        idempotency_key: str | None = None,
        **options: Unpack[PlacementOptions],
    ) -> types.PlacementAnswer:
        """Find a node for each of these pods, creating new pods."""
        return self._placed({"pods": list(pods)}, options, idempotency_key)

    def place_stored(
        self,
        names: Iterable[tuple[str, str]],
        *,
        idempotency_key: str | None = None,
        **options: Unpack[PlacementOptions],
    ) -> types.PlacementAnswer:
        """Find a node for each of these pending pods, given as (namespace, name)."""
        references = [{"namespace": namespace, "name": name} for namespace, name in names]
        return self._placed({"podRefs": references}, options, idempotency_key)

    def place_copies(
        self,
        template: Manifest,
        replicas: int,
        *,
        idempotency_key: str | None = None,
        **options: Unpack[PlacementOptions],
    ) -> types.PlacementAnswer:
        """Find a node for each copy of a pod template, named `<name>-0`, `<name>-1`, …."""
        asked = {"template": template, "replicas": replicas}
        return self._placed(asked, options, idempotency_key)

    def _placed(
        self, asked: Mapping[str, Any], options: PlacementOptions, key: str | None
    ) -> types.PlacementAnswer:
        path, body = self.path("placements"), {**asked, **camel_cased(options)}
        is_dry = options.get("dry_run", False)
        request = asking(path, body) if is_dry else posting_once(path, body, key=key)
        return cast("types.PlacementAnswer", self._asked(request))

    def bind(
        self,
        name: str,
        node: str,
        *,
        namespace: str = NAMESPACE_DEFAULT,
        force: bool = False,
        dry_run: bool = False,
        idempotency_key: str | None = None,
    ) -> types.Pod:
        """Bind a pod to a chosen node, if all filters pass there or `force` is true."""
        body = {"target": {"name": node}, "force": force}
        path, params = self._pod(namespace, name, "binding"), dry(dry_run=dry_run)
        request = posting_once(path, body, params, idempotency_key)
        return cast("types.Pod", self._asked(request))

    def confirm_binding(self, pod: Manifest, node: str) -> types.BindingConfirmed:
        """Check whether a pod, as read, may start on its node now (ConflictError: it may not)."""
        metadata = pod["metadata"]
        body = {
            "uid": metadata["uid"],
            "revision": int(metadata["resourceVersion"]),
            "nodeName": node,
        }
        path = self._pod(metadata["namespace"], metadata["name"], "binding:confirm")
        return cast("types.BindingConfirmed", self._asked(asking(path, body)))

    def evict(
        self,
        name: str,
        *,
        namespace: str = NAMESPACE_DEFAULT,
        dry_run: bool = False,
        idempotency_key: str | None = None,
    ) -> types.Pod:
        """Mark a pod for termination, unless a disruption budget forbids it, and return the pod."""
        path, params = self._pod(namespace, name, "eviction"), dry(dry_run=dry_run)
        request = posting_once(path, {}, params, idempotency_key)
        return cast("types.Pod", self._asked(request))

    def explain(
        self,
        name: str,
        *,
        namespace: str = NAMESPACE_DEFAULT,
        node: str | None = None,
        revision: int | None = None,
    ) -> types.Explanation:
        """Explain why a pod is on its node or waits; with a node, what excludes the pod there.

        With a `revision`, the explanation is of that revision; with that of the pod's binding, of
        the placement itself.
        """
        params = {"node": node, "revision": revision}
        request = reading(self._pod(namespace, name, "explanation"), params)
        return cast("types.Explanation", self._asked(request))

    def repairs(
        self,
        name: str,
        *,
        namespace: str = NAMESPACE_DEFAULT,
        changes_max: int | None = None,
        limit: int | None = None,
    ) -> types.RepairsAnswer:
        """Return the smallest changes that make an unschedulable pod fit, without making them."""
        params = {"changesMax": changes_max, "limit": limit}
        request = reading(self._pod(namespace, name, "repairs"), params)
        return cast("types.RepairsAnswer", self._asked(request))

    def capacity(
        self,
        template: Manifest,
        *,
        limit: int | None = None,
        topology_key: str | None = None,
        explain: str | None = None,
    ) -> types.CapacityAnswer:
        """Return how many more pods of a template fit now, and what limits them."""
        body = {
            "template": template,
            "limit": limit,
            "topologyKey": topology_key,
            "explain": explain,
        }
        given = {name: value for name, value in body.items() if value is not None}
        return cast("types.CapacityAnswer", self._asked(asking(self.path("capacity"), given)))

    def violations(self) -> types.ViolationsAnswer:
        """List the placed pods that currently break a required rule."""
        return cast("types.ViolationsAnswer", self._asked(reading(self.path("violations"))))

    def topology(self, key: str) -> types.TopologyAnswer:
        """Return the domains of a node label, with their nodes, pods, and free resources."""
        request = reading(self.path("topology"), {"key": key})
        return cast("types.TopologyAnswer", self._asked(request))

    def plan(self, request: Mapping[str, Any]) -> types.PlanAnswer:
        """Plan changes to the cluster without making them (`types.PlanRequest`)."""
        return cast("types.PlanAnswer", self._asked(asking(self.path("plans"), request)))

    def commit_plan(
        self, request: Mapping[str, Any], *, idempotency_key: str | None = None
    ) -> types.PlanAnswer:
        """Make a plan and carry it out in one commit (`types.PlanCommit`).

        With the `steps` of an earlier plan, the plan is carried out only if unchanged.
        """
        posting = posting_once(self.path("plan-commits"), request, None, idempotency_key)
        return cast("types.PlanAnswer", self._asked(posting))

    def cordon(self, node: str, *, dry_run: bool = False) -> types.Node:
        """Cordon a node, so that it accepts no new pods, and return it."""
        return cast("types.Node", self._posted({}, "nodes", node, "cordon", dry_run=dry_run))

    def uncordon(self, node: str, *, dry_run: bool = False) -> types.Node:
        """Uncordon a node, so that it accepts new pods again, and return it."""
        return cast("types.Node", self._posted({}, "nodes", node, "uncordon", dry_run=dry_run))

    def drain(
        self,
        node: str,
        *,
        when_unschedulable: Literal["Wait", "Evict"] = "Wait",
        dry_run: bool = False,
    ) -> types.Plan:
        """Drain a node of all pods except daemons; return the stored plan.

        A pod that fits on no other node stays and waits, or is evicted anyway with `Evict`.
        """
        options = {"whenUnschedulable": when_unschedulable}
        return cast("types.Plan", self._posted(options, "nodes", node, "drain", dry_run=dry_run))

    def pause_plan(self, name: str, *, dry_run: bool = False) -> types.Plan:
        """Pause a stored plan until it is resumed, and return it."""
        return cast("types.Plan", self._posted({}, "plans", name, "pause", dry_run=dry_run))

    def resume_plan(self, name: str, *, dry_run: bool = False) -> types.Plan:
        """Resume a paused plan, and return it."""
        return cast("types.Plan", self._posted({}, "plans", name, "resume", dry_run=dry_run))

    def cancel_plan(self, name: str, *, dry_run: bool = False) -> types.Plan:
        """Cancel a stored plan, without undoing its changes, and return it."""
        return cast("types.Plan", self._posted({}, "plans", name, "cancel", dry_run=dry_run))

    def _posted(self, body: Mapping[str, Any], *path: str, dry_run: bool) -> object:
        """Send a request that takes effect only once, even if sent again."""
        return self._asked(asking(self.path(*path), body, dry(dry_run=dry_run)))

    def report_statuses(
        self,
        reports: Sequence[Mapping[str, Any]],
        *,
        dry_run: bool = False,
        idempotency_key: str | None = None,
    ) -> types.LinesAnswer:
        """Report the status of many pods in one commit (`types.StatusReport`).

        Each report has its own result; a refused report does not stop the others.
        """
        body, params = {"items": reports}, dry(dry_run=dry_run)
        request = posting_once(self.path("pods", "statuses"), body, params, idempotency_key)
        return cast("types.LinesAnswer", self._asked(request))

    def report_nodes(self, names: Iterable[str]) -> types.NodeReportResult:
        """Report that these nodes are alive; the server notices when the reports stop."""
        renewed, unknown = 0, list[str]()
        for batch in batched(list(names), NODES_PER_REPORT):  # As they are now, not later.
            answer = self._asked(putting(self.path("node-leases"), {"nodes": batch}))
            renewed += answer["renewed"]
            unknown += answer["unknown"]
        return {"renewed": renewed, "unknown": unknown}

    def node_lease(self, name: str) -> types.Lease:
        """Return a node's lease, with the time of its last report."""
        return cast("types.Lease", self._asked(reading(self.path("nodes", name, "lease"))))

    def _pod(self, namespace: str, name: str, part: str) -> str:
        return self.path(*path_parts(KINDS["Pod"], namespace, name), part)
