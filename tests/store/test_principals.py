"""Principals and their tokens, on every store."""

from datetime import timedelta

import pytest

from service.model.core.access import ADMIN, AccessVersion, Grant, TokenRow
from service.model.core.errors import NoAdminLeft, NotFound
from tests.store.history import AnyStore

HASH = bytes(32)
READER = Grant("reader", "default", "shop")


async def token(store: AnyStore, token_id: str, principal: str, **options) -> TokenRow:
    options = {"description": "", "expires_in": None, "keep_admin": True, **options}
    return await store.access.create_token(token_id, principal, HASH, **options)


async def an_admin(store: AnyStore) -> None:
    await store.access.put_principal("User", "root", [ADMIN], keep_admin=True)
    await token(store, "t0", "root")


async def test_nobody_is_known_at_first(store: AnyStore):
    state = await store.access.state()
    assert (list(state.principals), list(state.tokens)) == ([], [])


async def test_what_is_put_is_read_back_and_replaced_whole(store: AnyStore):
    assert await store.access.put_principal("User", "ci", [READER], keep_admin=True)
    assert await store.access.put_principal("Group", "ci", [ADMIN], keep_admin=True)
    assert not await store.access.put_principal("User", "ci", [Grant("scheduler")], keep_admin=True)
    state = await store.access.state()
    assert [(row.kind, row.name, row.grants) for row in state.principals] == [
        ("Group", "ci", (ADMIN,)),
        ("User", "ci", (Grant("scheduler"),)),
    ]


async def test_every_change_is_told_by_the_version(store: AnyStore):
    async def version() -> AccessVersion:
        assert (await store.access.state()).version == await store.access.version()
        return await store.access.version()

    seen = [await version()]
    await an_admin(store)
    seen.append(await version())
    await token(store, "t1", "root")
    seen.append(await version())
    await store.access.delete_token("t1", keep_admin=True)
    seen.append(await version())
    await store.access.put_principal("User", "root", [ADMIN, READER], keep_admin=True)
    seen.append(await version())
    await store.access.delete_principal("User", "root", keep_admin=False)
    seen.append(await version())
    assert seen == sorted(set(seen))


async def test_a_token_has_its_time(store: AnyStore):
    await an_admin(store)
    made = await token(store, "t1", "root", description="nightly", expires_in=timedelta(days=30))
    assert made.expires_at == made.created_at + timedelta(days=30)
    assert list((await store.access.state()).tokens)[-1] == made


async def test_a_token_of_nobody_cannot_be_made(store: AnyStore):
    await store.access.put_principal("Group", "devs", [ADMIN], keep_admin=True)
    with pytest.raises(NotFound):
        await token(store, "t1", "devs")
    assert not (await store.access.state()).tokens


async def test_whoever_is_deleted_loses_all_tokens(store: AnyStore):
    await an_admin(store)
    await store.access.put_principal("User", "ci", [READER], keep_admin=True)
    await token(store, "t1", "ci")
    await store.access.put_principal("Group", "ci", [READER], keep_admin=True)
    assert await store.access.delete_principal("Group", "ci", keep_admin=True)
    assert [each.token_id for each in (await store.access.state()).tokens] == ["t0", "t1"]
    assert await store.access.delete_principal("User", "ci", keep_admin=True)
    assert [each.token_id for each in (await store.access.state()).tokens] == ["t0"]
    assert not await store.access.delete_principal("User", "ci", keep_admin=True)
    assert not await store.access.delete_token("t1", keep_admin=True)


async def test_the_first_token_is_an_admins(store: AnyStore):
    await store.access.put_principal("User", "ci", [READER], keep_admin=True)
    with pytest.raises(NoAdminLeft):
        await token(store, "t1", "ci")
    assert not (await store.access.state()).tokens


@pytest.mark.parametrize("lost", ["token", "grant", "principal"])
async def test_the_last_admin_stays_unless_the_server_has_another(store: AnyStore, lost: str):
    async def lose(*, keep_admin: bool) -> None:
        if lost == "token":
            await store.access.delete_token("t0", keep_admin=keep_admin)
        elif lost == "grant":
            await store.access.put_principal("User", "root", [READER], keep_admin=keep_admin)
        else:
            await store.access.delete_principal("User", "root", keep_admin=keep_admin)

    await an_admin(store)
    before = await store.access.state()
    with pytest.raises(NoAdminLeft):
        await lose(keep_admin=True)
    assert await store.access.state() == before
    await lose(keep_admin=False)
    assert await store.access.state() != before


async def test_an_admin_whose_token_has_expired_is_none(store: AnyStore):
    await store.access.put_principal("User", "root", [ADMIN], keep_admin=True)
    with pytest.raises(NoAdminLeft):
        await token(store, "t0", "root", expires_in=timedelta(seconds=-1))


async def test_the_last_use_is_kept_and_never_goes_back(store: AnyStore):
    await an_admin(store)
    made = (await store.access.state()).tokens[0]
    late, early = (made.created_at + timedelta(minutes=n) for n in (2, 1))
    version = await store.access.version()
    await store.access.record_use({"t0": late, "gone": late})
    await store.access.record_use({"t0": early})
    assert (await store.access.state()).tokens[0].last_used_at == late
    assert await store.access.version() == version
