"""Schemas of principals, groups of an identity provider, grants, and tokens."""

from typing import Annotated

import msgspec

from service.api.http.operation import DNSLabel
from service.model.core.access import Role
from service.model.core.primitives import Strict, Value

GRANTS_MAX = 1000
"""The most grants of a principal or a group."""

SECONDS_MAX = 100 * 366 * 24 * 3600
"""The longest validity of a token."""


class GrantSettings(Strict, frozen=True, kw_only=True):
    """A role to give on one cluster or all, in one namespace or all."""

    role: Role
    """What the role lets one do is told in the documentation."""
    cluster: DNSLabel | None = None
    """Name of the cluster; absent: all."""
    namespace: DNSLabel | None = None
    """Name of the namespace; absent: all, and what is in none."""


class Grant(Value, frozen=True, kw_only=True):
    """A role on one cluster or all, in one namespace or all."""

    role: str
    """Name of the role. A role unknown to this version (for example, from a newer one) grants nothing."""
    cluster: str | None = None
    """Name of the cluster; absent: all."""
    namespace: str | None = None
    """Name of the namespace; absent: all, and what is in none."""


class PrincipalSettings(Strict, frozen=True, kw_only=True):
    """What PUT of a principal or a group takes."""

    grants: Annotated[list[GrantSettings], msgspec.Meta(max_length=GRANTS_MAX)]
    """All its grants."""


class Token(Value, frozen=True, kw_only=True):
    """A token of a principal, without its secret."""

    id: str
    """What it is called, as in `mrg_<id>_<secret>`."""
    description: str
    """What it is for."""
    created_at: str
    """When it was made, RFC 3339 in UTC."""
    expires_at: str | None = None
    """Until when it is taken; absent: for good."""
    last_used_at: str | None = None
    """When it was used last, within a minute or so; absent: never."""


class Principal(Value, frozen=True, kw_only=True):
    """Somebody who may make requests."""

    name: str
    """Name of the principal."""
    grants: list[Grant]
    """What it may do, and where."""
    created_at: str
    """When it was made, RFC 3339 in UTC."""
    tokens: list[Token]
    """Its tokens, the oldest first."""


class Group(Value, frozen=True, kw_only=True):
    """A group that an identity provider names in its tokens."""

    name: str
    """Name of the group, as the provider's."""
    grants: list[Grant]
    """What those who are in it may do, and where."""
    created_at: str
    """When it was made, RFC 3339 in UTC."""


class PrincipalList(Value, frozen=True, kw_only=True):
    """All principals, by name."""

    items: list[Principal]
    """The principals."""
    kind: str = "PrincipalList"
    """What this is."""


class GroupList(Value, frozen=True, kw_only=True):
    """All groups that have grants, by name."""

    items: list[Group]
    """The groups."""
    kind: str = "GroupList"
    """What this is."""


class TokenSettings(Strict, frozen=True, kw_only=True):
    """What a new token is to be."""

    description: Annotated[str, msgspec.Meta(max_length=500)] = ""
    """What it is for."""
    expires_in_seconds: Annotated[int, msgspec.Meta(ge=1, le=SECONDS_MAX)] | None = None
    """How long it is taken from now on; absent: for good."""


class NewToken(Token, frozen=True, kw_only=True):
    """A token that was just made: its text is told this once."""

    token: str
    """What to send as `Authorization: Bearer <token>`."""


class Caller(Value, frozen=True, kw_only=True):
    """Who makes this request."""

    name: str
    """Name of the principal."""
    grants: list[Grant]
    """What it may do, and where."""
    groups: list[str]
    """Groups that the identity provider says it is in."""
