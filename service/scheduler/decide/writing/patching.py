"""Changing parts of an object."""

import msgspec

from service.model.manifest import parse_as, with_resource_version
from service.model.patches import apply_patch
from service.scheduler.decide.context import DecisionContext
from service.scheduler.decide.object_writes import check_preconditions, missing, replace_object
from service.scheduler.protocol.answers import ObjectAnswer
from service.scheduler.protocol.intents import PatchObject


def patch_object(context: DecisionContext, intent: PatchObject) -> ObjectAnswer:
    """Patch an object as clients see it, its resourceVersion included, and put the result.

    Raises:
        NotFound: there is no such object.
        InvalidManifest: the patch does not fit the object, or its result is not valid.
        RevisionConflict, PreconditionFailed, Denied, Forbidden: as for a put.
    """
    stored = context.replica.get(intent.kind, intent.namespace, intent.name)
    if stored is None:
        raise missing(intent.kind, intent.namespace, intent.name)
    check_preconditions(intent.preconditions, stored)
    shown = with_resource_version(stored.manifest.render(), stored.revision)
    patched = apply_patch(intent.patch_type, msgspec.json.decode(shown), intent.patch)
    parsed = parse_as(intent.kind, patched, context.templates, intent.namespace, intent.name)
    return replace_object(context, parsed, stored, intent.caller, patched=True)
