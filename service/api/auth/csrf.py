"""Refuse requests that other sites' pages make a browser send to a server without tokens.

Such a server listens on loopback and treats every caller as its admin. Any web page that is open in
a browser on that machine can reach it: the browser sends requests on behalf of the page, and the
page's host name may resolve to a loopback address (DNS rebinding). Three headers, which browsers
set and pages cannot, expose such requests: `Host` is the name that was called, and `Origin` and
`Sec-Fetch-Site` identify the page. Programs other than browsers send only `Host`.

A server with tokens needs none of this: no page knows a token, no browser adds one by itself, and a
page may send Authorization to another origin only if that origin allows it, which Moorage never
does.
"""

import re
from ipaddress import AddressValueError, IPv4Address, IPv6Address

from litestar.types import HTTPScope

from service.api.http.problems import CrossOriginRequest, MalformedRequest, MisdirectedRequest

_AUTHORITY = re.compile(r"(?P<name>[a-z0-9._-]+|\[[0-9a-f:.]+\])(?::[0-9]{0,5})?")
_LOCALHOST = re.compile(r"(?:[a-z0-9_-]+\.)*localhost")
"""Matches names that browsers never look up in DNS, and that nobody can register (RFC 6761)."""

_OWN_PAGES = frozenset({"same-origin", "none"})
"""Allowed values of `Sec-Fetch-Site`; `none` means that the user typed the address.

`same-site` is not allowed: it may be a page on another port of this machine.
"""
_OPENED = {b"sec-fetch-mode": "navigate", b"sec-fetch-dest": "document"}
_PAGES = re.compile(r"/|/docs(?:/[^/]+)*|/openapi\.json|/(?:errors|warnings)(?:/[^/]*)?")

BROWSERS_OWN = (b"origin", b"sec-fetch-site")
"""Headers that only browsers set."""
HOSTS_MAX = 256
"""The maximum number of `Host` values that are remembered."""

_Fields = dict[bytes, list[str]]


class BrowserCheck:
    """Refuses requests that a browser sends on behalf of another site's page."""

    def __init__(self, allowed_hosts: str) -> None:
        """Create a check; `allowed_hosts` lists names besides loopback, separated by commas."""
        names = (name.strip().lower() for name in allowed_hosts.split(","))
        self._allowed = frozenset(name for name in names if name)
        self.own_hosts: set[bytes] = set()
        """Values of `Host` that are known to name this server.

        A request with one of them and none of the headers in `BROWSERS_OWN` needs no check.
        """

    def check(self, scope: HTTPScope) -> None:
        """Check that a request is meant for this server, and not from another site's page.

        Raises:
            MalformedRequest: it has no `Host`, or several of them.
            MisdirectedRequest: `Host` is not a name of this server.
            CrossOriginRequest: the request comes from a page of another origin.
        """
        fields = _fields(scope)
        hosts = fields[b"host"]
        if len(hosts) != 1:
            raise MalformedRequest("The header Host has to be given once.")
        host = hosts[0].lower()
        if not _is_loopback(host) and _name_of(host) not in self._allowed:
            raise MisdirectedRequest(
                "A server without a token answers to localhost and addresses of loopback, "
                f"not to {host[:100]!r}; MOORAGE_ALLOWED_HOSTS can name others."
            )
        if len(self.own_hosts) < HOSTS_MAX:
            self.own_hosts.add(hosts[0].encode("latin-1"))
        _check_origin(fields[b"origin"], host, scope.get("scheme", "http"))
        if not _OWN_PAGES.issuperset(fields[b"sec-fetch-site"]) and not _opens_a_page(
            scope, fields
        ):
            raise CrossOriginRequest("A page of another site asked for this.")


def _fields(scope: HTTPScope) -> _Fields:
    fields: _Fields = {name: [] for name in (b"host", *BROWSERS_OWN, *_OPENED)}
    for name, value in scope["headers"]:
        if name in fields:
            fields[name].append(value.decode("latin-1"))
    return fields


def _name_of(host: str) -> str | None:
    """Return the name or address in a `Host`, lower-cased, without port, or None if malformed."""
    match = _AUTHORITY.fullmatch(host)
    return match["name"] if match else None


def _is_loopback(host: str) -> bool:
    name = _name_of(host)
    if name is None:
        return False
    if _LOCALHOST.fullmatch(name):
        return True
    try:
        address = IPv6Address(name[1:-1]) if name.startswith("[") else IPv4Address(name)
    except AddressValueError:
        return False
    return address.is_loopback


def _check_origin(origins: list[str], host: str, scheme: str) -> None:
    """Refuse an `Origin` other than the server's own.

    Browsers add the header to all but simple reads; `null` is a page that hides its origin. A page
    loaded over HTTPS counts as the server's own too, since TLS may end at a proxy in front.
    """
    for origin in origins:
        if origin.lower() not in {f"{scheme}://{host}", f"https://{host}"}:
            raise CrossOriginRequest(f"A page of the origin {origin[:100]!r} asked for this.")


def _opens_a_page(scope: HTTPScope, fields: _Fields) -> bool:
    """Return whether the request follows another site's link to a page meant for people.

    That is allowed: the linking page can read nothing of the page that it opens.
    """
    opened = all(fields[name] == [value] for name, value in _OPENED.items())
    return opened and scope["method"] == "GET" and _PAGES.fullmatch(scope["path"]) is not None
