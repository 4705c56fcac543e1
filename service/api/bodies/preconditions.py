"""Refuses writes with preconditions that their operation does not honor (RFC 9110, 13)."""

from litestar.types import HTTPScope

from service.api.openapi.operation_declaration import UNHONORED
from service.api.problems import MalformedRequest
from service.model.core.errors import FieldError

WRITES = frozenset({"DELETE", "PATCH", "POST", "PUT"})
"""Methods that may change something; a precondition of a read can be ignored without harm."""


def refuse_unhonored(scope: HTTPScope) -> None:
    """Refuse a write with a precondition that its operation would ignore.

    The client relies on nothing being changed if the precondition does not hold.

    Raises:
        MalformedRequest: the request has a precondition that its operation does not declare.
    """
    unhonored = scope["route_handler"].opt.get(UNHONORED)
    if unhonored is None or scope["method"] not in WRITES:
        return
    for name, value in scope["headers"]:
        if name in unhonored:
            raise _unhonored(name.decode("latin-1"), value.decode("latin-1"))


def _unhonored(name: str, value: str) -> MalformedRequest:
    header = name.title()
    message = "is not honored by this operation; send the request without it"
    return MalformedRequest(
        f"The header {header} {message}.", [FieldError(header, message, value[:200])]
    )
