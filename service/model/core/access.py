"""Principals, who make requests, and their rights.

A principal has grants; a grant gives it a role on one cluster or all, in one namespace or all. A role is a set of
verbs, and an operation asks for one verb.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Literal, NamedTuple, get_args
from uuid import UUID

import msgspec

Verb = Literal["read", "place", "edit", "observe", "bind", "evict", "configure"]
"""What a caller may do: `place` decides without stating facts, `edit` changes what is still to be placed, `observe` states
facts (nodes, namespaces, pods that run), `configure` changes a cluster's settings."""

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
    """A role on a cluster and in a namespace; None stands for all."""

    role: str
    """A `Role`, or the role of another version, which gives nothing here."""
    cluster: str | None = None
    namespace: str | None = None

    def gives(self, verb: Verb, cluster: str | None) -> bool:
        """Return whether the grant gives a verb in a namespace of a cluster (None: any)."""
        return verb in VERBS_OF.get(self.role, NO_VERBS) and (
            cluster is None or self.cluster is None or self.cluster == cluster
        )


ADMIN = Grant("admin")
"""The grant to do everything on this server."""


class Principal(msgspec.Struct, frozen=True):
    """Who makes a request."""

    name: str
    grants: tuple[Grant, ...] = ()
    token_id: str | None = None
    """The token of the request, or None if it came with another kind of proof."""
    groups: tuple[str, ...] = ()
    """The groups that it is in, as an identity provider says."""
    expires_at: datetime | None = None
    """When the identity provider's token expires."""
    is_admin: bool = False
    """Whether it may do everything on this server; always derived from the grants."""

    def __post_init__(self) -> None:
        """Derive `is_admin` once, so that no right of an admin has to be looked up later."""
        msgspec.structs.force_setattr(self, "is_admin", ADMIN in self.grants)

    @property
    def is_identified(self) -> bool:
        """Whether an identity provider vouches for it, so that it needs no token of this server."""
        return self.expires_at is not None

    @property
    def own(self) -> frozenset[tuple["PrincipalKind", str]]:
        """The kinds and names that can be granted its roles: the user and its groups."""
        return frozenset({("User", self.name), *(("Group", group) for group in self.groups)})

    def may(self, verb: Verb, cluster: str, namespace: str | None = None) -> bool:
        """Return whether it may do this in a namespace, or, for None, in all of them."""
        return any(
            grant.namespace is None or grant.namespace == namespace
            for grant in self._that_give(verb, cluster)
        )

    def may_somewhere(self, verb: Verb, cluster: str | None = None) -> bool:
        """Return whether it may do this in a namespace of a cluster (None: any)."""
        return any(True for _ in self._that_give(verb, cluster))

    def namespaces(self, verb: Verb, cluster: str) -> frozenset[str] | None:
        """Return the namespaces of a cluster where it may do this, or None for all."""
        grants = list(self._that_give(verb, cluster))
        if any(grant.namespace is None for grant in grants):
            return None
        return frozenset(grant.namespace for grant in grants if grant.namespace is not None)

    def _that_give(self, verb: Verb, cluster: str | None) -> Iterable[Grant]:
        return (grant for grant in self.grants if grant.gives(verb, cluster))


EVERYBODY = Principal("everybody", (ADMIN,))
"""The principal of every request to a server that asks for no token."""
BOOTSTRAP = Principal("bootstrap", (ADMIN,))
"""The principal that has the token from the server's settings."""

NAME_CHARACTERS_MAX = 512


def is_name(name: str) -> bool:
    """Return whether the name of an identity provider's user or group can be stored and shown."""
    return 0 < len(name) <= NAME_CHARACTERS_MAX and name.isprintable()


PrincipalKind = Literal["User", "Group"]
"""A group is named in an identity provider's tokens; its members have its grants."""


class PrincipalRow(msgspec.Struct, frozen=True, kw_only=True):
    """A user or a group, as it is stored."""

    kind: PrincipalKind
    name: str
    grants: tuple[Grant, ...]
    created_at: datetime

    is_readable: bool = True
    """Whether its grants could be read; one whose grants could not has none."""

    @property
    def is_admin(self) -> bool:
        """Whether its grants include administering the whole server."""
        return ADMIN in self.grants

    @property
    def unknown_roles(self) -> list[str]:
        """The roles among its grants that this version does not know."""
        return sorted({grant.role for grant in self.grants} - VERBS_OF.keys())


Precondition = Callable[[PrincipalRow | None], None]
"""A function that raises if the stored principal (None for a new one) must not be changed."""


class TokenRow(msgspec.Struct, frozen=True, kw_only=True):
    """A user's token, as stored: without its secret."""

    token_id: str
    principal: str
    secret_hash: bytes
    """SHA-256 of the secret."""
    description: str
    created_at: datetime
    expires_at: datetime | None
    last_used_at: datetime | None = None
    """When the token was used last, kept to the minute."""


class AccessVersion(NamedTuple):
    """A version of all principals and tokens; equal versions are equal states, despite restores."""

    number: int
    """It rises with each change, and falls with a restore."""
    tag: UUID
    """Random, and new with each change."""


class AccessState(msgspec.Struct, frozen=True, kw_only=True):
    """All principals and tokens of a server, as of one instant."""

    version: AccessVersion
    principals: Sequence[PrincipalRow]
    tokens: Sequence[TokenRow]
