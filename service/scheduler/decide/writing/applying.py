"""Applying many objects at once."""

from collections import Counter

from service.model.errors import Denied, FieldError, Forbidden, InvalidManifest
from service.model.manifest import Applicable, PriorityClassManifest
from service.scheduler.decide.context import Decision, Desk
from service.scheduler.decide.stored_objects import Written, remove, upsert
from service.scheduler.decide.writing.config import set_priority_class
from service.scheduler.protocol.answers import ApplyAnswer, LineOutcome, LineResult, LinesAnswer
from service.scheduler.protocol.callers import Caller
from service.scheduler.protocol.intents import ApplyLine, ApplyLines, ApplyObjects

_STEP_OBJECTS = 50
"""Objects written between two looks at the clock."""


def apply_objects(desk: Desk, intent: ApplyObjects) -> Decision[ApplyAnswer]:
    """Bring all objects of a `List` to what was sent, or none.

    Raises:
        InvalidManifest: naming `items[i].…`, or too many items.
        Denied: admission refuses one of them.
        Forbidden: the caller may not say that of one of them.
    """
    _refuse_too_many(len(intent.manifests), desk.limits.apply_objects_max)
    newest = desk.replica.revision if intent.prune_before is None else intent.prune_before
    effects: Counter[str] = Counter()
    replaced = 0
    for index, manifest in enumerate(intent.manifests):
        written = _item(desk, index, manifest, intent.caller)
        effects[written.effect] += 1
        replaced += written.replaced
        if index % _STEP_OBJECTS == _STEP_OBJECTS - 1:
            yield
    deleted = _prune(desk, intent, newest)
    return ApplyAnswer(
        revision=desk.replica.revision,
        created=effects["Created"],
        changed=effects["Changed"],
        unchanged=effects["Unchanged"],
        deleted=deleted + replaced,
    )


def apply_lines(desk: Desk, intent: ApplyLines) -> Decision[LinesAnswer]:
    """Bring each line's object to what was sent; what is wrong with one stops no other."""
    results = []
    for index, line in enumerate(intent.lines):
        results.append(_line(desk, line, intent.caller))
        if index % _STEP_OBJECTS == _STEP_OBJECTS - 1:
            yield
    return LinesAnswer(revision=desk.replica.revision, results=results)


def _refuse_too_many(count: int, count_max: int) -> None:
    if count > count_max:
        message = f"has {count} objects, at most {count_max} are taken in one commit"
        raise InvalidManifest([FieldError("items", message)])


def _write(desk: Desk, sent: Applicable, caller: Caller) -> Written:
    if isinstance(sent, PriorityClassManifest):
        return set_priority_class(desk, sent)
    return upsert(desk, sent, caller, replaces_uid=True)


def _item(desk: Desk, index: int, manifest: Applicable, caller: Caller) -> Written:
    try:
        return _write(desk, manifest, caller)
    except Forbidden as forbidden:
        raise forbidden.under(f"items[{index}]") from None
    except InvalidManifest as error:
        raise error.under(f"items[{index}]") from None
    except Denied as denied:
        separator = "." if denied.detail.startswith("spec.") else ": "
        raise Denied(denied.reason, f"items[{index}]{separator}{denied.detail}") from None


def _prune(desk: Desk, intent: ApplyObjects, newest: int) -> int:
    """Remove what the `List` lacks of some kinds, unless it is newer than the client knew."""
    kept = {(each.kind, each.namespace, each.name) for each in intent.manifests}
    deleted = 0
    for kind in sorted(intent.prune):
        for namespace, name in sorted(desk.replica.keys(kind)):
            stored = desk.replica.get(kind, namespace, name)
            if stored and stored.revision <= newest and (kind, namespace, name) not in kept:
                deleted += remove(desk, stored, intent.caller)
    return deleted


def _line(desk: Desk, line: ApplyLine, caller: Caller) -> LineResult:
    sent = line.object
    if isinstance(sent, InvalidManifest):
        return _refused(line, "Invalid", sent.errors)
    if isinstance(sent, Forbidden):
        return _refused(line, "Forbidden", _told(sent))
    result, revision, errors = _written(desk, sent, caller)
    return LineResult(
        line=line.line,
        kind=sent.kind,
        namespace=sent.namespace or None,
        name=sent.name,
        result=result,
        revision=revision,
        errors=errors,
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


def _told(forbidden: Forbidden) -> list[FieldError]:
    return [FieldError("", forbidden.detail)]


def _written(
    desk: Desk, sent: Applicable, caller: Caller
) -> tuple[LineOutcome, int | None, list[FieldError]]:
    mark = desk.replica.mark()
    try:
        written = _write(desk, sent, caller)
    except InvalidManifest as error:
        desk.replica.undo(mark)
        return "Invalid", None, error.errors
    except Denied as denied:
        desk.replica.undo(mark)
        return "Denied", None, [FieldError("", f"{denied.reason}: {denied.detail}")]
    except Forbidden as forbidden:
        desk.replica.undo(mark)
        return "Forbidden", None, _told(forbidden)
    return written.effect, written.stored.revision, []
