"""Tokens and grants: who is let in, to what, and until when."""

import asyncio
import itertools
import re
from collections.abc import AsyncIterator, Awaitable, Mapping
from contextlib import AsyncExitStack
from datetime import datetime, timedelta
from typing import Any

import asyncpg
import httpx
import pytest

from moorage.cli.changes.grants import path_of
from service.api.auth.authentication import (
    STALE_AFTER_SECONDS,
    USE_NOTED_AFTER_SECONDS,
    Authentication,
)
from service.api.resources.handlers import openapi_document
from service.model.core.access import (
    ADMIN as ADMIN_GRANT,
    EVERYBODY,
    AccessState,
    AccessVersion,
    Principal,
    TokenRow,
)
from service.model.core.errors import MoorageError, StorageUnavailable
from service.model.log.audit_chain import ITSELF
from service.runtime.ids import RandomIds
from service.settings import Settings
from service.store.db.connector import data_source_name
from service.store.postgres import PostgresStore
from tests.api.conftest import MakeHarness
from tests.api.harness import CLUSTER, Harness, HurriedClock, problem
from tests.security.callers import Callers, by
from tests.support.memory_store.access import MemoryAccess
from tests.support.memory_store.state import MemoryState
from tests.support.memory_store.store import MemoryStore
from tests.waiting import PATIENCE_SECONDS

ADMIN = [{"role": "admin"}]
SHOP = [{"role": "reader", "cluster": "default", "namespace": "shop"}]
BOOTSTRAP = "the-token-of-the-settings-of-this-server"
PODS_OF_SHOP = f"{CLUSTER}/namespaces/shop/pods"


def bearer(token: str | None) -> dict[str, str]:
    return {} if token is None else {"authorization": f"Bearer {token}"}


async def put(
    harness: Harness,
    name: str,
    grants: list[dict[str, str]],
    by: str | None = None,
    collection: str = "principals",
) -> httpx.Response:
    path = f"/v1/{collection}/{name}"
    return await harness.client.put(path, json={"grants": grants}, headers=bearer(by))


async def issue(harness: Harness, name: str, by: str | None = None, **settings: Any) -> str:
    path = f"/v1/principals/{name}/tokens"
    answer = await harness.client.post(path, json=settings, headers=bearer(by))
    assert answer.status_code == 201, answer.text
    return str(answer.json()["token"])


async def close_the_door(harness: Harness) -> str:
    """Make an admin of a server that asks nobody who they are; its token."""
    await put(harness, "root", ADMIN)
    return await issue(harness, "root")


async def status(harness: Harness, path: str, token: str | None) -> int:
    return (await harness.client.get(path, headers=bearer(token))).status_code


async def test_the_first_token_closes_the_door(over_each_store: Harness):
    harness = over_each_store
    assert await status(harness, PODS_OF_SHOP, None) == 200
    await put(harness, "root", ADMIN)
    assert await status(harness, PODS_OF_SHOP, None) == 200
    root = await issue(harness, "root")
    assert await status(harness, PODS_OF_SHOP, None) == 401
    assert await status(harness, PODS_OF_SHOP, root) == 200
    assert await status(harness, "/livez", None) == 200


async def test_the_first_token_is_an_admins(harness: Harness):
    await put(harness, "ci", SHOP)
    answer = await harness.client.post("/v1/principals/ci/tokens", json={})
    assert problem(answer, 409) == "NoAdminLeft"
    assert await status(harness, PODS_OF_SHOP, None) == 200


async def test_the_last_admin_cannot_lock_everybody_out(over_each_store: Harness):
    harness = over_each_store
    root = await close_the_door(harness)
    token_id = root.split("_")[1]
    for answer in (
        await put(harness, "root", SHOP, by=root),
        await harness.client.delete("/v1/principals/root", headers=bearer(root)),
        await harness.client.delete(f"/v1/tokens/{token_id}", headers=bearer(root)),
    ):
        assert problem(answer, 409) == "NoAdminLeft"
    assert await status(harness, PODS_OF_SHOP, root) == 200


async def test_the_token_of_the_settings_is_an_admin_that_needs_no_other(
    make_harness: MakeHarness,
):
    harness = await make_harness(token=BOOTSTRAP)
    await put(harness, "ci", SHOP, by=BOOTSTRAP)
    token = await issue(harness, "ci", by=BOOTSTRAP)
    assert await status(harness, PODS_OF_SHOP, token) == 200
    gone = await harness.client.delete("/v1/principals/ci", headers=bearer(BOOTSTRAP))
    assert gone.status_code == 200
    assert await status(harness, PODS_OF_SHOP, token) == 401
    assert await status(harness, PODS_OF_SHOP, BOOTSTRAP) == 200
    assert await status(harness, PODS_OF_SHOP, None) == 401


@pytest.fixture
async def by_provider(make_harness: MakeHarness) -> tuple[Harness, dict[str, str]]:
    """A server with the token of one admin, and the headers of another, who is one by a group of an identity provider."""
    clock = HurriedClock()
    harness = await make_harness(MemoryStore(clock.now, RandomIds().commit_id), clock)
    await close_the_door(harness)
    await harness.store.access.put_principal("Group", "admins", [ADMIN_GRANT], keep_admin=True)
    end = clock.now() + timedelta(hours=1)
    ada = Principal("oidc:ada", (ADMIN_GRANT,), groups=("admins",), expires_at=end)
    Callers(ada).call(harness)
    return harness, by("oidc:ada")


async def test_an_admin_of_an_identity_provider_needs_no_token(
    by_provider: tuple[Harness, dict[str, str]],
):
    harness, headers = by_provider
    (token,) = (await harness.store.access.state()).tokens
    gone = await harness.client.delete(f"/v1/tokens/{token.token_id}", headers=headers)
    assert gone.status_code == 200
    await harness.client.put("/v1/principals/ci", json={"grants": SHOP}, headers=headers)
    made = await harness.client.post("/v1/principals/ci/tokens", json={}, headers=headers)
    assert made.status_code == 201


async def test_an_admin_of_an_identity_provider_does_not_lock_everybody_out(
    by_provider: tuple[Harness, dict[str, str]],
):
    harness, headers = by_provider
    (token,) = (await harness.store.access.state()).tokens
    await harness.client.delete(f"/v1/tokens/{token.token_id}", headers=headers)
    path = "/v1/groups/admins"
    for has_tokens in (False, True):
        if has_tokens:
            await harness.client.put("/v1/principals/ci", json={"grants": SHOP}, headers=headers)
            await harness.client.post("/v1/principals/ci/tokens", json={}, headers=headers)
        for answer in (
            await harness.client.put(path, json={"grants": SHOP}, headers=headers),
            await harness.client.delete(path, headers=headers),
        ):
            assert problem(answer, 409) == "NoAdminLeft"
    for other, grants in (
        ("/v1/principals/oidc:ada", SHOP),
        (path, [*ADMIN, *SHOP]),
        ("/v1/principals/oidc:ada", ADMIN),
        (path, SHOP),
    ):
        answer = await harness.client.put(other, json={"grants": grants}, headers=headers)
        assert answer.status_code == 200, answer.text


async def test_a_group_of_an_identity_provider_alone_is_no_admin(harness: Harness):
    await harness.store.access.put_principal("Group", "admins", [ADMIN_GRANT], keep_admin=True)
    root = await close_the_door(harness)
    path = f"/v1/tokens/{root.split('_')[1]}"
    answer = await harness.client.delete(path, headers=bearer(root))
    assert problem(answer, 409) == "NoAdminLeft"


async def test_several_tokens_at_once_so_that_one_can_follow_the_other(harness: Harness):
    root = await close_the_door(harness)
    await put(harness, "ci", SHOP, by=root)
    old, new = [await issue(harness, "ci", by=root) for _ in range(2)]
    assert [await status(harness, PODS_OF_SHOP, each) for each in (old, new)] == [200, 200]
    revoked = await harness.client.delete(f"/v1/tokens/{old.split('_')[1]}", headers=bearer(root))
    assert revoked.status_code == 200
    assert [await status(harness, PODS_OF_SHOP, each) for each in (old, new)] == [401, 200]


async def test_a_token_ends_when_it_was_said_to(make_harness: MakeHarness):
    clock = HurriedClock()
    store = MemoryStore(clock.now, RandomIds().commit_id)
    harness = await make_harness(store, clock)
    root = await close_the_door(harness)
    await put(harness, "ci", SHOP, by=root)
    token = await issue(harness, "ci", by=root, expiresInSeconds=3600)
    clock.advance(3590)
    assert await status(harness, PODS_OF_SHOP, token) == 200
    clock.advance(11)
    assert await status(harness, PODS_OF_SHOP, token) == 401
    assert await status(harness, PODS_OF_SHOP, root) == 200


async def test_secrets_are_told_once_and_never_again(harness: Harness):
    root = await close_the_door(harness)
    secret = root.split("_", 2)[2]
    shown = await harness.client.get("/v1/principals", headers=bearer(root))
    (principal,) = shown.json()["items"]
    assert principal["tokens"][0]["id"] == root.split("_")[1]
    assert secret not in shown.text
    (stored,) = (await harness.store.access.state()).tokens
    assert secret.encode() not in stored.secret_hash


@pytest.mark.parametrize("spoilt", ["id", "secret", "cut", "longer", "prefix", "of another"])
async def test_what_is_not_exactly_a_token_is_none(harness: Harness, spoilt: str):
    root = await close_the_door(harness)
    other = await issue(harness, "root", by=root)
    prefix, token_id, secret = root.split("_", 2)
    tokens = {
        "id": f"{prefix}_{'0' * 16}_{secret}",
        "secret": f"{prefix}_{token_id}_{'A' * 43}",
        "cut": root[:-1],
        "longer": root + "A",
        "prefix": root.removeprefix("mrg_"),
        "of another": f"{prefix}_{token_id}_{other.split('_', 2)[2]}",
    }
    assert await status(harness, PODS_OF_SHOP, tokens[spoilt]) == 401


async def test_other_processes_see_within_a_second_what_was_changed(make_harness: MakeHarness):
    clock = HurriedClock()
    store = MemoryStore(clock.now, RandomIds().commit_id)
    here, elsewhere = [await make_harness(store, clock) for _ in range(2)]
    root = await close_the_door(here)
    await put(here, "ci", SHOP, by=root)
    clock.advance(1)
    assert await status(elsewhere, "/v1/whoami", root) == 200
    clock.advance(0.3)
    token = await issue(here, "ci", by=root)
    assert await status(elsewhere, PODS_OF_SHOP, token) == 200, "a new token is looked for"
    await here.client.delete(f"/v1/tokens/{token.split('_')[1]}", headers=bearer(root))
    clock.advance(STALE_AFTER_SECONDS)
    assert await status(elsewhere, PODS_OF_SHOP, token) == 401


async def restore_access(database_url: str, before: asyncpg.Record) -> None:
    """Set the row by which processes notice changes to what a backup has."""
    connection = await asyncpg.connect(data_source_name(database_url))
    try:
        await connection.execute("SET session_replication_role = replica")  # No triggers.
        await connection.execute("UPDATE access_state SET version = $1, tag = $2", *before.values())
    finally:
        await connection.close()


async def noted_access(database_url: str) -> asyncpg.Record:
    """Read the row by which processes notice changes, as a backup would have it."""
    connection = await asyncpg.connect(data_source_name(database_url))
    try:
        row = await connection.fetchrow("SELECT version, tag FROM access_state")
    finally:
        await connection.close()
    assert row is not None
    return row


async def test_a_revoked_token_is_refused_though_a_restore_set_the_counter_back(
    make_harness: MakeHarness, database_url: str
):
    async with AsyncExitStack() as stack:
        stores = [PostgresStore(database_url) for _ in range(2)]
        for store in stores:
            stack.push_async_callback(store.close)
        clock = HurriedClock()
        here, elsewhere = [await make_harness(store, clock) for store in stores]
        root = await close_the_door(here)
        await put(here, "ci", SHOP, by=root)
        token = await issue(here, "ci", by=root)
        backup = await noted_access(database_url)
        await put(here, "ci", SHOP, by=root)
        await put(here, "ci", SHOP, by=root)
        clock.advance(STALE_AFTER_SECONDS)
        assert await status(elsewhere, PODS_OF_SHOP, token) == 200
        known = (await here.store.access.version()).number
        await restore_access(database_url, backup)
        await here.client.delete(f"/v1/tokens/{token.split('_')[1]}", headers=bearer(root))
        await issue(here, "root", by=root)
        assert (await here.store.access.version()).number == known
        clock.advance(STALE_AFTER_SECONDS)
        assert await status(elsewhere, PODS_OF_SHOP, token) == 401
        assert await status(elsewhere, PODS_OF_SHOP, root) == 200


async def tamper_with_grants(database_url: str, grants: bytes) -> None:
    """Write the grants of `ci` as another version, or somebody at the database, would."""
    connection = await asyncpg.connect(data_source_name(database_url))
    try:
        await connection.execute("UPDATE principal SET grants = $1 WHERE name = 'ci'", grants)
        await connection.execute("UPDATE access_state SET version = version + 1")
    finally:
        await connection.close()


NEWER_GRANTS = (
    b'[{"role":"auditor","cluster":null},{"role":"reader","cluster":"default","namespace":"shop"}]'
)


@pytest.mark.parametrize(
    ("grants", "shown", "may"),
    [
        (NEWER_GRANTS, [{"role": "auditor"}, *SHOP], 200),
        (b'[{"role":"auditor","scope":[1]}]', [{"role": "auditor"}], 403),
        (b"[{", [], 403),
        (b'[{"role":7}]', [], 403),
    ],
)
async def test_grants_that_mean_nothing_here_give_nothing_and_harm_nobody_else(
    make_harness: MakeHarness,
    database_url: str,
    caplog: pytest.LogCaptureFixture,
    grants: bytes,
    shown: list[dict[str, str]],
    may: int,
):
    async with AsyncExitStack() as stack:
        store = PostgresStore(database_url)
        stack.push_async_callback(store.close)
        clock = HurriedClock()
        harness = await make_harness(store, clock)
        root = await close_the_door(harness)
        await put(harness, "ci", SHOP, by=root)
        token = await issue(harness, "ci", by=root)
        await tamper_with_grants(database_url, grants)
        for _ in range(2):
            clock.advance(STALE_AFTER_SECONDS)
            assert await status(harness, PODS_OF_SHOP, root) == 200
            assert await status(harness, PODS_OF_SHOP, token) == may
        told = [each for each in caplog.records if " ci " in each.message]
        assert len(told) == 1, "it is logged once"
        listed = (await harness.client.get("/v1/principals", headers=bearer(root))).json()["items"]
        assert {each["name"]: each["grants"] for each in listed} == {"ci": shown, "root": ADMIN}
        gone = await harness.client.delete("/v1/principals/ci", headers=bearer(root))
        assert gone.status_code == 200, gone.text
        assert await status(harness, PODS_OF_SHOP, token) == 401


async def test_a_fault_in_a_comparison_is_none_of_the_database_and_is_logged(
    make_harness: MakeHarness, caplog: pytest.LogCaptureFixture
):
    class Faulty(MemoryAccess):
        async def state(self) -> AccessState:
            raise KeyError("a bug")

    store = MemoryStore(HurriedClock().now, RandomIds().commit_id)
    store.access = Faulty(store.state)
    await store.access.put_principal("User", "root", [ADMIN_GRANT], keep_admin=True, caller=ITSELF)
    harness = await make_harness(store, token=BOOTSTRAP)
    answer = await harness.client.get(PODS_OF_SHOP, headers=bearer(f"mrg_{'0' * 16}_{'A' * 43}"))
    assert problem(answer, 500) == "Internal"
    assert "Comparing principals and tokens failed." in caplog.messages
    assert await status(harness, PODS_OF_SHOP, BOOTSTRAP) == 200
    headers = [(b"authorization", f"Bearer mrg_{'0' * 16}_{'A' * 43}".encode())]
    principal = harness.app.authentication.principal
    first, second = await asyncio.gather(
        principal(headers), principal(headers), return_exceptions=True
    )
    assert isinstance(first, MoorageError)
    assert first is not second, "one error for all would gather the tracebacks of all requests"


class Unreachable(MemoryAccess):
    """Principals that cannot be asked for from some moment on."""

    gone = False

    async def version(self) -> AccessVersion:
        if self.gone:
            raise StorageUnavailable("The database cannot be reached.")
        return await super().version()


async def test_what_could_not_be_compared_for_long_is_not_gone_by(make_harness: MakeHarness):
    clock = HurriedClock()
    store = MemoryStore(clock.now, RandomIds().commit_id)
    store.access = access = Unreachable(store.state)
    harness = await make_harness(store, clock, token=BOOTSTRAP)
    await put(harness, "ci", SHOP, by=BOOTSTRAP)
    token = await issue(harness, "ci", by=BOOTSTRAP)
    access.gone = True
    clock.advance(STALE_AFTER_SECONDS - 1)
    assert await status(harness, PODS_OF_SHOP, token) == 200
    clock.advance(1)
    answer = await harness.client.get(PODS_OF_SHOP, headers=bearer(token))
    assert problem(answer, 503) == "StorageUnavailable"
    assert await status(harness, PODS_OF_SHOP, BOOTSTRAP) == 200
    assert await status(harness, "/livez", token) == 200
    access.gone = False
    assert await status(harness, PODS_OF_SHOP, token) == 200


class Forgetful(Unreachable):
    """Principals that cannot be asked for once a token is made."""

    async def create_token(self, *arguments: Any, **named: Any) -> TokenRow:
        row = await super().create_token(*arguments, **named)
        self.gone = True
        return row


async def test_the_text_of_a_token_is_told_once_it_is_made_whatever_happens_then(
    make_harness: MakeHarness,
):
    clock = HurriedClock()
    store = MemoryStore(clock.now, RandomIds().commit_id)
    store.access = access = Forgetful(store.state)
    harness = await make_harness(store, clock, token=BOOTSTRAP)
    await put(harness, "ci", SHOP, by=BOOTSTRAP)
    clock.advance(STALE_AFTER_SECONDS)
    token = await issue(harness, "ci", by=BOOTSTRAP)
    access.gone = False
    assert await status(harness, PODS_OF_SHOP, token) == 200


async def test_a_change_is_answered_also_if_the_store_then_tells_nothing(
    monkeypatch: pytest.MonkeyPatch,
):
    clock = HurriedClock()
    store = MemoryStore(clock.now, RandomIds().commit_id)
    store.access = slow = Slow(store.state)
    authentication = Authentication(store, Settings(), clock)
    monkeypatch.setattr("service.api.auth.authentication.CHANGE_WAIT_SECONDS_MAX", 0.01)
    slow.answers = asyncio.Event()
    async with asyncio.timeout(PATIENCE_SECONDS):
        await authentication.changed()
    slow.answers.set()
    await authentication.close()


async def test_the_last_use_of_a_token_is_noted_by_the_minute(make_harness: MakeHarness):
    clock = HurriedClock()
    store = MemoryStore(clock.now, RandomIds().commit_id)
    harness = await make_harness(store, clock)
    root = await close_the_door(harness)
    assert "lastUsedAt" not in await token_shown(harness, root)
    clock.advance(60)
    first = (await token_shown(harness, root)).get("lastUsedAt")
    clock.advance(61)
    await token_shown(harness, root)
    clock.advance(61)
    later = (await token_shown(harness, root))["lastUsedAt"]
    assert later > (first or "")


class Unnoting(MemoryAccess):
    """It begins to note the use of tokens, and ends when the test lets it."""

    def __init__(self, state: MemoryState) -> None:
        super().__init__(state)
        self.began, self.go_on = asyncio.Event(), asyncio.Event()
        self.fails = False

    async def record_use(self, used_at: Mapping[str, datetime]) -> None:
        self.began.set()
        await self.go_on.wait()
        if self.fails:
            raise StorageUnavailable("The database cannot be reached.")
        await super().record_use(used_at)


@pytest.fixture
async def unnoting(
    make_harness: MakeHarness,
) -> AsyncIterator[tuple[Harness, HurriedClock, str]]:
    """A server that has begun to note the use of a token, and the token."""
    clock = HurriedClock()
    store = MemoryStore(clock.now, RandomIds().commit_id)
    store.access = access = Unnoting(store.state)
    harness = await make_harness(store, clock)
    root = await close_the_door(harness)
    await token_shown(harness, root)
    clock.advance(USE_NOTED_AFTER_SECONDS)
    using = asyncio.create_task(token_shown(harness, root))
    await access.began.wait()
    yield harness, clock, root
    access.go_on.set()
    await using


async def test_who_asks_is_known_also_while_the_use_of_tokens_cannot_be_noted(
    unnoting: tuple[Harness, HurriedClock, str],
):
    harness, clock, root = unnoting
    clock.advance(STALE_AFTER_SECONDS)
    async with asyncio.timeout(PATIENCE_SECONDS):
        assert await status(harness, PODS_OF_SHOP, root) == 200


async def test_a_use_that_could_not_be_noted_is_noted_later(
    unnoting: tuple[Harness, HurriedClock, str],
):
    harness, _, _ = unnoting
    authentication, access = harness.app.authentication, harness.store.access
    access.fails = True
    access.go_on.set()
    await authentication.close()
    (row,) = (await access.state()).tokens
    assert row.last_used_at is None
    access.fails = False
    await authentication.close()
    (row,) = (await access.state()).tokens
    assert row.last_used_at


async def token_shown(harness: Harness, token: str) -> dict[str, Any]:
    answer = await harness.client.get("/v1/principals/root", headers=bearer(token))
    return dict(answer.json()["tokens"][0])


@pytest.mark.parametrize("collection", ["principals", "groups"])
async def test_of_two_who_change_the_same_grants_one_is_told_to_read_them_again(
    over_each_store: Harness, collection: str
):
    path, client = f"/v1/{collection}/ci", over_each_store.client
    await put(over_each_store, "ci", SHOP, collection=collection)
    tag = (await client.get(path)).headers["etag"]
    asked = [
        client.put(path, json={"grants": [*SHOP, {"role": role}]}, headers={"if-match": tag})
        for role in ("observer", "editor")
    ]
    first, second = sorted(await asyncio.gather(*asked), key=lambda answer: answer.status_code)
    assert first.status_code == 200
    assert problem(second, 412) == "PreconditionFailed"
    now = await client.get(path)
    assert now.json()["grants"] == first.json()["grants"]
    assert now.headers["etag"] == first.headers["etag"] != tag
    gone = await client.delete(path, headers={"if-match": tag})
    assert problem(gone, 412) == "PreconditionFailed"
    gone = await client.delete(path, headers={"if-match": now.headers["etag"]})
    assert gone.status_code == 200
    again = await client.put(path, json={"grants": []}, headers={"if-match": "*"})
    assert problem(again, 412) == "PreconditionFailed"


async def test_of_two_who_make_the_same_principal_one_finds_it_there(over_each_store: Harness):
    def make() -> Awaitable[httpx.Response]:
        body, headers = {"grants": SHOP}, {"if-none-match": "*"}
        return over_each_store.client.put("/v1/principals/ci", json=body, headers=headers)

    answers = await asyncio.gather(make(), make())
    assert sorted(answer.status_code for answer in answers) == [200, 412]


async def test_a_change_that_cannot_be_read_back_is_not_told_as_none(make_harness: MakeHarness):
    class Unread(MemoryAccess):
        async def state(self) -> AccessState:
            raise StorageUnavailable("The database cannot be reached.")

    store = MemoryStore(HurriedClock().now, RandomIds().commit_id)
    store.access = Unread(store.state)
    harness = await make_harness(store, token=BOOTSTRAP)
    answer = await put(harness, "ci", SHOP, by=BOOTSTRAP)
    assert problem(answer, 503) == "OutcomeUnknown"


async def test_whoami_tells_the_callers_grants(harness: Harness):
    root = await close_the_door(harness)
    await put(harness, "ci", SHOP, by=root)
    token = await issue(harness, "ci", by=root)
    answer = await harness.client.get("/v1/whoami", headers=bearer(token))
    assert answer.json() == {"name": "ci", "grants": SHOP, "groups": []}


@pytest.mark.parametrize(
    ("grants", "field"),
    [
        ([{"role": "king"}], "grants[0].role"),
        ([{}], "grants[0].role"),
        ([{"role": "reader", "cluser": "x"}], "grants[0].cluser"),
        ([{"role": "reader", "namespace": "No Name"}], "grants[0].namespace"),
        ("all", "grants"),
    ],
)
async def test_bad_grants_are_refused_by_their_field(harness: Harness, grants: Any, field: str):
    answer = await put(harness, "ci", grants)
    assert problem(answer, 422) == "InvalidManifest"
    assert [each["field"] for each in answer.json()["errors"]] == [field]


@pytest.mark.parametrize("name", ["bootstrap", "everybody", "moorage", "-ci", "a" * 129, "a%20b"])
async def test_names_that_mean_something_else_are_refused(harness: Harness, name: str):
    answer = await put(harness, name, SHOP)
    assert answer.status_code in {400, 422}
    assert not (await harness.store.access.state()).principals


NAMES = ["/devs", "devs/", "/a/b/", "Platform Team", " x", "-x", "CN=Ops,OU=x", "auth0|a", "~", "~1", "~0~1/", "Köln", "100%", "everybody"]  # fmt: skip


@pytest.mark.parametrize("collection", ["principals", "groups"])
@pytest.mark.parametrize("name", [*NAMES, "x" * 500])
async def test_whatever_an_identity_provider_calls_somebody_can_be_granted_something(
    make_harness: MakeHarness, name: str, collection: str
):
    harness = await make_harness(token=BOOTSTRAP)
    name = name if collection == "groups" else f"oidc:{name}"
    path, headers = path_of(collection, name), bearer(BOOTSTRAP)
    made = await harness.client.put(path, json={"grants": SHOP}, headers=headers)
    assert (made.status_code, made.json()["name"]) == (200, name)
    (row,) = (await harness.store.access.state()).principals
    assert row.name == name
    if collection == "principals":
        token = await harness.client.post(f"{path}/tokens", json={}, headers=headers)
        assert token.status_code == 201
    assert (await harness.client.get(path, headers=headers)).json()["name"] == name
    assert (await harness.client.delete(path, headers=headers)).status_code == 200
    assert not (await harness.store.access.state()).principals


@pytest.mark.parametrize(
    "name", ["~", "~2", "a~", "oidc:%00", "oidc:" + "a" * 508, "oidc:%E2%80%AE"]
)
async def test_names_that_cannot_be_told_are_refused(harness: Harness, name: str):
    answer = await put(harness, name, SHOP)
    assert answer.status_code in {400, 422}
    assert not (await harness.store.access.state()).principals


# Each role, each operation, in the caller's own namespace and others

VERBS = {
    "reader": {"read"},
    "scheduler": {"read", "place", "edit"},
    "editor": {"read", "place", "edit", "bind", "evict"},
    "observer": {"read", "observe"},
    "orchestrator": {"read", "place", "edit", "observe", "bind", "evict"},
    "admin": {"read", "place", "edit", "observe", "bind", "evict", "configure"},
}
WHERE = {
    "everywhere": {},
    "in the cluster": {"cluster": "there"},
    "in its own namespace": {"cluster": "there", "namespace": "shop"},
    "in another namespace": {"cluster": "there", "namespace": "bank"},
    "in that namespace of all clusters": {"namespace": "shop"},
    "in another cluster": {"cluster": "elsewhere"},
}
EXAMPLES = {"cluster": "there", "namespace": "shop", "name": "web-0"}
ASKED = {
    "place": """
        placePods placePodsOverClusters simulate findCapacity makePlan commitPlan
        extenderFilter extenderPrioritize extenderPreempt""",
    "edit": """
        createWorkload putWorkload patchWorkload deleteWorkload
        createDataSet putDataSet patchDataSet deleteDataSet
        createPodGroup putPodGroup patchPodGroup deletePodGroup
        createService putService patchService deleteService
        createReplicationController putReplicationController patchReplicationController deleteReplicationController
        createReplicaSet putReplicaSet patchReplicaSet deleteReplicaSet
        createStatefulSet putStatefulSet patchStatefulSet deleteStatefulSet
        createPodDisruptionBudget putPodDisruptionBudget patchPodDisruptionBudget deletePodDisruptionBudget
        createPersistentVolumeClaim putPersistentVolumeClaim patchPersistentVolumeClaim deletePersistentVolumeClaim
        createResourceClaim putResourceClaim patchResourceClaim deleteResourceClaim createResourceClaimTemplate putResourceClaimTemplate
        patchResourceClaimTemplate deleteResourceClaimTemplate
        deleteNamespacedPodGroups deletePodGroups deleteNamespacedServices deleteServices
        deleteNamespacedReplicationControllers deleteReplicationControllers
        deleteNamespacedReplicaSets deleteReplicaSets deleteNamespacedStatefulSets
        deleteStatefulSets deleteNamespacedPodDisruptionBudgets deletePodDisruptionBudgets
        deleteNamespacedPersistentVolumeClaims deletePersistentVolumeClaims
        deleteNamespacedWorkloads deleteWorkloads deleteNamespacedDataSets deleteDataSets
        deleteNamespacedResourceClaims deleteResourceClaims
        deleteNamespacedResourceClaimTemplates deleteResourceClaimTemplates""",
    "edit or observe": """
        applyObjects createPod putPod patchPod deletePod deletePods deleteNamespacedPods reportStatuses""",
    "observe": """
        createNode putNode patchNode deleteNode createNamespace putNamespace patchNamespace deleteNamespace
        createPersistentVolume putPersistentVolume patchPersistentVolume deletePersistentVolume createStorageClass putStorageClass
        patchStorageClass deleteStorageClass createCSINode putCSINode patchCSINode deleteCSINode createCSIDriver putCSIDriver
        patchCSIDriver deleteCSIDriver createVolumeAttachment putVolumeAttachment patchVolumeAttachment
        deleteVolumeAttachment createCSIStorageCapacity putCSIStorageCapacity patchCSIStorageCapacity
        deleteCSIStorageCapacity createRuntimeClass putRuntimeClass patchRuntimeClass deleteRuntimeClass
        createDeviceClass putDeviceClass patchDeviceClass deleteDeviceClass createResourceSlice putResourceSlice patchResourceSlice
        deleteResourceSlice deleteNodes deletePersistentVolumes deleteStorageClasses
        deleteCSINodes deleteCSIDrivers deleteVolumeAttachments deleteRuntimeClasses
        deleteDeviceClasses deleteResourceSlices deleteNamespacedCSIStorageCapacities
        deleteCSIStorageCapacities renewNodeLease reportNodes cordonNode uncordonNode""",
    "bind": "bindPod extenderBind",
    "evict": """
        evictPod drainNode putPlan patchPlan deletePlan deletePlans pausePlan resumePlan
        cancelPlan""",
    "configure": """
        patchCluster listWebhooks getWebhook putWebhook patchWebhook deleteWebhook rotateWebhookSecret pingWebhook
        createLimitRange putLimitRange patchLimitRange deleteLimitRange
        createResourceQuota putResourceQuota patchResourceQuota deleteResourceQuota
        deleteNamespacedLimitRanges deleteLimitRanges deleteNamespacedResourceQuotas deleteResourceQuotas""",
    "admin": """
        putCluster deleteCluster listPrincipals getPrincipal putPrincipal deletePrincipal
        listGroups getGroup putGroup deleteGroup createToken deleteToken listAudit""",
}
"""What an operation asks for; all others `read`, and those of the server nothing."""

READ_WITH_ALL_OF_A_CLUSTER = {"getPersistentVolume", "getVolumeAttachment", "getPlan"}
"""They name claims, nodes and pods of whatever namespace."""

ALSO_ASKED = {"drainNode": "observe"}
"""What an operation asks for beside its own verb."""

IN_EACH_NAMESPACE = {"deleteCSIStorageCapacities", "deleteResourceQuotas", "deleteLimitRanges"}
"""They take a verb that most take in the whole cluster, and delete in the namespaces where the caller has it."""


def asked(operation_id: str) -> list[str]:
    for verbs, operations in ASKED.items():
        if operation_id in operations.split():
            return verbs.split(" or ")
    return ["read"]


def lets_in(role: str, where: dict[str, str], operation_id: str, path: str) -> bool:
    verbs = asked(operation_id)
    if verbs == ["admin"]:
        return role == "admin" and not where
    if not any(verb in VERBS[role] for verb in verbs):
        return False
    if operation_id in ALSO_ASKED and ALSO_ASKED[operation_id] not in VERBS[role]:
        return False
    if "{cluster}" not in path:
        return True
    if where.get("cluster", "there") != "there":
        return False
    if "{namespace}" in path:
        return where.get("namespace", "shop") == "shop"
    if operation_id == "getNamespace":  # its name is the namespace that has to be read
        return where.get("namespace", EXAMPLES["name"]) == EXAMPLES["name"]
    of_the_whole_cluster = operation_id not in IN_EACH_NAMESPACE and (
        verbs[0] in {"observe", "configure"}
        or operation_id in READ_WITH_ALL_OF_A_CLUSTER
        or (verbs == ["evict"] and "{namespace}" not in path)
    )
    return not of_the_whole_cluster or "namespace" not in where


OPERATIONS = [
    (method.upper(), path, operation["operationId"])
    for path, methods in openapi_document()["paths"].items()
    for method, operation in methods.items()
    if operation.get("security") != []
]


CELLS = [
    *itertools.product(VERBS, [*WHERE][:4]),
    *itertools.product(["orchestrator", "admin"], [*WHERE][4:]),  # who may do the most
]


@pytest.mark.parametrize(("role", "where"), CELLS)
async def test_every_operation_asks_for_its_verb_where_it_is_done(
    make_harness: MakeHarness, role: str, where: str
):
    harness = await make_harness(token=BOOTSTRAP)
    await put(harness, "ci", [{"role": role, **WHERE[where]}], by=BOOTSTRAP)
    headers = bearer(await issue(harness, "ci", by=BOOTSTRAP))
    wrong = {}
    for method, path, operation_id in OPERATIONS:
        concrete = re.sub(r"{(\w+)}", lambda match: EXAMPLES[match[1]], path)
        answer = await harness.client.request(method, concrete, headers=headers)
        let_in = answer.status_code not in {401, 403}
        if let_in != lets_in(role, WHERE[where], operation_id, path):
            wrong[operation_id] = answer.status_code
        if not let_in:
            assert problem(answer, 403) == "Forbidden"
    assert not wrong


class Slow(MemoryAccess):
    """Its answers about the version arrive when the test lets them, as they were when they were asked for."""

    def __init__(self, state: MemoryState) -> None:
        super().__init__(state)
        self.answers: asyncio.Event | None = None

    async def version(self) -> AccessVersion:
        version = await super().version()
        if self.answers is not None:
            await self.answers.wait()
        return version


async def test_a_change_holds_at_once_where_it_was_made():
    clock = HurriedClock()
    store = MemoryStore(clock.now, RandomIds().commit_id)
    store.access = slow = Slow(store.state)
    authentication = Authentication(store, Settings(), clock)
    assert await authentication.principal([]) == EVERYBODY
    slow.answers = asyncio.Event()
    clock.advance(2)
    assert await authentication.principal([]) == EVERYBODY  # and looks in the background
    await asyncio.sleep(0)
    await store.access.put_principal("User", "root", [ADMIN_GRANT], keep_admin=True, caller=ITSELF)
    await store.access.create_token(
        "t", "root", bytes(32), description="", expires_in=None, keep_admin=True, caller=ITSELF
    )
    changed = asyncio.create_task(authentication.changed())
    await asyncio.sleep(0)
    slow.answers.set()
    await changed
    assert await authentication.principal([]) is None


async def test_a_server_that_others_reach_is_open_to_nobody_whatever_becomes_of_its_tokens(
    make_harness: MakeHarness,
):
    harness = await make_harness(host="10.0.0.1", tls_terminated=True)
    assert await status(harness, PODS_OF_SHOP, None) == 401
    assert await status(harness, "/livez", None) == 200


async def test_who_may_not_read_a_cluster_is_not_told_its_revision(make_harness: MakeHarness):
    harness = await make_harness(token=BOOTSTRAP)
    await put(harness, "ci", [{"role": "admin", "cluster": "elsewhere"}], by=BOOTSTRAP)
    token = await issue(harness, "ci", by=BOOTSTRAP)
    answer = await harness.client.get(CLUSTER, headers=bearer(token))
    assert problem(answer, 403) == "Forbidden"
    assert "moorage-revision" not in answer.headers


async def test_a_tenants_list_of_clusters_asks_the_store_no_more_often_the_more_there_are(
    make_harness: MakeHarness, monkeypatch: pytest.MonkeyPatch
):
    harness = await make_harness(token=BOOTSTRAP)
    await put(harness, "ci", [{"role": "reader", "namespace": "shop"}], by=BOOTSTRAP)
    token = await issue(harness, "ci", by=BOOTSTRAP)
    for name in ("a", "b"):
        path = f"/v1/clusters/{name}"
        await harness.client.put(path, json={"config": {}}, headers=bearer(BOOTSTRAP))
    asked, count_pods = list[object](), harness.store.clusters.count_pods

    async def counted(of: Any) -> Any:
        asked.append(of)
        return await count_pods(of)

    monkeypatch.setattr(harness.store.clusters, "count_pods", counted)
    listed = (await harness.client.get("/v1/clusters", headers=bearer(token))).json()["items"]
    assert [each["name"] for each in listed] == ["a", "b", "default"]
    assert len(asked) == 1
