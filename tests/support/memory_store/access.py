"""Keeps principals and their tokens in memory, by the contract of `service.store.access`."""

from collections.abc import Mapping, Sequence
from copy import copy
from datetime import datetime, timedelta
from uuid import UUID

import msgspec

from service.model.core.access import (
    AccessState,
    AccessVersion,
    Grant,
    Precondition,
    PrincipalKind,
    PrincipalRow,
    TokenRow,
)
from service.model.core.errors import NoAdminLeft, NotFound
from service.model.log.audit_chain import ITSELF, AuditedCaller, AuditEntry
from tests.support.memory_store.state import MemoryState

_Key = tuple[PrincipalKind, str]


class MemoryAccess:
    """The principals and tokens."""

    def __init__(self, state: MemoryState) -> None:
        self._state = state
        self._version = _numbered(1)
        self._principals: dict[_Key, PrincipalRow] = {}
        self._tokens: dict[str, TokenRow] = {}

    async def version(self) -> AccessVersion:
        """Return the version, which is another one after each change of principals and tokens."""
        return self._version

    async def state(self) -> AccessState:
        """All principals and tokens as they are at one instant."""
        return AccessState(
            version=self._version,
            principals=[self._principals[key] for key in sorted(self._principals)],
            tokens=sorted(self._tokens.values(), key=lambda each: (each.created_at, each.token_id)),
        )

    async def put_principal(
        self,
        kind: PrincipalKind,
        name: str,
        grants: Sequence[Grant],
        *,
        keep_admin: bool,
        caller: AuditedCaller = ITSELF,
        precondition: Precondition | None = None,
        dry_run: bool = False,
    ) -> bool:
        """Make a principal or replace its grants, if the precondition holds; returns whether it is new."""
        known = self._principals.get((kind, name))
        if precondition is not None:
            precondition(known)
        row = PrincipalRow(
            kind=kind,
            name=name,
            grants=tuple(grants),
            created_at=known.created_at if known else self._state.clock(),
        )
        principals = {**self._principals, (kind, name): row}
        self._set(principals, self._tokens, caller, keep_admin=keep_admin, dry_run=dry_run)
        return known is None

    async def delete_principal(
        self,
        kind: PrincipalKind,
        name: str,
        *,
        keep_admin: bool,
        caller: AuditedCaller = ITSELF,
        precondition: Precondition | None = None,
        dry_run: bool = False,
    ) -> bool:
        """Delete a principal with its tokens, if the precondition holds; returns False if there was none."""
        if precondition is not None:
            precondition(self._principals.get((kind, name)))
        principals, tokens = copy(self._principals), copy(self._tokens)
        if principals.pop((kind, name), None) is None:
            return False
        if kind == "User":
            tokens = {key: each for key, each in tokens.items() if each.principal != name}
        self._set(principals, tokens, caller, keep_admin=keep_admin, dry_run=dry_run)
        return True

    async def create_token(
        self,
        token_id: str,
        principal: str,
        secret_hash: bytes,
        *,
        description: str,
        expires_in: timedelta | None,
        keep_admin: bool,
        caller: AuditedCaller = ITSELF,
        dry_run: bool = False,
    ) -> TokenRow:
        """Give a user one more token; raises NotFound if there is no such user."""
        if ("User", principal) not in self._principals:
            raise NotFound(f"There is no principal {principal!r}.")
        now = self._state.clock()
        row = TokenRow(
            token_id=token_id,
            principal=principal,
            secret_hash=secret_hash,
            description=description,
            created_at=now,
            expires_at=None if expires_in is None else now + expires_in,
        )
        tokens = {**self._tokens, token_id: row}
        self._set(self._principals, tokens, caller, keep_admin=keep_admin, dry_run=dry_run)
        return row

    async def delete_token(
        self,
        token_id: str,
        *,
        keep_admin: bool,
        caller: AuditedCaller = ITSELF,
        dry_run: bool = False,
    ) -> bool:
        """Revoke a token; returns False if there was none."""
        tokens = copy(self._tokens)
        if tokens.pop(token_id, None) is None:
            return False
        self._set(self._principals, tokens, caller, keep_admin=keep_admin, dry_run=dry_run)
        return True

    async def record_use(self, used_at: Mapping[str, datetime]) -> None:
        """Store when tokens were used last; `used_at` has the times by token id."""
        for token_id, at in used_at.items():
            if known := self._tokens.get(token_id):
                latest = max(at, known.last_used_at or at)
                self._tokens[token_id] = msgspec.structs.replace(known, last_used_at=latest)

    def _set(
        self,
        principals: dict[_Key, PrincipalRow],
        tokens: dict[str, TokenRow],
        caller: AuditedCaller,
        *,
        keep_admin: bool,
        dry_run: bool,
    ) -> None:
        in_use = self._tokens or tokens
        if keep_admin and in_use and not self._has_admin(principals, tokens):
            raise NoAdminLeft
        if dry_run:
            return
        if len(tokens) > len(self._tokens):
            self._state.policy.begin()
        self._principals, self._tokens = principals, tokens
        self._version = _numbered(self._version.number + 1)
        self._state.note(AuditEntry(caller=caller, cluster=""))

    def _has_admin(
        self, principals: Mapping[_Key, PrincipalRow], tokens: Mapping[str, TokenRow]
    ) -> bool:
        now = self._state.clock()
        return any(
            principals["User", each.principal].is_admin
            and (each.expires_at is None or each.expires_at > now)
            for each in tokens.values()
        )


def _numbered(number: int) -> AccessVersion:
    """Return a version whose tag follows from its number, as memory is never restored."""
    return AccessVersion(number, UUID(int=number))
