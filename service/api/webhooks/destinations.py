"""Restrict webhooks to allowed destinations, so that they cannot reach private networks."""

import asyncio
import socket
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from urllib.parse import SplitResult, urlsplit

from service.settings import IPAddress, IPNetwork

URL_CHARACTERS_MAX = 2_048
_NAT64 = IPv6Network("64:ff9b::/96")
_NAT64_LOCAL = IPv6Network("64:ff9b:1::/48")
_COMPATIBLE = IPv6Network("::/96")
_NOT_IN_A_URL = frozenset(map(chr, (*range(0x21), 0x7F)))


class AddressRefused(Exception):  # noqa: N818 - a sentence for people, shown as it is
    """The URL's host has no address that messages may be sent to."""


def wrong_url(url: str, *, allow_http: bool, networks: Iterable[IPNetwork]) -> str | None:
    """Return what is wrong with a webhook's URL without resolving its host, or None."""
    if len(url) > URL_CHARACTERS_MAX or not url.isascii() or _NOT_IN_A_URL & set(url):
        return f"has to be a URL of at most {URL_CHARACTERS_MAX} ASCII characters, without spaces"
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return "is no URL"
    if parts.scheme not in (("https", "http") if allow_http else ("https",)):
        return "has to begin with https://"
    if not parts.hostname or port == 0:
        return "has to name a host"
    if parts.username is not None or parts.password is not None or parts.fragment:
        return "must have neither a user, nor a password, nor a fragment"
    return _wrong_literal(parts, networks)


def _wrong_literal(parts: SplitResult, networks: Iterable[IPNetwork]) -> str | None:
    try:
        address = ip_address(parts.hostname or "")
    except ValueError:
        return None
    if is_allowed(address, networks):
        return None
    return "names an address that is not public, and MOORAGE_WEBHOOK_NETWORKS does not allow it"


async def checked_address(url: str, networks: Iterable[IPNetwork]) -> str:
    """Resolve a URL's host to the address that the message must be sent to.

    Raises:
        AddressRefused: the host has no address, or has one that is not allowed.
    """
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
    try:
        loop = asyncio.get_running_loop()
        infos = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise AddressRefused("The host has no address.") from None
    texts = [str(info[4][0]).partition("%")[0] for info in infos]
    if not texts or not all(is_allowed(ip_address(text), networks) for text in texts):
        raise AddressRefused(
            "The host has an address that is not public, and MOORAGE_WEBHOOK_NETWORKS does not allow it."
        )
    return texts[0]


def is_allowed(address: IPAddress, networks: Iterable[IPNetwork]) -> bool:
    """Return whether an address, or the IPv4 address embedded in it, is public or allowed."""
    meant = _meant(address)
    if any(meant in network for network in networks):
        return True
    return meant.is_global and not meant.is_multicast and not meant.is_reserved


def _meant(address: IPAddress) -> IPAddress:
    """Return the IPv4 address embedded in an IPv6 address, or the address itself.

    Addresses of the local NAT64 prefix count as loopback, since they do not reveal the embedded
    address.
    """
    if isinstance(address, IPv4Address):
        return address
    if address in _NAT64_LOCAL:
        return IPv6Address("::1")
    inner = address.ipv4_mapped or address.sixtofour or (address.teredo or (None, None))[1]
    if inner is None and (address in _NAT64 or (address in _COMPATIBLE and int(address) > 1)):
        inner = IPv4Address(int(address) & 0xFFFFFFFF)
    return inner or address
