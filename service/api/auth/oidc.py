"""Authenticate callers by tokens that an identity provider signed (OpenID Connect).

The service only verifies such tokens; signing in is between the caller and the provider.
"""

import asyncio
import importlib
import logging
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

import httpx
import msgspec

from service.api.http.problems import IdentityProviderUnavailable
from service.model.core.access import is_name
from service.runtime.tasks import log_failure
from service.scheduler.protocol.ports import Clock
from service.settings import Settings

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA", "Ed25519")  # fmt: skip
"""The accepted signature algorithms: only asymmetric ones, none with a shared secret."""
LEEWAY_SECONDS = 30
KEYS_KEPT_SECONDS = 3600.0
KEYS_FETCHED_AFTER_SECONDS = 10.0
"""The minimum time between two fetches of keys, even if tokens name unknown keys."""
FETCH_SECONDS_MAX = 5.0
"""How long fetching the discovery document and the keys may take in total."""
VERIFIED_KEPT_SECONDS = 60.0
VERIFIED_KEPT_MAX = 1000
GROUPS_MAX = 1000
NO_TYPE = "none"
"""The type assumed for tokens whose header has no `typ`."""

_log = logging.getLogger(__name__)


class Identity(msgspec.Struct, frozen=True):
    """A token's bearer, as described by the token's claims."""

    name: str
    groups: tuple[str, ...]
    expires_at: datetime


class IdentityProvider:
    """An issuer of tokens, whose keys are fetched as needed."""

    def __init__(
        self, settings: Settings, clock: Clock, transport: httpx.AsyncBaseTransport | None = None
    ) -> None:
        assert settings.oidc_issuer is not None
        assert settings.oidc_audience
        self._jwt = importlib.import_module("joserfc.jwt")
        self._key_set = importlib.import_module("joserfc.jwk").KeySet
        self._refusals: tuple[type[Exception], ...] = (
            importlib.import_module("joserfc.errors").JoseError,
            httpx.HTTPError,
            httpx.InvalidURL,
            KeyError,
            TimeoutError,
            TypeError,
            ValueError,
        )
        self._issuer = settings.oidc_issuer
        self._keys_url = settings.oidc_keys_url
        self._name_claim = settings.oidc_name_claim
        self._name_prefix = settings.oidc_name_prefix
        self._groups_claim = settings.oidc_groups_claim
        self._types = frozenset(map(_type, settings.oidc_token_types.split(",")))
        self._scopes = frozenset(settings.oidc_scope.split())
        self._clock = clock
        self._transport = transport
        self._claims = self._jwt.JWTClaimsRegistry(
            now=lambda: int(clock.now().timestamp()),
            leeway=LEEWAY_SECONDS,
            iss={"essential": True, "value": settings.oidc_issuer},
            aud={"essential": True, "value": settings.oidc_audience},
            exp={"essential": True},
        )
        self._keys: Any = None
        self._fetched_at = self._tried_at = float("-inf")
        self._fetching: asyncio.Task[None] | None = None
        self._verified: dict[bytes, tuple[float, Identity]] = {}

    async def identity(self, token: str) -> Identity | None:
        """Return the bearer of a token, or None if the token is invalid.

        This does not wait if the signing key is known already.

        Raises:
            IdentityProviderUnavailable: the provider's keys have never been fetched successfully.
        """
        if token.count(".") != 2:  # noqa: PLR2004 - header, claims, signature
            return None
        digest = sha256(token.encode()).digest()
        if (known := self._remembered(digest)) is not None:
            return known
        identity = self._verify_by_known(token)
        if identity is None and await self._have_newer_keys():
            identity = self._verify(token)
        if identity is not None:
            self._remember(digest, identity)
        return identity

    async def close(self) -> None:
        """Stop fetching keys."""
        if self._fetching is not None:
            self._fetching.cancel()
            await asyncio.wait([self._fetching])

    def _verify_by_known(self, token: str) -> Identity | None:
        """Verify a token with the known keys, and refresh old keys in the background."""
        if self._keys is None:
            return None
        if self._clock.monotonic() - self._fetched_at >= KEYS_KEPT_SECONDS:
            self._begin_to_fetch()
        return self._verify(token)

    def _verify(self, token: str) -> Identity | None:
        try:
            decoded = self._jwt.decode(token, self._keys, algorithms=ALGORITHMS)
            self._claims.validate(decoded.claims)
            self._check_purpose(decoded.header.get("typ", NO_TYPE), decoded.claims)
            return self._identity(decoded.claims)
        except self._refusals as error:
            _log.debug("A token of the identity provider is refused: %s", error)
            return None

    def _check_purpose(self, type_: object, claims: Mapping[str, Any]) -> None:
        """Check that a token is an access token with the scopes that the settings require.

        Raises:
            ValueError: the token is for something else, or lacks a scope.
        """
        if _type(str(type_)) not in self._types:
            raise ValueError(f"Tokens of the type {type_!r:.100} are not taken.")
        if missing := self._scopes - _scopes(claims):
            raise ValueError(f"The scope lacks {', '.join(sorted(missing))}.")

    def _identity(self, claims: Mapping[str, Any]) -> Identity:
        name = claims.get(self._name_claim)
        if not isinstance(name, str) or not name or not is_name(self._name_prefix + name):
            raise ValueError(f"The claim {self._name_claim} names nobody.")
        groups = _listed(claims.get(self._groups_claim, ()))[:GROUPS_MAX]
        return Identity(
            name=self._name_prefix + name,
            groups=tuple(group for group in groups if isinstance(group, str) and is_name(group)),
            expires_at=datetime.fromtimestamp(claims["exp"] + LEEWAY_SECONDS, UTC),
        )

    def _remembered(self, digest: bytes) -> Identity | None:
        verified_at, identity = self._verified.get(digest, (float("-inf"), None))
        if self._clock.monotonic() - verified_at >= VERIFIED_KEPT_SECONDS:
            return None
        return identity if identity and identity.expires_at > self._clock.now() else None

    def _remember(self, digest: bytes, identity: Identity) -> None:
        if len(self._verified) >= VERIFIED_KEPT_MAX:
            self._verified.clear()
        self._verified[digest] = (self._clock.monotonic(), identity)

    async def _have_newer_keys(self) -> bool:
        """Fetch the keys again, or return False if the last attempt is too recent."""
        fetching = self._begin_to_fetch()
        if fetching is not None:
            await asyncio.wait([fetching])
        if self._keys is None:
            raise IdentityProviderUnavailable(f"The keys of {self._issuer} cannot be had.")
        return fetching is not None

    def _begin_to_fetch(self) -> asyncio.Task[None] | None:
        """Return a running fetch of the keys, or None if the last one is too recent."""
        if self._fetching is not None and not self._fetching.done():
            return self._fetching
        now = self._clock.monotonic()
        if now - self._tried_at < KEYS_FETCHED_AFTER_SECONDS:
            return None
        self._tried_at = now
        self._fetching = asyncio.create_task(self._fetch())
        self._fetching.add_done_callback(log_failure)
        return self._fetching

    async def _fetch(self) -> None:
        began_at = self._clock.monotonic()
        try:
            async with asyncio.timeout(FETCH_SECONDS_MAX):
                self._keys = await self._fetched()
            self._fetched_at = began_at
        except self._refusals as error:
            _log.warning("The keys of %s cannot be had: %s", self._issuer, error)

    async def _fetched(self) -> Any:
        async with httpx.AsyncClient(transport=self._transport, timeout=None) as client:  # noqa: S113 - the fetch has one
            url = self._keys_url or await self._discovered(client)
            return self._key_set.import_key_set(await _json(client, url))

    async def _discovered(self, client: httpx.AsyncClient) -> str:
        url = f"{self._issuer.rstrip('/')}/.well-known/openid-configuration"
        document = await _json(client, url)
        keys_url = document.get("jwks_uri")
        if document.get("issuer") != self._issuer or not str(keys_url).startswith("https://"):
            raise ValueError(f"{url} speaks of another issuer, or names no jwks_uri of HTTPS.")
        return str(keys_url)


async def _json(client: httpx.AsyncClient, url: str) -> dict[str, Any]:
    answer = await client.get(url)
    answer.raise_for_status()
    document = answer.json()
    if not isinstance(document, dict):
        raise ValueError(f"{url} is not answered with an object.")  # noqa: TRY004 - wrong data
    return document


def _listed(groups: object) -> Sequence[object]:
    """Return the groups as a sequence, since some providers send a single group as a string."""
    return groups if isinstance(groups, list) else [groups]


def _type(media_type: str) -> str:
    """Return a token's type in lower case without `application/`, which is optional (RFC 7515)."""
    return media_type.strip().lower().removeprefix("application/")


def _scopes(claims: Mapping[str, Any]) -> frozenset[str]:
    """Return the words of `scope` (RFC 9068), or of `scp`, which some providers send instead."""
    claim = claims.get("scope", claims.get("scp", ""))
    words = claim.split() if isinstance(claim, str) else _listed(claim)
    return frozenset(word for word in words if isinstance(word, str))
