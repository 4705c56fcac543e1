"""Applies many objects in one request."""

from collections import Counter
from collections.abc import Sequence
from functools import partial

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from service.model.core.errors import Denied, FieldError, Forbidden, InvalidManifest
from service.model.registry.manifests import Applicable, PriorityClassManifest
from service.scheduler.decide.admission.generated_names import with_name, with_names
from service.scheduler.decide.admission.ignored_fields import warnings_of_written
from service.scheduler.decide.context import Decision, DecisionContext
from service.scheduler.decide.object_writes import (
    WriteResult,
    delete_stored,
    remove,
    require_stored,
    upsert,
)
from service.scheduler.decide.writing.config import set_priority_class
from service.scheduler.decide.writing.independent_writes import (
    STEP_OBJECTS,
    Warnings,
    WriteOutcome,
    attempt_write,
    refused_outcome,
    result_warnings,
)
from service.scheduler.protocol.answers import ApplyAnswer, GeneratedName, LineResult, LinesAnswer
from service.scheduler.protocol.callers import Caller
from service.scheduler.protocol.intents import ApplyLine, ApplyLines, ApplyObjects, Deletion


def apply_objects(context: DecisionContext, intent: ApplyObjects) -> Decision[ApplyAnswer]:
    """Create or change all objects of a `List`, or none of them.

    Raises:
        InvalidManifest: an item is invalid (the error has its path), or there are too many items.
        Denied: admission refuses one of the items.
        Forbidden: the caller may not write one of the items.
    """
    _refuse_too_many(len(intent.manifests), context.limits.apply_objects_max)
    sent = intent.manifests
    if intent.undrawn:
        intent = replace(intent, manifests=with_names(context, sent))
    newest = context.replica.revision if intent.prune_before is None else intent.prune_before
    effects: Counter[str] = Counter()
    replaced = 0
    for index, manifest in enumerate(intent.manifests):
        written = _item(context, index, manifest, intent.caller)
        effects[written.effect] += 1
        context.warn(warnings_of_written(context, manifest), f"items[{index}]")
        replaced += written.replaced
        if index % STEP_OBJECTS == STEP_OBJECTS - 1:
            yield
    deleted = _prune(context, intent, newest)
    return ApplyAnswer(
        revision=context.replica.revision,
        created=effects["Created"],
        changed=effects["Changed"],
        unchanged=effects["Unchanged"],
        deleted=deleted + replaced,
        generated=_generated(sent, intent.manifests) if intent.undrawn else UNSET,
        warnings=context.answer_warnings(),
    )


def _generated(sent: Sequence[Applicable], named: Sequence[Applicable]) -> list[GeneratedName]:
    return [
        GeneratedName(item=index, kind=now.kind, namespace=now.namespace, name=now.name)
        for index, (before, now) in enumerate(zip(sent, named, strict=True))
        if before is not now
    ]


def apply_lines(context: DecisionContext, intent: ApplyLines) -> Decision[LinesAnswer]:
    """Write or delete each line's object; an error in one line does not stop the others."""
    results = []
    for index, line in enumerate(intent.lines):
        results.append(_line(context, line, intent.caller))
        if index % STEP_OBJECTS == STEP_OBJECTS - 1:
            yield
    return LinesAnswer(revision=context.replica.revision, results=results)


def _refuse_too_many(count: int, count_max: int) -> None:
    if count > count_max:
        message = f"has {count} objects, at most {count_max} are taken in one commit"
        raise InvalidManifest([FieldError("items", message)])


def _write(context: DecisionContext, sent: Applicable, caller: Caller) -> WriteResult:
    if isinstance(sent, PriorityClassManifest):
        return set_priority_class(context, sent)
    return upsert(context, sent, caller, replaces_uid=True)


def _item(
    context: DecisionContext, index: int, manifest: Applicable, caller: Caller
) -> WriteResult:
    try:
        return _write(context, manifest, caller)
    except Forbidden as forbidden:
        raise forbidden.under(f"items[{index}]") from None
    except InvalidManifest as error:
        raise error.under(f"items[{index}]") from None
    except Denied as denied:
        separator = "." if denied.detail.startswith("spec.") else ": "
        raise Denied(denied.reason, f"items[{index}]{separator}{denied.detail}") from None


def _prune(context: DecisionContext, intent: ApplyObjects, newest: int) -> int:
    """Delete objects of some kinds missing from the `List`, unless they are new to the client.

    The client has seen the cluster up to the revision `newest`.
    """
    listed = {(manifest.kind, manifest.namespace, manifest.name) for manifest in intent.manifests}
    deleted = 0
    for kind in sorted(intent.prune):
        for namespace, name in sorted(context.replica.keys(kind)):
            stored = context.replica.get(kind, namespace, name)
            if stored and stored.revision <= newest and (kind, namespace, name) not in listed:
                deleted += remove(context, stored, intent.caller)
    return deleted


def _line(context: DecisionContext, line: ApplyLine, caller: Caller) -> LineResult:
    sent = line.object
    warnings: Warnings = UNSET
    generated: bool | UnsetType = UNSET
    if isinstance(sent, InvalidManifest | Forbidden):
        named: ApplyLine | Applicable | Deletion = line
        done = refused_outcome(sent)
    elif isinstance(sent, Deletion):
        named, done = sent, attempt_write(context, partial(_deleted, context, sent, caller))
    else:
        given = sent
        sent = with_name(context, given)
        generated = UNSET if sent is given else True
        named, done = sent, attempt_write(context, partial(_applied, context, sent, caller))
        warnings = UNSET if done.errors else result_warnings(warnings_of_written(context, sent))
    return LineResult(
        line=line.line,
        kind=named.kind,
        namespace=named.namespace or None,
        name=named.name,
        result=done.result,
        revision=done.revision,
        errors=done.errors,
        warnings=warnings,
        generated=generated,
    )


def _applied(context: DecisionContext, sent: Applicable, caller: Caller) -> WriteOutcome:
    written = _write(context, sent, caller)
    return WriteOutcome(written.effect, written.stored.revision)


def _deleted(context: DecisionContext, sent: Deletion, caller: Caller) -> WriteOutcome:
    stored = require_stored(context, sent.kind, sent.namespace, sent.name, sent.preconditions)
    delete_stored(context, stored, caller)
    return WriteOutcome("Deleted", context.replica.revision)
