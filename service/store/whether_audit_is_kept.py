"""Decides whether a store keeps the audit."""

from collections.abc import Iterable

from service.model.core.access import EVERYBODY
from service.model.log.audit_chain import ITSELF, AuditedCaller

_NOBODY = frozenset({EVERYBODY.name, ITSELF.principal, ""})


class Keeping:
    """Says whether the audit is kept: from the start, never, or from the first known caller on.

    Before any caller is known, everybody is the same admin, so the rows would say nothing.
    """

    def __init__(self, *, on: bool, may_begin: bool) -> None:
        self.on = on
        self.may_begin = may_begin
        self.never = not (on or may_begin)
        """Whether the audit is kept for no caller, so that commits need not ask."""

    def begin(self) -> None:
        """Note that callers can be told apart from now on."""
        self.on = self.on or self.may_begin

    def of(self, callers: Iterable[AuditedCaller]) -> bool:
        """Whether the audit is kept for these callers.

        A known caller begins the audit, even if this process has not heard of the first token yet.
        """
        if not self.on and any(each.principal not in _NOBODY for each in callers):
            self.begin()
        return self.on
