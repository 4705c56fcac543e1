"""Where a request came from, if it came through proxies that are trusted to say so.

Each proxy adds the address that it was called from at the end of `X-Forwarded-For`, and whoever sends a request may
have written any beginning. So the header is read from its end, as far as trusted proxies wrote it.
"""

from collections.abc import Iterable, Sequence

from litestar.types import HTTPScope

from service.api.security.callers import parsed_address
from service.settings import IPAddress, IPNetwork

_HEADER = b"x-forwarded-for"
_HOP_BYTES_MAX = 64
"""More than any address with a port has."""


class Proxies:
    """The proxies in front of a server whose word is taken."""

    def __init__(self, networks: Sequence[IPNetwork]) -> None:
        self._networks = networks

    def find_caller(self, scope: HTTPScope) -> None:
        """Have a request come from the last address that is none of theirs, where it came from one of them."""
        client = scope.get("client") if self._networks else None
        nearest = _address_in(client[0].encode()) if client else None
        if nearest is None or not self._are_trusted(nearest):
            return
        caller = self._caller(nearest, _hops(scope["headers"]))
        scope["client"] = (str(caller), 0)

    def _caller(self, nearest: IPAddress, hops: Sequence[bytes]) -> IPAddress:
        """Beyond what is no address nothing is believed."""
        caller = nearest
        for hop in reversed(hops):
            address = _address_in(hop)
            if address is None:
                break
            caller = address
            if not self._are_trusted(address):
                break
        return caller

    def _are_trusted(self, address: IPAddress) -> bool:
        return any(address in network for network in self._networks)


def _hops(headers: Iterable[tuple[bytes, bytes]]) -> list[bytes]:
    """The addresses that the header has, the nearest at the end; several of one name are one (RFC 9110, 5.3)."""
    given = [value for name, value in headers if name == _HEADER]
    return b",".join(given).split(b",") if given else []


def _address_in(hop: bytes) -> IPAddress | None:
    """An address, with a port perhaps."""
    if len(hop) > _HOP_BYTES_MAX or b"%" in hop:
        return None
    text = hop.decode("latin-1").strip()
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    return parsed_address(text)
