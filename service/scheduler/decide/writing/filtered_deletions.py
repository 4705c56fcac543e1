"""Deletes objects of a kind that match a filter, ordered by name."""

from functools import partial
from heapq import nsmallest

from service.model.core.errors import Forbidden
from service.model.core.primitives import ObjectName
from service.scheduler.decide.context import Decision, DecisionContext, Steps
from service.scheduler.decide.object_writes import delete_stored
from service.scheduler.decide.writing.independent_writes import (
    STEP_OBJECTS,
    WriteOutcome,
    attempt_write,
)
from service.scheduler.protocol.answers import DeletionOutcome, DeletionResult, DeletionsAnswer
from service.scheduler.protocol.intents import DeleteObjects
from service.scheduler.replica.replica import Stored

_STEP_LOOKS = 2_000
"""How many objects are examined in one step before other tasks may run."""


def delete_objects(context: DecisionContext, intent: DeleteObjects) -> Decision[DeletionsAnswer]:
    """Delete the first objects that match the filter; undeletable ones do not stop the others."""
    matching = yield from _matching(context, intent)
    chosen = nsmallest(intent.count, matching, key=_name)
    results = []
    for index, stored in enumerate(chosen):
        results.append(_result(context, intent, stored))
        if index % STEP_OBJECTS == STEP_OBJECTS - 1:
            yield
    return DeletionsAnswer(
        revision=context.replica.revision, results=results, remaining=len(matching) - len(chosen)
    )


def _matching(context: DecisionContext, intent: DeleteObjects) -> Steps[list[Stored]]:
    matching = []
    for index, stored in enumerate(context.replica.objects(intent.kind)):
        if _is_meant(intent, stored):
            matching.append(stored)
        if index % _STEP_LOOKS == _STEP_LOOKS - 1:
            yield
    return matching


def _is_meant(intent: DeleteObjects, stored: Stored) -> bool:
    manifest = stored.manifest
    if intent.namespaces is not None and manifest.namespace not in intent.namespaces:
        return False
    if intent.after is not None and _name(stored) <= intent.after:
        return False
    return intent.object_filter.passes(manifest)


def _name(stored: Stored) -> ObjectName:
    return stored.manifest.namespace, stored.manifest.name


def _result(context: DecisionContext, intent: DeleteObjects, stored: Stored) -> DeletionResult:
    manifest = stored.manifest
    done = attempt_write(context, partial(_deleted, context, intent, stored))
    outcome: DeletionOutcome = (
        done.result if done.result in ("Deleted", "Conflict") else "Forbidden"
    )
    return DeletionResult(
        namespace=manifest.namespace or None,
        name=manifest.name,
        uid=manifest.uid,
        result=outcome,
        revision=done.revision,
        message=done.errors[0].message if done.errors else None,
    )


def _deleted(context: DecisionContext, intent: DeleteObjects, stored: Stored) -> WriteOutcome:
    namespace = stored.manifest.namespace
    if intent.deletable is not None and namespace not in intent.deletable:
        who = intent.caller.principal.name
        raise Forbidden(f"{who} may not change a {intent.kind} in the namespace {namespace}.")
    delete_stored(context, stored, intent.caller)
    return WriteOutcome("Deleted", context.replica.revision)
