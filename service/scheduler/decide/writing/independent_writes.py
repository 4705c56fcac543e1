"""Independent writes: an error in one does not stop the others."""

from collections.abc import Callable

import msgspec
from msgspec import UNSET, UnsetType

from service.model.core.errors import (
    Conflict,
    Denied,
    FieldError,
    Forbidden,
    InvalidManifest,
    MoorageError,
    NotFound,
)
from service.model.core.field_warnings import FieldWarning, FieldWarnings, WarningList
from service.scheduler.decide.context import DecisionContext
from service.scheduler.protocol.answers import LineOutcome

Warnings = list[FieldWarning] | UnsetType
"""The warnings of one result, or `UNSET`."""

STEP_OBJECTS = 50
"""How many objects are written in one step before other tasks may run."""


class WriteOutcome(msgspec.Struct, frozen=True):
    """The outcome of one write, with the object's revision unless the write was refused."""

    result: LineOutcome
    revision: int | None
    errors: list[FieldError] = []


def attempt_write(context: DecisionContext, write: Callable[[], WriteOutcome]) -> WriteOutcome:
    """Attempt one write; if it is refused, undo its changes and return the reason."""
    mark = context.replica.mark()
    try:
        return write()
    except (InvalidManifest, Denied, Forbidden, NotFound, Conflict) as error:
        context.replica.undo(mark)
        return refused_outcome(error)


def refused_outcome(error: MoorageError) -> WriteOutcome:
    """Return the outcome of a write that failed with this error."""
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


def result_warnings(field_warnings: FieldWarnings) -> Warnings:
    """Return the warnings of one write in the format of results."""
    if not field_warnings:
        return UNSET
    warnings = WarningList()
    warnings.add(field_warnings)
    return warnings.told()
