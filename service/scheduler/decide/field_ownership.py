"""Who manages which fields of an object, recorded from its first server-side apply on."""

from typing import TypeGuard, cast

import msgspec

from service.model.errors import FieldError, InvalidManifest
from service.model.managed_fields import Json, Manager, apply, update
from service.model.manifest import AnyManifest, ObjectManifest, parse_as
from service.scheduler.decide.context import DecisionContext
from service.scheduler.protocol.intents import ApplyPatch
from service.scheduler.replica.kinds import StoredManifest


def decoded(manifest: StoredManifest | AnyManifest) -> Json:
    """Return an object as it is rendered, decoded."""
    return cast("Json", msgspec.json.decode(manifest.render()))


def is_managed(manifest: StoredManifest) -> TypeGuard[AnyManifest]:
    """Return whether an object was ever applied; the status of others is none of that."""
    return isinstance(manifest, ObjectManifest) and bool(manifest.managers)


def recorded(
    context: DecisionContext, updated: AnyManifest, old: AnyManifest, manager: str
) -> AnyManifest:
    """Return an update of an object that is managed, with whoever changed fields as their manager."""
    managers = old.managers
    if not managers or updated.managers:
        return updated
    changed = update(
        decoded(old),
        decoded(updated),
        managers,
        manager=manager,
        now=context.now,
        at_most=context.limits.field_managers_max,
    )
    return updated.managed_by(changed)


def applied(context: DecisionContext, intent: ApplyPatch, old: AnyManifest | None) -> AnyManifest:
    """Return an object as it is once a manager's wishes are merged into it.

    Raises:
        FieldManagerConflict: others manage fields that would change, and it is not forced.
        InvalidManifest: the result is not valid, or too many apply the object.
    """
    made = apply(
        None if old is None else decoded(old),
        () if old is None else old.managers,
        intent.applied,
        manager=intent.manager,
        now=context.now,
        force=intent.force,
    )
    _refuse_too_many(context, made.managers)
    parsed = parse_as(intent.kind, made.fields, context.templates, intent.namespace, intent.name)
    return parsed.managed_by(made.managers)


def _refuse_too_many(context: DecisionContext, managers: tuple[Manager, ...]) -> None:
    """Check the limits of an object's managers, and of the fields that they have."""
    most, paths = context.limits.field_managers_max, context.limits.managed_fields_max
    if len(managers) > most:
        message = f"an object has at most {most} managers"
        raise InvalidManifest([FieldError("metadata.managedFields", message)])
    if sum(len(each.fields) for each in managers) > paths:
        message = f"the managers of an object have at most {paths} fields together"
        raise InvalidManifest([FieldError("metadata.managedFields", message)])
