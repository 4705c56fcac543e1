"""Authenticate callers by the Authorization header.

Every process keeps all principals and tokens in memory, and compares them with the store at most
once a second while requests arrive, so it soon refuses a revoked token. If no comparison has
succeeded for five seconds, it no longer trusts its memory.
"""

import asyncio
import hmac
import logging
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from hashlib import sha256
from secrets import token_hex, token_urlsafe
from typing import NamedTuple, Protocol
from uuid import UUID

from service.api.auth.oidc import IdentityProvider
from service.model.core.access import (
    BOOTSTRAP,
    EVERYBODY,
    AccessState,
    AccessVersion,
    Grant,
    Precondition,
    Principal,
    PrincipalKind,
    PrincipalRow,
    TokenRow,
)
from service.model.core.errors import MoorageError, StorageUnavailable
from service.model.log.audit_chain import AuditedCaller
from service.runtime.tasks import log_failure
from service.scheduler.protocol.ports import Clock
from service.settings import Settings, is_loopback

COMPARED_AFTER_SECONDS = 1.0
STALE_AFTER_SECONDS = 5.0
UNKNOWN_COMPARED_AFTER_SECONDS = 0.2
"""The minimum time between a comparison and another one that an unknown token triggers.

The token may be new, but guesses must not trigger comparisons more often.
"""
CHANGE_WAIT_SECONDS_MAX = 5.0
"""How long the answer to a change waits for this process to see the change."""
USE_NOTED_AFTER_SECONDS = 60.0

_log = logging.getLogger(__name__)

_NEVER_READ = AccessVersion(0, UUID(int=0))

_TOKEN = re.compile(r"mrg_([0-9a-f]{16})_([A-Za-z0-9_-]{43})")

Headers = Iterable[tuple[bytes, bytes]]


class AccessStore(Protocol):
    """The store of principals and tokens.

    Every call may raise StorageUnavailable, and a change may also raise OutcomeUnknown. With
    `keep_admin`, a change raises NoAdminLeft if tokens are or were in use and no admin would have a
    token afterwards.
    """

    async def version(self) -> AccessVersion:
        """Return the version, which changes with every change of principals and tokens."""
        ...

    async def state(self) -> AccessState:
        """Return all principals and tokens as of one instant."""
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
        dry_run: bool = False,
    ) -> bool:
        """Create or update a principal if the precondition holds; return whether it is new."""
        ...

    async def delete_principal(
        self,
        kind: PrincipalKind,
        name: str,
        *,
        keep_admin: bool,
        caller: AuditedCaller,
        precondition: Precondition | None = None,
        dry_run: bool = False,
    ) -> bool:
        """Delete a principal and its tokens if the precondition holds; return False if missing."""
        ...

    async def create_token(  # noqa: PLR0913 - the properties of a token, by name
        self,
        token_id: str,
        principal: str,
        secret_hash: bytes,
        *,
        description: str,
        expires_in: timedelta | None,
        keep_admin: bool,
        caller: AuditedCaller,
        dry_run: bool = False,
    ) -> TokenRow:
        """Add a token to a user, or raise NotFound if there is no such user."""
        ...

    async def delete_token(
        self, token_id: str, *, keep_admin: bool, caller: AuditedCaller, dry_run: bool = False
    ) -> bool:
        """Revoke a token; return whether it existed."""
        ...

    async def record_use(self, used_at: Mapping[str, datetime]) -> None:
        """Store when tokens were last used; `used_at` maps token ids to times."""
        ...


class BeginningAudit(Protocol):
    """An audit log that begins with the first token."""

    def begin(self) -> None:
        """Start keeping the audit log if the settings allow it, now that callers are known."""
        ...


class PrincipalStore(Protocol):
    """The parts of the store that authentication needs."""

    @property
    def access(self) -> AccessStore: ...

    @property
    def audit(self) -> BeginningAudit: ...


class NewToken(NamedTuple):
    """A new token; its text is shown once, and only a hash of its secret is stored."""

    token_id: str
    text: str
    secret_hash: bytes


def new_token() -> NewToken:
    """Create a token with 256 random bits."""
    token_id, secret = token_hex(8), token_urlsafe(32)
    return NewToken(token_id, f"mrg_{token_id}_{secret}", _hash(secret))


class Authentication:
    """Authenticates callers by their credentials.

    Create it in the event loop that uses it, and `close` it there.
    """

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
        """Whether everyone is an admin as long as no tokens exist.

        This is never the case if other machines can reach the server.
        """
        self._known = _Known(AccessState(version=_NEVER_READ, principals=(), tokens=()))
        self._compared_at = float("-inf")
        self._comparing: asyncio.Task[None] | None = None
        self._failure: str | None = None
        """Why the last comparison failed, or None."""
        self._reported: set[str] = set()
        """Messages already logged about grants that have no effect."""
        self._begins_audit = settings.audit == "auto"
        self._watching: asyncio.Task[None] | None = None
        self._noting: asyncio.Task[None] | None = None
        self._used_at: dict[str, datetime] = {}
        self._use_noted_at = float("-inf")

    @property
    def has_other_admin(self) -> bool:
        """Whether the settings contain an admin's token."""
        return self._bootstrap is not None

    def now(self) -> datetime:
        """Return the time on this process's clock."""
        return self._clock.now()

    async def is_open(self) -> bool:
        """Return whether no credentials are required: there are no tokens and no identity provider.

        Raises:
            StorageUnavailable: the store cannot tell whether tokens exist.
        """
        if not self._may_be_open:
            return False
        await self._compare()
        return not self._known.tokens

    def seems_open(self) -> bool:
        """Return the last known `is_open` without waiting, and start a comparison if one is due."""
        if not self._may_be_open:
            return False
        if self._clock.monotonic() - self._compared_at >= COMPARED_AFTER_SECONDS:
            _ = self._begin_to_compare()
        return not self._known.tokens

    async def principal(self, headers: Headers) -> Principal | None:
        """Return the principal that these headers authenticate, or None.

        Raises:
            StorageUnavailable: principals and tokens cannot be read.
            IdentityProviderUnavailable: the identity provider's keys cannot be fetched.
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
        """Return the principal with its current grants, or None if it no longer exists.

        Raises:
            StorageUnavailable: the current grants cannot be read.
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
        """Compare with the store immediately, after this process has changed something.

        The change is committed, so this never fails: if the store does not answer for a while, this
        process sees the change no earlier than others do.
        """
        with suppress(MoorageError, TimeoutError):
            async with asyncio.timeout(CHANGE_WAIT_SECONDS_MAX):
                if self._comparing is not None:  # it may have started before the change
                    await asyncio.wait([self._comparing])
                await self._compare(after_seconds=0, stale_seconds=0)

    async def start(self) -> None:
        """Compare with the store once; keep comparing if the first token starts an audit log."""
        with suppress(MoorageError):
            await self.is_open()
        if self._may_be_open and self._begins_audit:
            self._watching = asyncio.create_task(self._watch_for_the_first())
            self._watching.add_done_callback(log_failure)

    async def close(self) -> None:
        """Store the times when tokens were used, and end all tasks."""
        if self._watching is not None:
            self._watching.cancel()
        if self._identities is not None:
            await self._identities.close()
        if self._comparing is not None:
            await asyncio.wait([self._comparing])
        if self._noting is not None:  # the comparison may have started it
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
        """Start a comparison if the last one is older than `after_seconds`.

        Wait for it if the last one is older than `stale_seconds`.
        """
        asked_at = self._clock.monotonic()
        if asked_at - self._compared_at < after_seconds:
            return
        comparing = self._begin_to_compare()
        if asked_at - self._compared_at < stale_seconds:
            return
        await asyncio.wait([comparing])
        if self._clock.monotonic() - self._compared_at >= STALE_AFTER_SECONDS:
            raise self._unknown()

    def _unknown(self) -> MoorageError:
        """Return a new instance of the error to raise while grants are unknown."""
        if self._failure is not None:
            return MoorageError(self._failure)
        return StorageUnavailable("It is not known at present who may do what.")

    def _begin_to_compare(self) -> asyncio.Task[None]:
        """Return the comparison under way, or start one."""
        if self._comparing is None or self._comparing.done():
            self._comparing = asyncio.create_task(self._look())
        return self._comparing

    async def _look(self) -> None:
        began_at = self._clock.monotonic()
        try:
            await self._read_if_changed()
        except StorageUnavailable:
            self._failure = None
        except Exception:  # noqa: BLE001 - whatever it was, the next comparison may succeed
            _log.exception("Comparing principals and tokens failed.")
            self._failure = "Principals and tokens cannot be read."
        else:
            self._compared_at = began_at
            self._begin_to_note_use(began_at)

    async def _read_if_changed(self) -> None:
        if await self.store.access.version() == self._known.version:
            return
        state = await self.store.access.state()
        self._report_useless_grants(state)
        self._known = _Known(state)
        if self._known.tokens:
            self.store.audit.begin()

    def _report_useless_grants(self, state: AccessState) -> None:
        """Log each grant that has no effect on this server, once."""
        messages = {message for row in state.principals for message in _useless_grants(row)}
        for message in sorted(messages - self._reported):
            _log.warning(message)
        self._reported = messages

    def _begin_to_note_use(self, now: float) -> None:
        """Start a task that stores when tokens were used.

        Comparisons continue while that task waits for the database.
        """
        if now - self._use_noted_at < USE_NOTED_AFTER_SECONDS:
            return
        if self._noting is None or self._noting.done():
            self._use_noted_at = now
            self._noting = asyncio.create_task(self._note_use())
            self._noting.add_done_callback(log_failure)

    async def _watch_for_the_first(self) -> None:
        """Compare every second until a token exists, even without requests.

        From then on, the audit log also covers what this process does on its own.
        """
        while not self._known.tokens:
            await self._clock.sleep(COMPARED_AFTER_SECONDS)
            with suppress(MoorageError):
                await self.is_open()

    async def _note_use(self) -> None:
        """Store when tokens were used; times that cannot be stored now are stored later."""
        used_at, self._used_at = self._used_at, {}
        if not used_at:
            return
        try:
            await self.store.access.record_use(used_at)
        except StorageUnavailable:
            self._used_at = {**used_at, **self._used_at}


def _useless_grants(row: PrincipalRow) -> Iterator[str]:
    """Yield a message for each grant of a principal or group that has no effect."""
    if not row.is_readable:
        yield f"The grants of the {row.kind} {row.name} cannot be read, and give nothing."
    for role in row.unknown_roles:
        yield (
            f"The {row.kind} {row.name} has the role {role}, which this version does not know;"
            " it gives nothing."
        )


class _Known:
    """Principals and tokens as of one comparison."""

    def __init__(self, state: AccessState) -> None:
        self.version = state.version
        self.tokens = {token.token_id: token for token in state.tokens}
        self._grants = {(row.kind, row.name): row.grants for row in state.principals}

    def owner(self, token_id: str, now: datetime) -> Principal | None:
        """Return the principal that owns a token, or None if the token is unknown or expired."""
        token = self.tokens.get(token_id)
        if token is None or (token.expires_at is not None and token.expires_at <= now):
            return None
        return Principal(
            token.principal, self._grants.get(("User", token.principal), ()), token_id=token_id
        )

    def identified(self, name: str, groups: tuple[str, ...], expires_at: datetime) -> Principal:
        """Return the principal for an identity, with its own grants and those of its groups."""
        grants = [*self._grants.get(("User", name), ())]
        for group in groups:
            grants += self._grants.get(("Group", group), ())
        return Principal(name, tuple(grants), groups=groups, expires_at=expires_at)


def _bearer(headers: Headers) -> bytes | None:
    """Return the credentials of a `Bearer` header (case-insensitive, RFC 9110), or None."""
    given = [value for name, value in headers if name == b"authorization"]
    if len(given) != 1:  # a proxy in front may have checked another of several
        return None
    scheme, _, credentials = given[0].partition(b" ")
    return credentials.strip() if scheme.lower() == b"bearer" else None


def _hash(secret: str) -> bytes:
    return sha256(secret.encode()).digest()
