"""The audit as it is on the wire."""

from typing import Literal

import msgspec

from service.model.core.primitives import Value
from service.model.log.audit_chain import AuditRow


class AuditPlace(Value, frozen=True, kw_only=True):
    """Where the audit goes on."""

    continue_: str | None = msgspec.field(default=None, name="continue")
    """Send it back as `continue` for the next page; absent on the last one."""


class AuditList(Value, frozen=True, kw_only=True):
    """Rows of the audit, by chain and number."""

    metadata: AuditPlace
    """Where it goes on."""
    items: list[AuditRow]
    """The rows."""
    kind: Literal["AuditList"] = "AuditList"
    """What this is."""
