"""Applying many objects at once."""

from collections import Counter

from msgspec import UNSET, UnsetType

from service.model.errors import Denied, FieldError, Forbidden, InvalidManifest
from service.model.field_warnings import FieldWarning, FieldWarnings, WarningList
from service.model.manifest import Applicable, PriorityClassManifest
from service.scheduler.decide.context import Decision, DecisionContext
from service.scheduler.decide.passed_over import warnings_of_written
from service.scheduler.decide.stored_objects import Written, remove, upsert
from service.scheduler.decide.writing.config import set_priority_class
from service.scheduler.protocol.answers import ApplyAnswer, LineOutcome, LineResult, LinesAnswer
from service.scheduler.protocol.callers import Caller
from service.scheduler.protocol.intents import ApplyLine, ApplyLines, ApplyObjects

_STEP_OBJECTS = 50
"""How many objects are written in one step, before other tasks may run."""


def apply_objects(context: DecisionContext, intent: ApplyObjects) -> Decision[ApplyAnswer]:
    """Create or change all objects of a `List`, or none of them.

    Raises:
        InvalidManifest: an item is not valid, which the error names, or there are too many items.
        Denied: admission refuses one of the items.
        Forbidden: the caller may not write one of the items.
    """
    _refuse_too_many(len(intent.manifests), context.limits.apply_objects_max)
    newest = context.replica.revision if intent.prune_before is None else intent.prune_before
    effects: Counter[str] = Counter()
    replaced = 0
    for index, manifest in enumerate(intent.manifests):
        written = _item(context, index, manifest, intent.caller)
        effects[written.effect] += 1
        context.warn(warnings_of_written(context, manifest), f"items[{index}]")
        replaced += written.replaced
        if index % _STEP_OBJECTS == _STEP_OBJECTS - 1:
            yield
    deleted = _prune(context, intent, newest)
    return ApplyAnswer(
        revision=context.replica.revision,
        created=effects["Created"],
        changed=effects["Changed"],
        unchanged=effects["Unchanged"],
        deleted=deleted + replaced,
        warnings=context.told(),
    )


def apply_lines(context: DecisionContext, intent: ApplyLines) -> Decision[LinesAnswer]:
    """Create or change the object of each line; an error in one line stops no other."""
    results = []
    for index, line in enumerate(intent.lines):
        results.append(_line(context, line, intent.caller))
        if index % _STEP_OBJECTS == _STEP_OBJECTS - 1:
            yield
    return LinesAnswer(revision=context.replica.revision, results=results)


def _refuse_too_many(count: int, count_max: int) -> None:
    if count > count_max:
        message = f"has {count} objects, at most {count_max} are taken in one commit"
        raise InvalidManifest([FieldError("items", message)])


def _write(context: DecisionContext, sent: Applicable, caller: Caller) -> Written:
    if isinstance(sent, PriorityClassManifest):
        return set_priority_class(context, sent)
    return upsert(context, sent, caller, replaces_uid=True)


def _item(context: DecisionContext, index: int, manifest: Applicable, caller: Caller) -> Written:
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
    """Delete the objects of some kinds that the `List` lacks, unless the client cannot know them.

    The client knows the cluster as it was at the revision `newest`.
    """
    kept = {(each.kind, each.namespace, each.name) for each in intent.manifests}
    deleted = 0
    for kind in sorted(intent.prune):
        for namespace, name in sorted(context.replica.keys(kind)):
            stored = context.replica.get(kind, namespace, name)
            if stored and stored.revision <= newest and (kind, namespace, name) not in kept:
                deleted += remove(context, stored, intent.caller)
    return deleted


def _line(context: DecisionContext, line: ApplyLine, caller: Caller) -> LineResult:
    sent = line.object
    if isinstance(sent, InvalidManifest):
        return _refused(line, "Invalid", sent.errors)
    if isinstance(sent, Forbidden):
        return _refused(line, "Forbidden", _reason(sent))
    result, revision, errors = _written(context, sent, caller)
    return LineResult(
        line=line.line,
        kind=sent.kind,
        namespace=sent.namespace or None,
        name=sent.name,
        result=result,
        revision=revision,
        errors=errors,
        warnings=UNSET if errors else _told(warnings_of_written(context, sent)),
    )


def _refused(line: ApplyLine, result: LineOutcome, errors: list[FieldError]) -> LineResult:
    return LineResult(
        line=line.line,
        kind=line.kind,
        namespace=line.namespace,
        name=line.name,
        result=result,
        revision=None,
        errors=errors,
    )


def _told(found: FieldWarnings) -> list[FieldWarning] | UnsetType:
    warnings = WarningList()
    warnings.add(found)
    return warnings.told()


def _reason(forbidden: Forbidden) -> list[FieldError]:
    return [FieldError("", forbidden.detail)]


def _written(
    context: DecisionContext, sent: Applicable, caller: Caller
) -> tuple[LineOutcome, int | None, list[FieldError]]:
    mark = context.replica.mark()
    try:
        written = _write(context, sent, caller)
    except InvalidManifest as error:
        context.replica.undo(mark)
        return "Invalid", None, error.errors
    except Denied as denied:
        context.replica.undo(mark)
        return "Denied", None, [FieldError("", f"{denied.reason}: {denied.detail}")]
    except Forbidden as forbidden:
        context.replica.undo(mark)
        return "Forbidden", None, _reason(forbidden)
    return written.effect, written.stored.revision, []
