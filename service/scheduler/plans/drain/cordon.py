"""Handles requests to cordon, uncordon, and drain nodes, and to pause, resume, and cancel plans."""

from hashlib import sha256
from typing import Any

from msgspec.structs import replace

from service.model.core.errors import Conflict
from service.model.plans.plan import PLAN
from service.model.registry.manifests import DeclaredManifest, NodeManifest, parse_declared
from service.scheduler.decide.admission.plan_admission import (
    is_active,
    is_plan,
    plan_of,
    with_state,
)
from service.scheduler.decide.context import DecisionContext
from service.scheduler.decide.object_writes import answer_with, not_found
from service.scheduler.protocol.answers import ObjectAnswer
from service.scheduler.protocol.intents import CordonNode, DrainNode, SetPlanState
from service.scheduler.replica.replica import Replica, Stored

_NAME_MAX = 253
_HASH_DIGITS = 40


def cordon_node(context: DecisionContext, intent: CordonNode) -> ObjectAnswer:
    """Cordon or uncordon a node; do nothing if it already is.

    Raises:
        NotFound: the node does not exist.
        Conflict: the node would accept new pods while being drained.
    """
    stored, manifest = _stored_node(context, intent.name)
    if not intent.unschedulable:
        _refuse_while_drained(context.replica, intent.name)
    if manifest.node.unschedulable == intent.unschedulable:
        return answer_with(context, stored)
    return _put(context, manifest.with_cordon(unschedulable=intent.unschedulable))


def drain_node(context: DecisionContext, intent: DrainNode) -> ObjectAnswer:
    """Cordon a node and store a plan to drain it, keeping an unfinished plan.

    Raises:
        NotFound: the node does not exist.
    """
    _, node = _stored_node(context, intent.name)
    name = plan_name(intent.name)
    before = context.replica.get(PLAN.kind, "", name)
    if before is not None:
        assert isinstance(before.manifest, DeclaredManifest)
        if not plan_of(before.manifest).body.has_ended:
            return answer_with(context, before)
        context.replica.delete(PLAN.kind, "", name)
    if not node.node.unschedulable:
        context.replica.put(node.with_cordon(unschedulable=True))
    sent = parse_declared(PLAN.kind, _drain(intent), name=name)
    made = sent.with_identity(context.ids.uid(), context.now)
    return replace(_put(context, made), created=True)


def plan_name(node: str) -> str:
    """Return the name of the plan that drains a node."""
    name = f"drain-{node}"
    if len(name) <= _NAME_MAX:
        return name
    return f"drain-{sha256(node.encode()).hexdigest()[:_HASH_DIGITS]}"


def set_plan_state(context: DecisionContext, intent: SetPlanState) -> ObjectAnswer:
    """Pause, resume, or cancel a plan; do nothing if it already is.

    Raises:
        NotFound: the plan does not exist.
        Conflict: the plan has ended.
    """
    stored = context.replica.get(PLAN.kind, "", intent.name)
    if stored is None:
        raise not_found(PLAN.kind, "", intent.name)
    assert isinstance(stored.manifest, DeclaredManifest)
    body = plan_of(stored.manifest).body
    if body.spec.state == intent.state:
        return answer_with(context, stored)
    if body.has_ended or body.spec.state == "Cancelled":
        raise Conflict(f"The plan {intent.name} has ended.")
    return _put(context, with_state(stored.manifest, intent.state))


def plans_in(replica: Replica) -> list[DeclaredManifest]:
    """Return all stored plans, by name."""
    manifests = [stored.manifest for stored in replica.objects(PLAN.kind)]
    plans = [
        manifest
        for manifest in manifests
        if isinstance(manifest, DeclaredManifest) and is_plan(manifest)
    ]
    return sorted(plans, key=lambda plan: plan.name)


def _refuse_while_drained(replica: Replica, node: str) -> None:
    for plan in plans_in(replica):
        if is_active(plan) and node in plan_of(plan).body.spec.goal.node_names:
            raise Conflict(f"The plan {plan.name} drains the node; cancel it first.")


def _drain(intent: DrainNode) -> dict[str, Any]:
    goal = {"type": "Drain", "nodes": {"names": [intent.name]}}
    spec: dict[str, Any] = {"goal": goal}
    if intent.when_unschedulable != "Wait":
        spec["whenUnschedulable"] = intent.when_unschedulable
    return {"apiVersion": PLAN.api_version, "kind": PLAN.kind, "spec": spec}


def _stored_node(context: DecisionContext, name: str) -> tuple[Stored, NodeManifest]:
    stored = context.replica.get(NodeManifest.kind, "", name)
    if stored is None:
        raise not_found(NodeManifest.kind, "", name)
    assert isinstance(stored.manifest, NodeManifest)
    return stored, stored.manifest


def _put(context: DecisionContext, manifest: NodeManifest | DeclaredManifest) -> ObjectAnswer:
    entry = context.replica.put(manifest)
    assert entry.after is not None
    return answer_with(context, entry.after)
