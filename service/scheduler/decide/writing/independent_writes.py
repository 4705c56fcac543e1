"""Writes of which each is done or refused by itself: an error in one of them stops no other."""

from collections.abc import Callable

import msgspec
from msgspec import UNSET, UnsetType

from service.model.errors import (
    Conflict,
    Denied,
    FieldError,
    Forbidden,
    InvalidManifest,
    MoorageError,
    NotFound,
)
from service.model.pod_templates.field_warnings import FieldWarning, FieldWarnings, WarningList
from service.scheduler.decide.context import DecisionContext
from service.scheduler.protocol.answers import LineOutcome

Warnings = list[FieldWarning] | UnsetType
"""The warnings of one result; `UNSET` if there are none."""

STEP_OBJECTS = 50
"""How many objects are written in one step, before other tasks may run."""


class WriteOutcome(msgspec.Struct, frozen=True):
    """What became of one write, and the revision of the object; without one if it was refused."""

    result: LineOutcome
    revision: int | None
    errors: list[FieldError] = []


def attempted(context: DecisionContext, write: Callable[[], WriteOutcome]) -> WriteOutcome:
    """Make one write; if it is refused, undo what it changed and return the reason."""
    mark = context.replica.mark()
    try:
        return write()
    except (InvalidManifest, Denied, Forbidden, NotFound, Conflict) as error:
        context.replica.undo(mark)
        return refused(error)


def refused(error: MoorageError) -> WriteOutcome:
    """Return the result of a write that this error refuses."""
    match error:
        case InvalidManifest():
            return WriteOutcome("Invalid", None, error.errors)
        case Denied():
            return WriteOutcome("Denied", None, [FieldError("", f"{error.reason}: {error.detail}")])
        case NotFound():
            return WriteOutcome("NotFound", None, [FieldError("", error.detail)])
        case Conflict():
            return WriteOutcome("Conflict", None, [FieldError("", error.detail)])
        case _:
            return WriteOutcome("Forbidden", None, [FieldError("", error.detail)])


def told(found: FieldWarnings) -> Warnings:
    """Return the warnings of one write as its result has them."""
    if not found:
        return UNSET
    warnings = WarningList()
    warnings.add(found)
    return warnings.told()
