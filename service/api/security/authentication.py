"""Who makes a request: found out by its Authorization header, before it is routed.

Every process knows all principals and tokens, and looks at most a second later whether they have changed; so what is
revoked is refused soon after by every process. What it has not been able to compare for five seconds it no longer goes by.
"""

import asyncio
import hmac
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from hashlib import sha256
from secrets import token_hex, token_urlsafe
from typing import NamedTuple, Protocol

from service.api.security.identities import IdentityProvider
from service.model.audit import AuditedCaller
from service.model.errors import StorageUnavailable
from service.model.principals import (
    BOOTSTRAP,
    EVERYBODY,
    AccessState,
    Grant,
    Precondition,
    Principal,
    PrincipalKind,
    TokenRow,
)
from service.scheduler.protocol.ports import Clock
from service.settings import Settings, is_loopback

COMPARED_AFTER_SECONDS = 1.0
STALE_AFTER_SECONDS = 5.0
UNKNOWN_COMPARED_AFTER_SECONDS = 0.2
"""A token that is not known may have been made a moment ago. Guesses make nobody look more often than this."""
CHANGE_WAIT_SECONDS_MAX = 5.0
"""So long whoever has changed something is left without an answer while it is not noticed here."""
USE_NOTED_AFTER_SECONDS = 60.0

_TOKEN = re.compile(r"mrg_([0-9a-f]{16})_([A-Za-z0-9_-]{43})")

Headers = Iterable[tuple[bytes, bytes]]


class PrincipalStore(Protocol):
    """What is asked of the store.

    Every call raises StorageUnavailable, a change OutcomeUnknown, too: it may have been made.
    With `keep_admin` a change raises NoAdminLeft where tokens are, or were, in use, and none of an admin would be left.
    """

    def begin_audit(self) -> None:
        """Keep from now on who does what, if that may be kept: somebody is known."""
        ...

    async def access_version(self) -> int:
        """Counts the changes of principals and tokens."""
        ...

    async def access_state(self) -> AccessState:
        """All principals and tokens, as of one instant."""
        ...

    async def put_principal(
        self,
        kind: PrincipalKind,
        name: str,
        grants: Sequence[Grant],
        *,
        keep_admin: bool,
        caller: AuditedCaller,
        precondition: Precondition | None = None,
    ) -> bool:
        """Make a principal, or give one other grants, unless the precondition stands against it; whether it is new."""
        ...

    async def delete_principal(
        self,
        kind: PrincipalKind,
        name: str,
        *,
        keep_admin: bool,
        caller: AuditedCaller,
        precondition: Precondition | None = None,
    ) -> bool:
        """Delete a principal with its tokens, unless the precondition stands against it; False if there was none."""
        ...

    async def create_token(
        self,
        token_id: str,
        principal: str,
        secret_hash: bytes,
        *,
        description: str,
        expires_in: timedelta | None,
        keep_admin: bool,
        caller: AuditedCaller,
    ) -> TokenRow:
        """Give a user one more token, or NotFound."""
        ...

    async def delete_token(self, token_id: str, *, keep_admin: bool, caller: AuditedCaller) -> bool:
        """Revoke a token; False if there was none."""
        ...

    async def note_use(self, used_at: Mapping[str, datetime]) -> None:
        """Note when tokens were used last, by their ids."""
        ...


class NewToken(NamedTuple):
    """A token that nobody has yet: its text is told once, and of its secret only the hash is kept."""

    token_id: str
    text: str
    secret_hash: bytes


def new_token() -> NewToken:
    """A token with 256 random bits."""
    token_id, secret = token_hex(8), token_urlsafe(32)
    return NewToken(token_id, f"mrg_{token_id}_{secret}", _hash(secret))


class Authentication:
    """Tells principals by what they prove. Create it within the event loop that uses it, and `close` it there."""

    def __init__(
        self,
        store: PrincipalStore,
        settings: Settings,
        clock: Clock,
        identities: IdentityProvider | None = None,
    ) -> None:
        self.store = store
        self._clock = clock
        self._bootstrap = settings.token.encode() if settings.token else None
        self._identities = identities
        self._may_be_open = (
            self._bootstrap is None and identities is None and is_loopback(settings.host)
        )
        """Whatever becomes of the tokens, nobody from another machine is ever taken for an admin."""
        self._known = _Known(AccessState(version=0, principals=(), tokens=()))
        self._compared_at = float("-inf")
        self._comparing: asyncio.Task[None] | None = None
        self._begins_audit = settings.audit == "auto"
        self._watching: asyncio.Task[None] | None = None
        self._noting: asyncio.Task[None] | None = None
        self._used_at: dict[str, datetime] = {}
        self._use_noted_at = float("-inf")

    @property
    def has_other_admin(self) -> bool:
        """Whether there is an admin who needs none of the store's tokens."""
        return self._bootstrap is not None

    async def is_open(self) -> bool:
        """Whether nobody is asked who they are: no token is set, none was made, and there is no identity provider.

        Raises:
            StorageUnavailable: it is not known.
        """
        if not self._may_be_open:
            return False
        await self._compare()
        return not self._known.tokens

    def seems_open(self) -> bool:
        """As `is_open`, as far as is known: it waits for nothing, and has it found out for the next time."""
        if not self._may_be_open:
            return False
        if self._clock.monotonic() - self._compared_at >= COMPARED_AFTER_SECONDS:
            _ = self._begin_to_compare()
        return not self._known.tokens

    async def principal(self, headers: Headers) -> Principal | None:
        """Who makes a request with these headers; None: nobody who is known.

        Raises:
            StorageUnavailable: who is known is not known.
            IdentityProviderUnavailable: its keys cannot be had.
        """
        credentials = _bearer(headers)
        if credentials is not None and self._is_bootstrap(credentials):
            return BOOTSTRAP
        if await self.is_open():
            return EVERYBODY
        if credentials is None:
            return None
        if token := _TOKEN.fullmatch(credentials.decode("latin-1")):
            return await self._owner(*token.groups())
        if self._identities is None:
            return None
        identity = await self._identities.identity(credentials.decode("latin-1"))
        if identity is None:
            return None
        await self._compare()
        return self._known.identified(identity.name, identity.groups, identity.expires_at)

    async def current(self, principal: Principal) -> Principal | None:
        """What a principal may do by now; None: it is known no longer.

        Raises:
            StorageUnavailable: it is not known.
        """
        if principal == BOOTSTRAP:
            return principal
        if principal == EVERYBODY:
            return principal if await self.is_open() else None
        await self._compare()
        if principal.token_id is not None:
            return self._known.owner(principal.token_id, self._clock.now())
        if principal.expires_at is None or principal.expires_at <= self._clock.now():
            return None
        return self._known.identified(principal.name, principal.groups, principal.expires_at)

    async def changed(self) -> None:
        """Look at once what has changed.

        What was changed is committed, so this does not fail: where the store cannot be asked, or tells nothing for a
        while, the change is noticed here as late as in other processes.
        """
        with suppress(StorageUnavailable, TimeoutError):
            async with asyncio.timeout(CHANGE_WAIT_SECONDS_MAX):
                if self._comparing is not None:  # it may have looked before the change
                    await asyncio.wait([self._comparing])
                await self._compare(after_seconds=0, stale_seconds=0)

    async def start(self) -> None:
        """Look who is known, as far as the store can be reached, and go on until somebody is if that begins the audit."""
        with suppress(StorageUnavailable):
            await self.is_open()
        if self._may_be_open and self._begins_audit:
            self._watching = asyncio.create_task(self._watch_for_the_first())

    async def close(self) -> None:
        """Note what is not noted yet, and ask for nothing any more."""
        if self._watching is not None:
            self._watching.cancel()
        if self._identities is not None:
            await self._identities.close()
        if self._comparing is not None:
            await asyncio.wait([self._comparing])
        if self._noting is not None:  # which comparing may have begun
            await asyncio.wait([self._noting])
        await self._note_use()

    def _is_bootstrap(self, credentials: bytes) -> bool:
        return self._bootstrap is not None and hmac.compare_digest(credentials, self._bootstrap)

    async def _owner(self, token_id: str, secret: str) -> Principal | None:
        await self._compare()
        if token_id not in self._known.tokens:
            await self._compare(UNKNOWN_COMPARED_AFTER_SECONDS, UNKNOWN_COMPARED_AFTER_SECONDS)
        token = self._known.tokens.get(token_id)
        expected = token.secret_hash if token else bytes(32)
        if not hmac.compare_digest(_hash(secret), expected):
            return None
        now = self._clock.now()
        if owner := self._known.owner(token_id, now):
            self._used_at[token_id] = now
        return owner

    async def _compare(
        self,
        after_seconds: float = COMPARED_AFTER_SECONDS,
        stale_seconds: float = STALE_AFTER_SECONDS,
    ) -> None:
        """Begin to compare what is known with the store after so long, and wait for that where it is stale."""
        asked_at = self._clock.monotonic()
        if asked_at - self._compared_at < after_seconds:
            return
        comparing = self._begin_to_compare()
        if asked_at - self._compared_at < stale_seconds:
            return
        await asyncio.wait([comparing])
        if self._clock.monotonic() - self._compared_at >= STALE_AFTER_SECONDS:
            raise StorageUnavailable("It is not known at present who may do what.")

    def _begin_to_compare(self) -> asyncio.Task[None]:
        """One at a time."""
        if self._comparing is None or self._comparing.done():
            self._comparing = asyncio.create_task(self._look())
        return self._comparing

    async def _look(self) -> None:
        began_at = self._clock.monotonic()
        with suppress(StorageUnavailable):
            if await self.store.access_version() != self._known.version:
                self._known = _Known(await self.store.access_state())
                if self._known.tokens:
                    self.store.begin_audit()
            self._compared_at = began_at
            self._begin_to_note_use(began_at)

    def _begin_to_note_use(self, now: float) -> None:
        """In a task of its own, for who may do what has to be compared also while this waits for the database."""
        if now - self._use_noted_at < USE_NOTED_AFTER_SECONDS:
            return
        if self._noting is None or self._noting.done():
            self._use_noted_at = now
            self._noting = asyncio.create_task(self._note_use())

    async def _watch_for_the_first(self) -> None:
        """Look every second, though nobody asks: what this process does by itself is kept, too, once somebody is known."""
        while not self._known.tokens:
            await self._clock.sleep(COMPARED_AFTER_SECONDS)
            with suppress(StorageUnavailable):
                await self.is_open()

    async def _note_use(self) -> None:
        """What cannot be noted now is noted with what comes after it."""
        used_at, self._used_at = self._used_at, {}
        if not used_at:
            return
        try:
            await self.store.note_use(used_at)
        except StorageUnavailable:
            self._used_at = {**used_at, **self._used_at}


class _Known:
    """Principals and tokens, to be looked up."""

    def __init__(self, state: AccessState) -> None:
        self.version = state.version
        self.tokens = {each.token_id: each for each in state.tokens}
        self._grants = {(each.kind, each.name): each.grants for each in state.principals}

    def owner(self, token_id: str, now: datetime) -> Principal | None:
        """Whose token it is, unless it has expired."""
        token = self.tokens.get(token_id)
        if token is None or (token.expires_at is not None and token.expires_at <= now):
            return None
        return Principal(
            token.principal, self._grants.get(("User", token.principal), ()), token_id=token_id
        )

    def identified(self, name: str, groups: tuple[str, ...], expires_at: datetime) -> Principal:
        """Somebody whom an identity provider vouches for, with the grants of their groups."""
        grants = [*self._grants.get(("User", name), ())]
        for group in groups:
            grants += self._grants.get(("Group", group), ())
        return Principal(name, tuple(grants), groups=groups, expires_at=expires_at)


def _bearer(headers: Headers) -> bytes | None:
    """What follows the scheme, whose name is case-insensitive (RFC 9110)."""
    given = [value for name, value in headers if name == b"authorization"]
    if len(given) != 1:  # of several, a proxy in front may have looked at another one
        return None
    scheme, _, credentials = given[0].partition(b" ")
    return credentials.strip() if scheme.lower() == b"bearer" else None


def _hash(secret: str) -> bytes:
    return sha256(secret.encode()).digest()
