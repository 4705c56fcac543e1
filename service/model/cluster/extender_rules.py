"""Validation rules of extenders in profiles, after ValidateExtenders of kube-scheduler v1.35.

Moorage commits placements and chooses victims itself, so extenders can neither bind nor preempt.
File paths and private keys are rejected, because anyone with read access can see the configuration.
"""

import binascii
import re
import ssl
from base64 import b64decode
from urllib.parse import urlsplit

from service.model.core import names
from service.model.core.validators import (
    Problems,
    Record,
    Rule,
    at,
    boolean,
    entries_of,
    items_of,
    list_of,
    record,
    text,
    whole_number,
)

_TIMEOUT_SECONDS_MAX = 60
_WEIGHT_MAX = 5_000
"""The maximum weight of an extender, the same as a plugin's."""
_EXTENDERS_MAX = 10
"""The most extenders per profile, as each is called once per pod."""


_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?|\.[0-9]+)(ns|us|µs|ms|s|m|h)")
_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}


def seconds_of(duration: str) -> float | None:
    """Parse a Go duration such as `500ms` or `1m30s` into seconds, or return None if invalid."""
    if duration == "0":
        return 0.0
    parts = list(_PART.finditer(duration))
    if not parts or "".join(part[0] for part in parts) != duration:
        return None
    return sum(float(part[1]) * _SECONDS[part[2]] for part in parts)


def _refused(why: str) -> Rule:
    """Return a rule that rejects a field of Kubernetes, except for its zero value."""

    def rule(value: object, path: str, problems: Problems) -> None:
        if value not in ("", False):
            problems.add(path, why)

    return rule


def _url(address: str) -> str | None:
    try:
        parts = urlsplit(address)
        _ = parts.port
    except ValueError:
        return "must be a URL"
    if parts.scheme not in ("http", "https") or not parts.hostname:
        return "must be a URL that begins with http:// or https:// and a host"
    if parts.username is not None or parts.query or parts.fragment:
        return "must be without user, query and fragment"
    return None if address.isascii() and address.isprintable() else "must be printable ASCII"


def _verb(verb: str) -> str | None:
    is_path = all(part.isalnum() or part in "-_./" for part in verb) and ".." not in verb
    return None if verb.isascii() and is_path else "must be letters, digits, '-', '_', '.' and '/'"


def _timeout(duration: str) -> str | None:
    seconds = seconds_of(duration)
    if seconds is None:
        return "must be a duration such as 500ms or 2s"
    too_long = seconds > _TIMEOUT_SECONDS_MAX
    return f"must be no longer than {_TIMEOUT_SECONDS_MAX}s" if too_long else None


def _certificates(value: str) -> str | None:
    try:
        pem = b64decode(value, validate=True).decode("ascii")
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=pem)
    except (binascii.Error, ValueError, ssl.SSLError):
        return "must be certificates in PEM, in base64"
    return None


def _verifies_or_not(tls: Record, path: str, problems: Problems) -> None:
    """Reject contradictory TLS settings, like Kubernetes' TLSConfigFor."""
    if tls.get("insecure") is True and tls.get("caData"):
        problems.add(at(path, "caData"), "must be left out with insecure, which verifies nothing")


def _asks_something(extender: Record, path: str, problems: Problems) -> None:
    if extender.get("prioritizeVerb") and not extender.get("weight"):
        problems.add(at(path, "weight"), "must be positive for an extender with prioritizeVerb")
    if not extender.get("filterVerb") and not extender.get("prioritizeVerb"):
        problems.add(path, "must have filterVerb or prioritizeVerb")
    url = extender.get("urlPrefix")
    wants_https = extender.get("enableHTTPS") or extender.get("tlsConfig")
    if wants_https and isinstance(url, str) and not url.startswith("https://"):
        problems.add(at(path, "urlPrefix"), "must be https with enableHTTPS or tlsConfig", url)


def _distinct_resources(extender: Record, path: str, problems: Problems) -> None:
    seen: set[object] = set()
    for index, resource in enumerate(items_of(extender.get("managedResources"))):
        name = entries_of(resource).get("name")
        if isinstance(name, str) and name in seen:
            problems.add(f"{path}.managedResources[{index}].name", "is there already", name)
        seen.add(name if isinstance(name, str) else None)


def _extenders_rule() -> Rule:
    no_file = _refused("is not taken: no files of the server are read for it; give caData")
    no_key = _refused("is not taken: whoever reads the configuration would see the key")
    tls = record(
        {
            "insecure": boolean,
            "serverName": text(names.dns_subdomain, empty_ok=True),
            "caData": text(_certificates, empty_ok=True),
            "caFile": no_file,
            "certFile": no_file,
            "keyFile": no_file,
            "certData": no_key,
            "keyData": no_key,
        },
        also=(_verifies_or_not,),
    )
    resource = record(
        {
            "name": text(names.label_key),
            "ignoredByScheduler": _refused("must be false: NodeResourcesFit judges every resource"),
        },
        required=("name",),
    )
    extender = record(
        {
            "urlPrefix": text(_url),
            "filterVerb": text(_verb, empty_ok=True),
            "prioritizeVerb": text(_verb, empty_ok=True),
            "bindVerb": _refused("is not taken: Moorage commits placements itself"),
            "preemptVerb": _refused("is not taken: Moorage chooses victims itself"),
            "weight": whole_number(0, _WEIGHT_MAX),
            "enableHTTPS": boolean,
            "tlsConfig": tls,
            "httpTimeout": text(_timeout, empty_ok=True),
            "nodeCacheCapable": boolean,
            "managedResources": list_of(resource),
            "ignorable": boolean,
        },
        required=("urlPrefix",),
        also=(_asks_something, _distinct_resources),
    )
    extenders = list_of(extender)

    def rule(value: object, path: str, problems: Problems) -> None:
        extenders(value, path, problems)
        if len(items_of(value)) > _EXTENDERS_MAX:
            problems.add(path, f"has more than {_EXTENDERS_MAX} extenders")

    return rule


EXTENDERS = _extenders_rule()
"""The rule for the extenders of a profile."""
