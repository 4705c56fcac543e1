"""Whether a store keeps who asked for what."""

from collections.abc import Iterable

from service.model.audit import ITSELF, AuditedCaller
from service.model.principals import EVERYBODY

_NOBODY = frozenset({EVERYBODY.name, ITSELF.principal, ""})


class Keeping:
    """Whether the audit is kept: from the start, never, or as soon as somebody is known, and then for good.

    While everybody is the same admin, its rows would say nothing.
    """

    def __init__(self, *, on: bool, may_begin: bool) -> None:
        self.on = on
        self.may_begin = may_begin

    def begin(self) -> None:
        """Somebody is known from now on."""
        self.on = self.on or self.may_begin

    def of(self, callers: Iterable[AuditedCaller]) -> bool:
        """Whether it is kept what these asked for; one who is known has it begun, whoever else has not heard of it yet."""
        if not self.on and any(each.principal not in _NOBODY for each in callers):
            self.begin()
        return self.on
