"""The opaque `continue` of a list: the last key of a page and the first page's revision."""

import base64
import binascii
from typing import Annotated

import msgspec

from service.api.bodies.requests import wrong_parameter

_Key = Annotated[str, msgspec.Meta(max_length=253, pattern=r"^[a-z0-9.-]*\Z")]


class Continue(msgspec.Struct, frozen=True, array_like=True):
    """Where a list goes on: after this namespace and name, at the first page's revision."""

    list: Annotated[str, msgspec.Meta(max_length=400)]
    """Which list: cluster, kind, and the namespace where it is that of one."""
    revision: Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
    namespace: _Key
    name: _Key

    def token(self) -> str:
        """The value for a client to send back, safe inside a URL."""
        return base64.urlsafe_b64encode(msgspec.json.encode(self)).rstrip(b"=").decode()


def parse_continue(token: str, of_list: str) -> Continue:
    """The place that a token of this list stands for.

    Raises:
        MalformedRequest: it is not one that the list gave out.
    """
    try:
        padded = token.encode("ascii") + b"=" * (-len(token) % 4)
        raw = base64.b64decode(padded, altchars=b"-_", validate=True)
        place = msgspec.json.decode(raw, type=Continue)
    except (binascii.Error, UnicodeError, msgspec.MsgspecError):
        raise wrong_parameter("continue", "is not one that a list gave out", token) from None
    if place.list != of_list:
        raise wrong_parameter("continue", "is that of another list", token)
    return place
