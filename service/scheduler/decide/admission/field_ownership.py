"""Tracks which manager owns which fields of an object, starting at its first server-side apply."""

from typing import TypeGuard, cast

import msgspec

from service.model.core.errors import FieldError, InvalidManifest
from service.model.core.managers import Manager
from service.model.json.managed_fields import Json, apply, update
from service.model.registry.kinds import DECLARED_KINDS
from service.model.registry.manifests import AnyManifest, ObjectManifest, parse_as
from service.scheduler.decide.context import DecisionContext
from service.scheduler.protocol.intents import ApplyPatch
from service.scheduler.replica.stored_kinds import StoredManifest


def decode_manifest(manifest: StoredManifest | AnyManifest) -> Json:
    """Return an object's rendered manifest as decoded JSON."""
    return cast("Json", msgspec.json.decode(manifest.render()))


def is_managed(manifest: StoredManifest) -> TypeGuard[AnyManifest]:
    """Return whether an object was ever applied; only applied objects have managed fields."""
    return isinstance(manifest, ObjectManifest) and bool(manifest.managers)


def record_ownership(
    context: DecisionContext, updated: AnyManifest, old: AnyManifest, manager: str
) -> AnyManifest:
    """Return an update of a managed object, with the writer recorded as manager of changed fields.

    Raises:
        InvalidManifest: the managers would have too many fields.
    """
    managers = old.managers
    if not managers or updated.managers:
        return updated
    changed = update(
        decode_manifest(old),
        decode_manifest(updated),
        managers,
        manager=manager,
        now=context.now,
        at_most=context.limits.field_managers_max,
    )
    _refuse_too_many_fields(context, managers, changed)
    return updated.managed_by(changed)


def apply_fields(
    context: DecisionContext, intent: ApplyPatch, old: AnyManifest | None
) -> AnyManifest:
    """Return an object with a manager's applied fields merged into it.

    Raises:
        FieldManagerConflict: other managers own fields that would change, and `force` is off.
        InvalidManifest: the result is not valid, or too many managers apply the object.
    """
    managers = () if old is None else old.managers
    made = apply(
        None if old is None else decode_manifest(old),
        managers,
        _in_stored_version(intent),
        manager=intent.manager,
        now=context.now,
        force=intent.force,
    )
    _refuse_too_many_managers(context, managers, made.managers)
    _refuse_too_many_fields(context, managers, made.managers)
    parsed = parse_as(intent.kind, made.fields, context.templates, intent.namespace, intent.name)
    return parsed.managed_by(made.managers)


def _in_stored_version(intent: ApplyPatch) -> Json:
    declared = DECLARED_KINDS.get(intent.kind)
    applied = cast("Json", intent.applied)
    return applied if declared is None else dict(declared.converted(applied))


def _refuse_too_many_managers(
    context: DecisionContext, before: tuple[Manager, ...], after: tuple[Manager, ...]
) -> None:
    """Refuse one more applying manager; managers of plain updates are merged instead (`update`)."""
    most = context.limits.field_managers_max
    if len(after) > max(most, len(before)):
        message = f"an object has at most {most} managers"
        raise InvalidManifest([FieldError("metadata.managedFields", message)])


def _refuse_too_many_fields(
    context: DecisionContext, before: tuple[Manager, ...], after: tuple[Manager, ...]
) -> None:
    """Refuse more owned fields than allowed; an object over the limit may only lose fields."""
    most = context.limits.managed_fields_max
    if _fields_of(after) > max(most, _fields_of(before)):
        message = f"the managers of an object have at most {most} fields together"
        raise InvalidManifest([FieldError("metadata.managedFields", message)])


def _fields_of(managers: tuple[Manager, ...]) -> int:
    return sum(len(manager.fields) for manager in managers)
