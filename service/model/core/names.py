"""Validation of names, label keys, and label values.

Each function checks a string and returns an error message, or None. The rules and messages are
those of `k8s.io/apimachinery/pkg/util/validation`. Patterns are always matched in full, so that a
trailing newline is not accepted.
"""

import ipaddress
import re
from functools import lru_cache

from service.model.core.selectors import is_label_value, parse_integer

LABEL_LENGTH_MAX = 63
SUBDOMAIN_LENGTH_MAX = 253
KEY_LENGTH_MAX = SUBDOMAIN_LENGTH_MAX + 1 + LABEL_LENGTH_MAX
UID_LENGTH_MAX = 128

_DNS_LABEL = re.compile(r"[a-z0-9]++(?:-++[a-z0-9]++)*+")
SUBDOMAIN = r"[a-z0-9]++(?:(?:-++|\.)[a-z0-9]++)*+"
_DNS_SUBDOMAIN = re.compile(SUBDOMAIN)
_KEY_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")
_UID = re.compile(r"[A-Za-z0-9._:-]*")
_PORT_NAME = re.compile(r"(?=.*[a-z])[a-z0-9]([a-z0-9]|-(?!-))*", re.ASCII)
_FEATURE = re.compile(r"[A-Z][A-Za-z0-9]*(?:/[A-Za-z][A-Za-z0-9]*)*")
_TIME = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?"
    r"(Z|[+-][0-9]{2}:[0-9]{2})"
)

_SUBDOMAIN_RULE = (
    "must consist of lower case alphanumeric characters, '-' or '.', and must start and end with "
    "an alphanumeric character (a lowercase RFC 1123 subdomain)"
)
_LABEL_RULE = (
    "must consist of lower case alphanumeric characters or '-', and must start and end with an "
    "alphanumeric character (a lowercase RFC 1123 label)"
)
_KEY_RULE = (
    "must be a name of alphanumeric characters, '-', '_' or '.', starting and ending with an "
    "alphanumeric character, with an optional DNS subdomain prefix and '/' before it"
)
_VALUE_RULE = (
    "must be empty or consist of alphanumeric characters, '-', '_' or '.', and must start and end "
    "with an alphanumeric character (a valid label value)"
)


def _too_long(limit: int) -> str:
    return f"must be no more than {limit} characters"


def dns_subdomain(text: str) -> str | None:
    """Check the name of a node, a pod, or most other objects."""
    if len(text) > SUBDOMAIN_LENGTH_MAX:
        return _too_long(SUBDOMAIN_LENGTH_MAX)
    return None if _DNS_SUBDOMAIN.fullmatch(text) else _SUBDOMAIN_RULE


def dns_label(text: str) -> str | None:
    """Check the name of a namespace or a container."""
    if len(text) > LABEL_LENGTH_MAX:
        return _too_long(LABEL_LENGTH_MAX)
    return None if _DNS_LABEL.fullmatch(text) else _LABEL_RULE


def namespace_entry(text: str) -> str | None:
    """Check an entry of a term's `namespaces`; wildcards are not supported."""
    if text == "*":
        return "is no namespace; to select all namespaces use namespaceSelector: {}"
    return dns_label(text)


def label_key(text: str) -> str | None:
    """Check a label key (a qualified name): `name` or `prefix.example.com/name`."""
    return _too_long(KEY_LENGTH_MAX) if len(text) > KEY_LENGTH_MAX else _label_key(text)


@lru_cache(maxsize=65_536)
def _label_key(text: str) -> str | None:
    prefix, slash, name = text.rpartition("/")
    if slash and (not prefix or dns_subdomain(prefix) is not None):
        return _KEY_RULE
    if len(name) > LABEL_LENGTH_MAX:
        return f"must have a name part of no more than {LABEL_LENGTH_MAX} characters"
    return None if _KEY_NAME.fullmatch(name) else _KEY_RULE


def annotation_key(text: str) -> str | None:
    """Check an annotation key: like a label key, but case-insensitive."""
    return label_key(text.lower())


def label_value(text: str) -> str | None:
    """Check a label's value."""
    return _too_long(LABEL_LENGTH_MAX) if len(text) > LABEL_LENGTH_MAX else _label_value(text)


@lru_cache(maxsize=65_536)
def _label_value(text: str) -> str | None:
    return None if is_label_value(text) else _VALUE_RULE


def integer(text: str) -> str | None:
    """Check the bound of a Gt or Lt requirement, which must be an integer."""
    return None if parse_integer(text) is not None else "must be an integer for Gt and Lt"


def topology_key(text: str) -> str | None:
    """Check a topology key: a label key that must not be empty."""
    return label_key(text) if text else "can not be empty"


def ip_address(text: str) -> str | None:
    """Check an IPv4 or IPv6 address, or an empty string."""
    try:
        ipaddress.ip_address(text or "0.0.0.0")  # noqa: S104 - the wildcard
    except ValueError:
        return "must be a valid IP address"
    return None


def port_name(text: str) -> str | None:
    """Check an IANA service name: up to 15 of a-z, 0-9, and single hyphens, with a letter."""
    if len(text) <= 15 and _PORT_NAME.fullmatch(text) and not text.endswith("-"):  # noqa: PLR2004
        return None
    return "must be at most 15 lower case letters, digits or single hyphens, with a letter"


def feature_name(text: str) -> str | None:
    """Check the name of a feature that nodes declare, such as MyFeature or MyFeature/part."""
    if len(text) > SUBDOMAIN_LENGTH_MAX:
        return _too_long(SUBDOMAIN_LENGTH_MAX)
    if _FEATURE.fullmatch(text):
        return None
    return "must be a name such as MyFeature or MyFeature/part, of letters, digits, and '/'"


def uid(text: str) -> str | None:
    """Check a uid that the object's creator chose."""
    if len(text) > UID_LENGTH_MAX:
        return _too_long(UID_LENGTH_MAX)
    return None if _UID.fullmatch(text) else "must consist of letters, digits, '.', '_', ':' or '-'"


def timestamp(text: str) -> str | None:
    """Check an RFC 3339 time."""
    return None if _TIME.fullmatch(text) else "must be a time such as 2026-01-31T12:00:00Z"


def scheduler_name(text: str) -> str | None:
    """Check a scheduler name: any text of at most 253 characters."""
    return _too_long(SUBDOMAIN_LENGTH_MAX) if len(text) > SUBDOMAIN_LENGTH_MAX else None
