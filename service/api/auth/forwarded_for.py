"""Find a request's original address behind trusted proxies.

Each proxy appends the address that called it to `X-Forwarded-For`, but a client may send the header
with any beginning. So the header is read from its end, as far as trusted proxies wrote it.
"""

from collections.abc import Iterable, Sequence
from ipaddress import IPv6Address, ip_address

from litestar.types import HTTPScope

from service.settings import IPAddress, IPNetwork

_HEADER = b"x-forwarded-for"
_HOP_BYTES_MAX = 64
"""The maximum length of an address with a port."""


class Proxies:
    """The trusted proxies in front of a server."""

    def __init__(self, networks: Sequence[IPNetwork]) -> None:
        self._networks = networks

    def find_caller(self, scope: HTTPScope) -> None:
        """Set a request's client to its caller's address if it came through trusted proxies."""
        client = scope.get("client") if self._networks else None
        nearest = _address_in(client[0].encode()) if client else None
        if nearest is None or not self._are_trusted(nearest):
            return
        caller = self._caller(nearest, _hops(scope["headers"]))
        scope["client"] = (str(caller), 0)

    def _caller(self, nearest: IPAddress, hops: Sequence[bytes]) -> IPAddress:
        """Return the caller's address, ignoring all hops before one that is not an address."""
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
    """Return the addresses in the header, nearest last, joining several headers (RFC 9110, 5.3)."""
    given = [value for name, value in headers if name == _HEADER]
    return b",".join(given).split(b",") if given else []


def _address_in(hop: bytes) -> IPAddress | None:
    """Parse an address that may be followed by a port, or return None if it is invalid."""
    if len(hop) > _HOP_BYTES_MAX or b"%" in hop:
        return None
    text = hop.decode("latin-1").strip()
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    return parsed_address(text)


def parsed_address(text: str) -> IPAddress | None:
    """Parse an address, converting IPv4-mapped IPv6 to IPv4, or return None if it is invalid."""
    try:
        address = ip_address(text)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address
