"""Changing parts of an object."""

import msgspec

from service.model.manifest import (
    AnyManifest,
    parse_namespace,
    parse_node,
    parse_pod,
    parse_pod_group,
    parse_quota,
    with_resource_version,
)
from service.model.patches import apply_patch
from service.scheduler.decide.context import DecisionContext
from service.scheduler.decide.stored_objects import check_preconditions, missing, replace_object
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
    return replace_object(
        context, _parse(context, intent, patched), stored, intent.caller, patched=True
    )


def _parse(
    context: DecisionContext, intent: PatchObject, patched: dict[str, object]
) -> AnyManifest:
    match intent.kind:
        case "Pod":
            return parse_pod(
                patched, context.templates, name=intent.name, namespace=intent.namespace
            )
        case "Node":
            return parse_node(patched, name=intent.name)
        case "Namespace":
            return parse_namespace(patched, name=intent.name)
        case "ResourceQuota":
            return parse_quota(patched, name=intent.name, namespace=intent.namespace)
        case "PodGroup":
            return parse_pod_group(patched, name=intent.name, namespace=intent.namespace)
        case _:
            raise missing(intent.kind, intent.namespace, intent.name)
