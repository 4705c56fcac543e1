"""What is asked of plans that clients write, and what of a plan clients cannot write."""

from typing import cast

import msgspec

from service.model.errors import Forbidden
from service.model.kept_manifest import edited, part_of
from service.model.kept_object import KeptObject
from service.model.manifest import AnyManifest, KeptManifest
from service.model.metadata import Json
from service.model.plans import PLAN, PlanBody, PlanProgress, PlanState
from service.model.principals import Verb
from service.scheduler.protocol.callers import Caller
from service.scheduler.replica.kinds import StoredManifest

KeptPlan = KeptObject[PlanBody]


def is_plan(manifest: object) -> bool:
    """Whether an object is a plan."""
    return isinstance(manifest, KeptManifest) and manifest.kind == PLAN.kind


def plan_of(manifest: KeptManifest) -> KeptPlan:
    """Return the plan of a manifest, which has to be one."""
    return cast("KeptPlan", manifest.kept)


def with_progress(sent: AnyManifest, stored: StoredManifest | None, caller: Caller) -> AnyManifest:
    """Return a plan as a caller may write it: with the progress that the stored one has made.

    A new plan keeps the status that it was sent with, so that one that has ended can be restored.

    Raises:
        Forbidden: the caller may not evict all pods and change nodes, as the plan will.
    """
    if not isinstance(sent, KeptManifest) or not is_plan(sent):
        return sent
    require_draining(caller)
    if not isinstance(stored, KeptManifest) or stored.uid != (sent.uid or stored.uid):
        return sent
    return with_status(sent, plan_of(stored).body.status)


def with_status(manifest: KeptManifest, status: PlanProgress) -> KeptManifest:
    """Return a plan with this status; without any if nothing has happened yet."""
    counts = {name: getattr(status, name) for name in ("evicted", "leaving", "waiting", "staying")}
    told = {"phase": status.phase, **counts, **msgspec.to_builtins(status)}

    def change(fields: Json) -> None:
        fields.pop("status", None)
        if status.started_at:
            fields["status"] = told

    return edited(manifest, change)


def with_state(manifest: KeptManifest, state: PlanState) -> KeptManifest:
    """Return a plan that the server goes on with, or not."""

    def change(fields: Json) -> None:
        part_of(fields, "spec")["state"] = state

    return edited(manifest, change)


def require_draining(caller: Caller) -> None:
    """Check that a caller may do what draining does: change nodes, and evict the pods of everybody.

    Raises:
        Forbidden: it may not.
    """
    who, cluster = caller.principal, caller.cluster
    verbs: tuple[Verb, ...] = ("evict", "observe")
    for verb in verbs:
        if not who.may(verb, cluster):
            raise Forbidden(
                f"{who.name} may not {verb} on all of the cluster {cluster}: "
                "a plan cordons nodes and evicts pods of all namespaces."
            )


def has_plan_ended(manifest: object) -> bool:
    """Whether an object is a plan for which nothing is to be done any more."""
    return (
        isinstance(manifest, KeptManifest)
        and is_plan(manifest)
        and plan_of(manifest).body.has_ended
    )
