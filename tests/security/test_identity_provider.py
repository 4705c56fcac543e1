"""Tokens of an identity provider: only those that it signed for us, as long as they hold, with their groups' grants."""

import asyncio
import hmac
from base64 import urlsafe_b64encode
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

import httpx
import msgspec
import pytest
from joserfc import jwt
from joserfc.jwk import ECKey, KeySet, RSAKey

from service.api.auth.authentication import Authentication
from service.api.auth.oidc import (
    KEYS_FETCHED_AFTER_SECONDS,
    KEYS_KEPT_SECONDS,
    LEEWAY_SECONDS,
    IdentityProvider,
)
from service.api.http.problems import IdentityProviderUnavailable
from service.model.core.access import ADMIN, Grant, Principal
from service.runtime.ids import RandomIds
from service.settings import Settings
from tests.api.harness import HurriedClock
from tests.support.memory_store.store import MemoryStore
from tests.waiting import PATIENCE_SECONDS, once

ISSUER = "https://id.example"
SETTINGS = Settings(oidc_issuer=ISSUER, oidc_audience="moorage")
KEYS = KeySet(
    [RSAKey.generate_key(2048, {"kid": "rsa"}), ECKey.generate_key("P-256", {"kid": "ec"})]
)
FOREIGN = RSAKey.generate_key(2048, {"kid": "rsa"})


class Provider:
    """An identity provider: its discovery document, its keys, and what it signs."""

    def __init__(self, clock: HurriedClock) -> None:
        self.clock = clock
        self.keys = KEYS
        self.asked: list[str] = []
        self.hosts: set[str] = set()
        self.reachable = True
        self.issuer = ISSUER
        self.told_keys: dict[str, Any] | None = None
        """What it answers in place of its keys."""
        self.answers = asyncio.Event()
        """It is asked in vain until this is set."""
        self.answers.set()

    def transport(self) -> httpx.MockTransport:
        return httpx.MockTransport(self._answer)

    async def _answer(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request.url.path)
        self.hosts.add(request.url.host)
        await self.answers.wait()
        if not self.reachable:
            raise httpx.ConnectError("refused")
        if request.url.path == "/.well-known/openid-configuration":
            return httpx.Response(200, json={"issuer": self.issuer, "jwks_uri": f"{ISSUER}/keys"})
        return httpx.Response(200, json=self.told_keys or self.keys.as_dict(private=False))

    def claims(self, **other: Any) -> dict[str, Any]:
        now = int(self.clock.now().timestamp())
        claims = {"iss": ISSUER, "aud": "moorage", "sub": "ada", "exp": now + 600, "iat": now}
        merged = {**claims, "groups": ["devs"], **other}
        return {name: value for name, value in merged.items() if value is not None}

    def sign(
        self,
        key: Any = None,
        header: Mapping[str, str] | None = None,
        type_: str | None = "at+jwt",
        **claims: Any,
    ) -> str:
        key = key or KEYS.keys[0]
        header = header or {"alg": "RS256", "kid": "rsa"}
        algorithms, told = [header["alg"]], self.claims(**claims)
        return jwt.encode(dict(header), told, key, algorithms=algorithms, default_type=type_)


@pytest.fixture
def provider() -> Provider:
    return Provider(HurriedClock())


@pytest.fixture
async def identities(provider: Provider) -> AsyncIterator[IdentityProvider]:
    identities = IdentityProvider(SETTINGS, provider.clock, provider.transport())
    yield identities
    await identities.close()


async def test_whom_the_provider_vouches_for_is_known_with_their_groups(
    identities: IdentityProvider, provider: Provider
):
    identity = await identities.identity(provider.sign(groups=["devs", "ops"]))
    assert identity
    assert (identity.name, identity.groups) == ("oidc:ada", ("devs", "ops"))


async def test_groups_that_nobody_can_name_are_left_out(
    identities: IdentityProvider, provider: Provider
):
    identity = await identities.identity(provider.sign(groups=["/devs", "a\0", "", 7]))
    assert identity
    assert identity.groups == ("/devs",)


async def test_a_key_on_a_curve_signs_as_well(identities: IdentityProvider, provider: Provider):
    token = provider.sign(KEYS.keys[1], {"alg": "ES256", "kid": "ec"})
    assert await identities.identity(token)


async def test_keys_are_asked_for_once(identities: IdentityProvider, provider: Provider):
    for name in ("ada", "bob"):
        assert await identities.identity(provider.sign(sub=name))
    assert provider.asked == ["/.well-known/openid-configuration", "/keys"]


def base64_of(raw: bytes) -> str:
    return urlsafe_b64encode(raw).rstrip(b"=").decode()


def signed_with_a_secret(claims: str, secret: bytes) -> str:
    header = b'{"alg":"HS256","kid":"rsa"}'
    signed = f"{base64_of(header)}.{claims}"
    return f"{signed}.{base64_of(hmac.digest(secret, signed.encode(), 'sha256'))}"


REFUSED = {
    "another issuer": {"iss": "https://id.evil"},
    "another audience": {"aud": "shop"},
    "no audience": {"aud": None},
    "no end": {"exp": None},
    "nobody": {"sub": None},
    "no text as a name": {"sub": 7},
    "not yet": {"nbf": 4_000_000_000},
    "a name that cannot be kept": {"sub": "a\0b"},
    "a name that shows as another": {"sub": "\u202eada"},
    "a name without end": {"sub": "a" * 508},
}


@pytest.mark.parametrize("claims", REFUSED.values(), ids=REFUSED)
async def test_a_token_that_is_not_for_us_proves_nothing(
    identities: IdentityProvider, provider: Provider, claims: dict[str, Any]
):
    assert await identities.identity(provider.sign(**claims)) is None


TYPES = {
    "at+jwt": {"at+jwt", "AT+JWT", "application/at+jwt"},
    "at+jwt, JWT": {"at+jwt", "AT+JWT", "application/at+jwt", "JWT", "jwt"},
    "none,jwt": {"JWT", "jwt", None},
}


@pytest.mark.parametrize("taken", TYPES)
async def test_only_tokens_of_the_types_that_are_set_are_taken(provider: Provider, taken: str):
    settings = msgspec.structs.replace(SETTINGS, oidc_token_types=taken)
    identities = IdentityProvider(settings, provider.clock, provider.transport())
    types = {*TYPES["at+jwt, JWT"], "logout+jwt", "dpop+jwt", "", None}
    tokens = {each: provider.sign(type_=each) for each in types}
    assert {each for each in types if await identities.identity(tokens[each])} == TYPES[taken]


def test_access_tokens_alone_are_taken_by_default():
    assert SETTINGS.oidc_token_types == "at+jwt"


@pytest.mark.parametrize(
    ("claims", "taken"),
    [
        ({"scope": "moorage.place"}, True),
        ({"scope": "openid moorage.place profile"}, True),
        ({"scp": ["openid", "moorage.place"]}, True),
        ({"scp": "moorage.place"}, True),
        ({"scope": "openid", "scp": "moorage.place"}, False),
        ({"scope": "moorage.placed moorage"}, False),
        ({"scope": None}, False),
        ({"scope": {"moorage.place": 1}}, False),
        ({"scp": [{}, 7]}, False),
        ({}, False),
    ],
)
async def test_a_token_has_to_have_the_scope_that_is_set(
    provider: Provider,
    claims: dict[str, Any],
    taken: bool,  # noqa: FBT001 - a parameter of the test
):
    settings = msgspec.structs.replace(SETTINGS, oidc_scope="moorage.place")
    identities = IdentityProvider(settings, provider.clock, provider.transport())
    assert bool(await identities.identity(provider.sign(**claims))) == taken


async def test_a_token_proves_nothing_once_it_has_ended(
    identities: IdentityProvider, provider: Provider
):
    token = provider.sign()
    assert await identities.identity(token)
    provider.clock.advance(600 + LEEWAY_SECONDS + 1)
    assert await identities.identity(token) is None


async def test_what_others_signed_proves_nothing(identities: IdentityProvider, provider: Provider):
    header, claims, _ = provider.sign().split(".")
    forged = {
        "another key of that name": provider.sign(FOREIGN),
        "the public key as a secret": signed_with_a_secret(
            claims, KEYS.keys[0].as_pem(private=False)
        ),
    }
    unsigned = "eyJhbGciOiJub25lIn0"  # {"alg":"none"}
    forged |= {
        "unsigned": f"{unsigned}.{claims}.",
        "unsigned, with a signature": f"{unsigned}.{claims}.AAAA",
        "cut": f"{header}.{claims}.",
        "no base64": "!.!.!",
        "nothing": "..",
        "other claims": f"{header}.{provider.sign(sub='root').split('.')[1]}.{_}",
    }
    taken = [name for name, token in forged.items() if await identities.identity(token)]
    assert not taken


@pytest.mark.parametrize(
    "header",
    [
        {"jwk": FOREIGN.as_dict(private=False)},
        {"jku": "https://id.evil/keys"},
        {"x5u": "https://id.evil/certificate"},
        {"x5c": ["MIIB"]},
    ],
    ids=lambda header: next(iter(header)),
)
async def test_no_token_says_by_which_key_it_is_verified(
    identities: IdentityProvider, provider: Provider, header: dict[str, Any]
):
    assert await identities.identity(provider.sign())
    provider.clock.advance(KEYS_FETCHED_AFTER_SECONDS)
    token = provider.sign(FOREIGN, {"alg": "RS256", "kid": "foreign", **header})
    assert await identities.identity(token) is None
    assert provider.hosts == {"id.example"}


@pytest.mark.parametrize("critical", [5, [[]], ["exp"], {}, None, "b64", [5]], ids=repr)
async def test_a_header_that_no_library_expects_is_no_token(
    identities: IdentityProvider, provider: Provider, critical: object
):
    assert await identities.identity(provider.sign())
    header = base64_of(msgspec.json.encode({"alg": "RS256", "kid": "rsa", "crit": critical}))
    _, claims, signature = provider.sign().split(".")
    assert await identities.identity(f"{header}.{claims}.{signature}") is None


@pytest.mark.parametrize("keys", [5, None, [5], [{"kty": []}], {}], ids=repr)
async def test_keys_that_are_none_are_told_as_a_provider_that_cannot_be_asked(
    identities: IdentityProvider, provider: Provider, caplog: pytest.LogCaptureFixture, keys: object
):
    provider.told_keys = {"keys": keys}
    with pytest.raises(IdentityProviderUnavailable):
        await identities.identity(provider.sign())
    assert "cannot be had" in caplog.text


async def test_new_keys_are_looked_for_but_not_at_every_guess(
    identities: IdentityProvider, provider: Provider
):
    assert await identities.identity(provider.sign())
    fresh = RSAKey.generate_key(2048, {"kid": "fresh"})
    provider.keys = KeySet([fresh])
    token = provider.sign(fresh, {"alg": "RS256", "kid": "fresh"})
    for _ in range(5):
        assert await identities.identity(token) is None
    assert provider.asked.count("/keys") == 1
    provider.clock.advance(KEYS_FETCHED_AFTER_SECONDS)
    assert await identities.identity(token)
    assert provider.asked.count("/keys") == 2


async def test_whose_key_is_known_never_waits_for_new_ones(
    identities: IdentityProvider, provider: Provider
):
    assert await identities.identity(provider.sign())
    provider.answers.clear()
    provider.clock.advance(KEYS_FETCHED_AFTER_SECONDS)
    unknown = provider.sign(FOREIGN, {"alg": "RS256", "kid": "unknown"})
    guesses = [asyncio.create_task(identities.identity(unknown)) for _ in range(2)]
    await once(has_asked_for_keys(provider, 2))
    async with asyncio.timeout(PATIENCE_SECONDS):
        assert await identities.identity(provider.sign(sub="bob"))
        provider.clock.advance(KEYS_KEPT_SECONDS)
        assert await identities.identity(provider.sign(sub="eve"))
    assert not any(guess.done() for guess in guesses)
    provider.answers.set()
    assert await asyncio.gather(*guesses) == [None, None]
    assert provider.asked.count("/keys") == 2


async def test_old_keys_are_fetched_anew_while_they_serve(
    identities: IdentityProvider, provider: Provider
):
    assert await identities.identity(provider.sign())
    provider.clock.advance(KEYS_KEPT_SECONDS)
    assert await identities.identity(provider.sign(sub="bob"))
    await once(has_asked_for_keys(provider, 2))


async def test_a_provider_that_never_ends_its_answers_is_given_up(
    identities: IdentityProvider, provider: Provider, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("service.api.auth.oidc.FETCH_SECONDS_MAX", 0.01)
    provider.answers.clear()
    with pytest.raises(IdentityProviderUnavailable):
        async with asyncio.timeout(PATIENCE_SECONDS):
            await identities.identity(provider.sign())


def has_asked_for_keys(provider: Provider, times: int) -> Callable[[], Awaitable[bool]]:
    """Whether a provider was asked for its keys, or where they are, so often."""

    async def has_asked() -> bool:
        return provider.asked.count("/.well-known/openid-configuration") >= times

    return has_asked


async def test_known_keys_serve_while_the_provider_cannot_be_reached(
    identities: IdentityProvider, provider: Provider
):
    provider.reachable = False
    with pytest.raises(IdentityProviderUnavailable):
        await identities.identity(provider.sign())
    provider.reachable = True
    provider.clock.advance(KEYS_FETCHED_AFTER_SECONDS)
    assert await identities.identity(provider.sign())
    provider.reachable = False
    provider.clock.advance(3600)
    assert await identities.identity(provider.sign(sub="bob"))


async def test_a_discovery_document_of_another_issuer_is_not_believed(
    identities: IdentityProvider, provider: Provider
):
    provider.issuer = "https://id.evil"
    with pytest.raises(IdentityProviderUnavailable):
        await identities.identity(provider.sign())
    assert "/keys" not in provider.asked


async def test_an_identity_has_the_grants_of_its_name_and_of_its_groups(provider: Provider):
    clock = provider.clock
    store = MemoryStore(clock.now, RandomIds().commit_id)
    shop, bank = Grant("reader", "default", "shop"), Grant("reader", "default", "bank")
    await store.access.put_principal("User", "oidc:ada", [shop], keep_admin=True)
    await store.access.put_principal("User", "ada", [ADMIN], keep_admin=True)
    await store.access.put_principal("Group", "devs", [bank], keep_admin=True)
    await store.access.put_principal("User", "oidc:devs", [ADMIN], keep_admin=True)
    identities = IdentityProvider(SETTINGS, clock, provider.transport())
    authentication = Authentication(store, SETTINGS, clock, identities)

    async def caller(token: str) -> Principal | None:
        return await authentication.principal([(b"authorization", f"Bearer {token}".encode())])

    ada = await caller(provider.sign())
    assert ada
    assert (ada.name, ada.grants) == ("oidc:ada", (shop, bank))
    stranger = await caller(provider.sign(sub="eve", groups="none"))
    assert stranger
    assert stranger.grants == ()
    assert await authentication.principal([]) is None
    await store.access.delete_principal("Group", "devs", keep_admin=True)
    clock.advance(5)
    now = await authentication.current(ada)
    assert now
    assert now.grants == (shop,)
    clock.advance(3600)
    assert await authentication.current(ada) is None
