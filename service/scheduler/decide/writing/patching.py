"""Changes parts of an object by patches and server-side apply."""

import msgspec

from service.model.json.patch import apply_patch
from service.model.registry.manifests import ObjectManifest, parse_as, with_resource_version
from service.scheduler.decide.admission.field_ownership import apply_fields
from service.scheduler.decide.context import DecisionContext
from service.scheduler.decide.object_writes import check_preconditions, not_found, replace_object
from service.scheduler.protocol.answers import ObjectAnswer
from service.scheduler.protocol.intents import ApplyPatch, PatchObject


def patch_object(context: DecisionContext, intent: PatchObject) -> ObjectAnswer:
    """Patch an object as clients see it, including its resourceVersion, and put the result.

    Raises:
        NotFound: the object does not exist.
        InvalidManifest: the patch does not fit the object, or its result is not valid.
        RevisionConflict, PreconditionFailed, Denied, Forbidden: as for a put.
    """
    stored = context.replica.get(intent.kind, intent.namespace, intent.name)
    if stored is None:
        raise not_found(intent.kind, intent.namespace, intent.name)
    check_preconditions(intent.preconditions, stored)
    shown = with_resource_version(stored.manifest.render(), stored.revision)
    patched = apply_patch(intent.patch_type, msgspec.json.decode(shown), intent.patch)
    parsed = parse_as(intent.kind, patched, context.templates, intent.namespace, intent.name)
    return replace_object(
        context, parsed, stored, intent.caller, patched=True, manager=intent.manager
    )


def apply_object(context: DecisionContext, intent: ApplyPatch) -> ObjectAnswer:
    """Merge a manager's fields into an object, or create it.

    Raises:
        FieldManagerConflict: other managers own fields that would change, and `force` is off.
        InvalidManifest: the result is not valid.
        RevisionConflict, PreconditionFailed, Denied, Forbidden: as for a put.
    """
    stored = context.replica.get(intent.kind, intent.namespace, intent.name)
    check_preconditions(intent.preconditions, stored)
    old = None
    if stored is not None:
        assert isinstance(stored.manifest, ObjectManifest)
        old = stored.manifest
    sent = apply_fields(context, intent, old)
    return replace_object(context, sent, stored, intent.caller, patched=old is not None)
