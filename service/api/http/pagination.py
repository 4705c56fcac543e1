"""The opaque `continue` token of a list: the last key of a page and the first page's revision."""

import base64
import binascii
from collections.abc import Mapping
from typing import Annotated

import msgspec

from service.api.http.request import number, wrong_parameter

_Key = Annotated[str, msgspec.Meta(max_length=253, pattern=r"^[a-z0-9.-]*\Z")]


class Continue(msgspec.Struct, frozen=True, array_like=True):
    """The position where a list continues: after a namespace and name."""

    list: Annotated[str, msgspec.Meta(max_length=400)]
    """The list of the position: its cluster, its kind, and its namespace if it has only one."""
    revision: Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
    namespace: _Key
    name: _Key
    is_past: bool = False
    """Whether the pages show the list at that revision instead of its current state."""
    value: Annotated[str, msgspec.Meta(max_length=253)] | int | None = None
    """The value that the page's last object was sorted by, in a sorted list."""

    def token(self) -> str:
        """Encode the position as URL-safe text for the client to send back."""
        return base64.urlsafe_b64encode(msgspec.json.encode(self)).rstrip(b"=").decode()


def parse_continue(token: str, of_list: str) -> Continue:
    """Decode a token of the list `of_list` to its position.

    Raises:
        MalformedRequest: the token is invalid, or belongs to another list.
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


def past_revision(parameters: Mapping[str, str], start: Continue | None) -> int | None:
    """Return the past revision requested for a list or its earlier pages, or None for the present.

    Raises:
        MalformedRequest: `revision` differs from that of the earlier pages.
    """
    asked = number(parameters, "revision")
    if start is None:
        return asked
    of_pages = start.revision if start.is_past else None
    if asked not in (None, of_pages):
        raise wrong_parameter("revision", "is not that of the pages before", str(asked))
    return of_pages
