"""Principals (the users and groups that make requests) and their rights.

A principal has grants; a grant gives it a role on one cluster or all, in one namespace or all. A
role is a set of verbs, and each operation requires one verb.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Literal, NamedTuple, get_args
from uuid import UUID

import msgspec

Verb = Literal["read", "place", "edit", "observe", "bind", "evict", "configure"]
"""The rights that a role can include: `place` lets Moorage decide without stating facts, `edit`
changes objects that are yet to be placed, `observe` reports facts (nodes, namespaces, running
pods), and `configure` changes a cluster's settings."""

Role = Literal["reader", "scheduler", "editor", "observer", "orchestrator", "admin"]

VERBS: frozenset[Verb] = frozenset(get_args(Verb))

VERBS_OF: Mapping[str, frozenset[Verb]] = {
    "reader": frozenset({"read"}),
    "scheduler": frozenset({"read", "place", "edit"}),
    "editor": frozenset({"read", "place", "edit", "bind", "evict"}),
    "observer": frozenset({"read", "observe"}),
    "orchestrator": VERBS - {"configure"},
    "admin": VERBS,
}


NO_VERBS = frozenset[Verb]()


class Grant(msgspec.Struct, frozen=True, order=True):
    """A role in a cluster and a namespace; None stands for all clusters or all namespaces."""

    role: str
    """A `Role`, or a role known only to another version, which grants nothing here."""
    cluster: str | None = None
    namespace: str | None = None

    def gives(self, verb: Verb, cluster: str | None) -> bool:
        """Return whether the grant includes a verb in any namespace of a cluster (None: any)."""
        return verb in VERBS_OF.get(self.role, NO_VERBS) and (
            cluster is None or self.cluster is None or self.cluster == cluster
        )


ADMIN = Grant("admin")
"""The grant to do everything on this server."""


class Principal(msgspec.Struct, frozen=True):
    """The user, token, or client that makes a request."""

    name: str
    grants: tuple[Grant, ...] = ()
    token_id: str | None = None
    """The ID of the request's token, or None if the caller authenticated in another way."""
    groups: tuple[str, ...] = ()
    """The user's groups, according to the identity provider."""
    expires_at: datetime | None = None
    """When the identity provider's token expires."""
    is_admin: bool = False
    """Whether the principal may do everything on this server; always derived from the grants."""

    def __post_init__(self) -> None:
        """Derive `is_admin` once, so that later checks of an admin's rights need no lookup."""
        msgspec.structs.force_setattr(self, "is_admin", ADMIN in self.grants)

    @property
    def is_identified(self) -> bool:
        """Whether an identity provider authenticated the principal, rather than a Moorage token."""
        return self.expires_at is not None

    @property
    def own(self) -> frozenset[tuple["PrincipalKind", str]]:
        """The kinds and names that can be granted roles for the principal: user and groups."""
        return frozenset({("User", self.name), *(("Group", group) for group in self.groups)})

    def may(self, verb: Verb, cluster: str, namespace: str | None = None) -> bool:
        """Return whether the principal has a right in a namespace (None: in all namespaces)."""
        return any(
            grant.namespace is None or grant.namespace == namespace
            for grant in self._that_give(verb, cluster)
        )

    def may_somewhere(self, verb: Verb, cluster: str | None = None) -> bool:
        """Return whether the principal has a right in any namespace of a cluster (None: any)."""
        return any(True for _ in self._that_give(verb, cluster))

    def namespaces(self, verb: Verb, cluster: str) -> frozenset[str] | None:
        """Return a cluster's namespaces in which the principal has a right, or None for all."""
        grants = list(self._that_give(verb, cluster))
        if any(grant.namespace is None for grant in grants):
            return None
        return frozenset(grant.namespace for grant in grants if grant.namespace is not None)

    def _that_give(self, verb: Verb, cluster: str | None) -> Iterable[Grant]:
        return (grant for grant in self.grants if grant.gives(verb, cluster))


EVERYBODY = Principal("everybody", (ADMIN,))
"""The principal of every request to a server that requires no authentication."""
BOOTSTRAP = Principal("bootstrap", (ADMIN,))
"""The principal of the token in the server's settings."""

NAME_CHARACTERS_MAX = 512


def is_name(name: str) -> bool:
    """Return whether the name of an identity provider's user or group can be stored and shown."""
    return 0 < len(name) <= NAME_CHARACTERS_MAX and name.isprintable()


PrincipalKind = Literal["User", "Group"]
"""The kinds of principals; a group is listed in an identity provider's tokens, and its members have
its grants."""


class PrincipalRow(msgspec.Struct, frozen=True, kw_only=True):
    """A stored user or group."""

    kind: PrincipalKind
    name: str
    grants: tuple[Grant, ...]
    created_at: datetime

    is_readable: bool = True
    """Whether the stored grants could be read; a principal with unreadable grants has none."""

    @property
    def is_admin(self) -> bool:
        """Whether the grants include the admin role on the whole server."""
        return ADMIN in self.grants

    @property
    def unknown_roles(self) -> list[str]:
        """The granted roles that this version does not know."""
        return sorted({grant.role for grant in self.grants} - VERBS_OF.keys())


Precondition = Callable[[PrincipalRow | None], None]
"""A check that raises if the stored principal (None for a new one) must not be changed."""


class TokenRow(msgspec.Struct, frozen=True, kw_only=True):
    """A user's token as stored, without its secret."""

    token_id: str
    principal: str
    secret_hash: bytes
    """SHA-256 of the secret."""
    description: str
    created_at: datetime
    expires_at: datetime | None
    last_used_at: datetime | None = None
    """When the token was last used, to the minute."""


class AccessVersion(NamedTuple):
    """A version of all principals and tokens; equal versions mean equal states."""

    number: int
    """A counter that rises with each change, and falls when a backup is restored."""
    tag: UUID
    """A random ID, replaced with each change."""


class AccessState(msgspec.Struct, frozen=True, kw_only=True):
    """A snapshot of all principals and tokens of a server."""

    version: AccessVersion
    principals: Sequence[PrincipalRow]
    tokens: Sequence[TokenRow]
