"""Admission of plans written by clients, and the parts of a plan that clients cannot write."""

from typing import cast

import msgspec

from service.model.core.access import Verb
from service.model.core.declared_manifest import edited, part_of
from service.model.core.errors import Conflict, FieldError, Forbidden, InvalidManifest
from service.model.core.kind import DeclaredObject
from service.model.core.metadata import Json
from service.model.plans.plan import PLAN, KeptGoal, PlanBody, PlanProgress, PlanState
from service.model.plans.rollout_template import parse_template
from service.model.pods.template_cache import TemplateCache
from service.model.registry.manifests import AnyManifest, DeclaredManifest
from service.scheduler.decide.context import DecisionContext
from service.scheduler.protocol.callers import Caller
from service.scheduler.protocol.plans import Replace
from service.scheduler.replica.stored_kinds import StoredManifest

KeptPlan = DeclaredObject[PlanBody]
_COUNTS = {
    "Drain": ("evicted", "leaving", "waiting", "staying"),
    "Replace": ("waves", "placed", "updated", "ready", "evicted", "leaving", "waiting"),
    "Rebalance": ("evicted", "leaving", "moved", "elsewhere", "missing"),
}
"""The counts that the status of a plan always shows, even if they are 0."""
_REPLACING = "its plan places and evicts pods there."


def is_plan(manifest: object) -> bool:
    """Return whether an object is a plan."""
    return isinstance(manifest, DeclaredManifest) and manifest.kind == PLAN.kind


def plan_of(manifest: DeclaredManifest) -> KeptPlan:
    """Return the plan in a manifest, which must be a plan."""
    return cast("KeptPlan", manifest.kept)


def with_progress(sent: AnyManifest, stored: StoredManifest | None, caller: Caller) -> AnyManifest:
    """Return a plan as a caller may write it, keeping the progress of the stored plan.

    A new plan keeps the status that was sent, so that a finished plan can be restored.

    Raises:
        Forbidden: the caller may not do what the plan will: evict pods and change nodes, or place.
    """
    if not isinstance(sent, DeclaredManifest) or not is_plan(sent):
        return sent
    goal = plan_of(sent).body.spec.goal
    if goal.type == "Replace":
        _require_replacing(caller, goal.namespace or "")
    elif goal.type == "Rebalance":
        _require_moving(caller, goal.namespace)
    else:
        require_draining(caller)
    if not isinstance(stored, DeclaredManifest) or stored.uid != (sent.uid or stored.uid):
        return sent
    return with_status(sent, plan_of(stored).body.status)


def with_status(manifest: DeclaredManifest, status: PlanProgress) -> DeclaredManifest:
    """Return a plan with this status, or without one if nothing has happened yet."""
    kind = plan_of(manifest).body.spec.goal.type
    counts = {name: getattr(status, name) for name in _COUNTS[kind]}
    fields_of_status = {"phase": status.phase, **counts, **msgspec.to_builtins(status)}

    def change(fields: Json) -> None:
        fields.pop("status", None)
        if status.started_at:
            fields["status"] = fields_of_status

    return edited(manifest, change)


def with_state(manifest: DeclaredManifest, state: PlanState) -> DeclaredManifest:
    """Return a plan with this state."""

    def change(fields: Json) -> None:
        part_of(fields, "spec")["state"] = state

    return edited(manifest, change)


def require_draining(caller: Caller) -> None:
    """Check that a caller may drain: change nodes, and evict pods of all namespaces.

    Raises:
        Forbidden: the caller may not.
    """
    who, cluster = caller.principal, caller.cluster
    verbs: tuple[Verb, ...] = ("evict", "observe")
    for verb in verbs:
        if not who.may(verb, cluster):
            raise Forbidden(
                f"{who.name} may not {verb} on all of the cluster {cluster}: "
                "a plan cordons nodes and evicts pods of all namespaces."
            )


def _require_replacing(caller: Caller, namespace: str) -> None:
    verbs: tuple[Verb, ...] = ("place", "evict")
    for verb in verbs:
        caller.require(verb, namespace, _REPLACING)


def _require_moving(caller: Caller, namespace: str | None) -> None:
    """Check that a caller may evict and place pods in the plan's namespace, or in all of them."""
    if namespace is not None:
        _require_replacing(caller, namespace)
        return
    who, cluster = caller.principal, caller.cluster
    verbs: tuple[Verb, ...] = ("place", "evict")
    for verb in verbs:
        if not who.may(verb, cluster):
            raise Forbidden(
                f"{who.name} may not {verb} on all of the cluster {cluster}: "
                "a plan without a namespace moves pods of all namespaces."
            )


def refuse_impossible(context: DecisionContext, sent: AnyManifest) -> None:
    """Check a rollout plan beyond its schema: its template, and the number of pods.

    Raises:
        InvalidManifest: the template is wrong, or there are more pods than a plan may have.
        Conflict: another unfinished plan covers the same pods.
    """
    if not isinstance(sent, DeclaredManifest) or not is_plan(sent):
        return
    goal = plan_of(sent).body.spec.goal
    if goal.type != "Replace":
        return
    most = context.limits.plan_pods_max
    if (goal.replicas or 0) > most:
        message = f"is over the limit of {most} pods in one plan"
        raise InvalidManifest([FieldError("spec.goal.replicas", message, goal.replicas)])
    try:
        rollout = replace_of(goal, context.templates)
    except InvalidManifest as error:
        raise error.under("spec.goal") from None
    if is_active(sent):
        _refuse_beside_others(context, sent.name, rollout)


def is_active(manifest: DeclaredManifest) -> bool:
    """Return whether a plan continues, either now or after being resumed."""
    body = plan_of(manifest).body
    return not body.has_ended and body.spec.state != "Cancelled"


def _refuse_beside_others(context: DecisionContext, name: str, rollout: Replace) -> None:
    """Refuse a rollout that would replace another rollout's new pods, or vice versa, endlessly."""
    for stored in context.replica.objects(PLAN.kind):
        other = stored.manifest
        if not isinstance(other, DeclaredManifest) or other.name == name or not is_active(other):
            continue
        running = _rollout_of(other, context.templates)
        if running is not None and _are_at_odds(rollout, running):
            raise Conflict(
                f"The plan {other.name} releases pods that this one is about, and has not ended; "
                "cancel it first."
            )


def _rollout_of(plan: DeclaredManifest, templates: TemplateCache) -> Replace | None:
    """Return the rollout of a plan, or None if the plan has another goal or is unreadable."""
    goal = plan_of(plan).body.spec.goal
    if goal.type != "Replace":
        return None
    try:
        return replace_of(goal, templates)
    except InvalidManifest:  # a limit was lowered, or another version wrote the plan
        return None


def _are_at_odds(one: Replace, other: Replace) -> bool:
    if one.namespace != other.namespace:
        return False
    same = one.template.name == other.template.name
    return same or one.is_about(other.template) or other.is_about(one.template)


def replace_of(goal: KeptGoal, templates: TemplateCache) -> Replace:
    """Return the rollout that a stored plan describes.

    Raises:
        InvalidManifest: the template is wrong.
    """
    namespace, replicas = goal.namespace or "", goal.replicas or 0
    return Replace(
        namespace=namespace,
        selector=goal.selector,
        owner=goal.owner,
        template=parse_template(goal.template, templates, namespace=namespace, replicas=replicas),
        replicas=replicas,
        max_surge=goal.max_surge,
        max_unavailable=goal.max_unavailable,
    )


def has_plan_ended(manifest: object) -> bool:
    """Return whether an object is a finished plan."""
    return (
        isinstance(manifest, DeclaredManifest)
        and is_plan(manifest)
        and plan_of(manifest).body.has_ended
    )
