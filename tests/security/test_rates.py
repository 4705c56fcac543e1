"""Who guesses tokens, or asks too often, is refused; nobody else is."""

import threading
from typing import Any

import httpx
import pytest

from service.api.security import rate_limits
from service.api.security.rate_limits import Buckets
from tests.api.conftest import MakeHarness
from tests.api.harness import CLUSTER, Harness, HurriedClock, problem

TOKEN = "an-administrators-token-of-32-characters"
RIGHT = {"authorization": f"Bearer {TOKEN}"}
WRONG = {"authorization": "Bearer wrong"}


class StillClock(HurriedClock):
    """Time passes only as a test says."""

    def monotonic(self) -> float:
        return 1000.0 + self._ahead_seconds


@pytest.fixture
def clock() -> StillClock:
    return StillClock()


@pytest.fixture
async def guarded(make_harness: MakeHarness, clock: StillClock) -> Harness:
    return await make_harness(clock=clock, token=TOKEN)


def client_at(harness: Harness, address: str) -> httpx.AsyncClient:
    transport = httpx.ASGITransport(app=harness.app, client=(address, 4711))
    return httpx.AsyncClient(transport=transport, base_url="http://localhost")


async def statuses(client: httpx.AsyncClient, times: int, **request: Any) -> list[int]:
    return [(await client.get("/v1/clusters", **request)).status_code for _ in range(times)]


async def test_an_address_may_fail_ten_times_at_once_and_then_once_a_second(
    guarded: Harness, clock: StillClock
) -> None:
    assert await statuses(guarded.client, 12, headers=WRONG) == [401] * 10 + [429] * 2
    clock.advance(1)
    assert await statuses(guarded.client, 2, headers=WRONG) == [401, 429]
    clock.advance(60)
    assert await statuses(guarded.client, 11, headers=WRONG) == [401] * 10 + [429]


async def test_the_refusal_says_when_to_come_back(guarded: Harness, clock: StillClock) -> None:
    await statuses(guarded.client, 10, headers=WRONG)
    answer = await guarded.client.get("/v1/clusters", headers=WRONG)
    assert problem(answer, 429) == "TooManyFailures"
    clock.advance(int(answer.headers["retry-after"]))
    assert await statuses(guarded.client, 1, headers=WRONG) == [401]


async def test_who_has_a_right_token_passes_where_others_guess(guarded: Harness) -> None:
    """Behind one address may be many."""
    assert await statuses(guarded.client, 11, headers=WRONG) == [401] * 10 + [429]
    assert await statuses(guarded.client, 20, headers=RIGHT) == [200] * 20


async def test_another_address_has_tries_of_its_own(guarded: Harness) -> None:
    async with client_at(guarded, "192.0.2.1") as one, client_at(guarded, "192.0.2.2") as other:
        assert (await statuses(one, 11, headers=WRONG))[-1] == 429
        assert (await statuses(other, 10, headers=WRONG))[-1] == 401


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("2001:db8::1", "2001:db8::ffff:1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("fe80::1%a", "fe80::2"),
    ],
)
async def test_the_addresses_of_one_subscriber_are_one(
    guarded: Harness, one: str, other: str
) -> None:
    async with client_at(guarded, one) as first, client_at(guarded, other) as second:
        await statuses(first, 10, headers=WRONG)
        assert await statuses(second, 1, headers=WRONG) == [429]


async def test_what_is_no_guess_is_not_counted(guarded: Harness) -> None:
    assert await statuses(guarded.client, 20) == [401] * 20  # no token at all
    for path, status in {"/livez": 200, "/docs/operations": 200, "/nowhere": 404}.items():
        for _ in range(20):
            assert (await guarded.client.get(path, headers=WRONG)).status_code == status
    assert await statuses(guarded.client, 1, headers=WRONG) == [401]


async def test_guesses_are_logged_once_in_a_while(
    guarded: Harness, clock: StillClock, caplog: pytest.LogCaptureFixture
) -> None:
    await statuses(guarded.client, 50, headers=WRONG)
    assert [record.getMessage() for record in caplog.records] == [
        "Wrong tokens from 127.0.0.1, more often than is answered."
    ]
    clock.advance(rate_limits.TOLD_SECONDS)
    await statuses(guarded.client, 50, headers=WRONG)
    assert len(caplog.records) == 2
    assert "wrong." not in caplog.text


async def test_guesses_are_counted_by_their_status(guarded: Harness) -> None:
    await statuses(guarded.client, 12, headers=WRONG)
    told = (await guarded.client.get("/metrics")).text
    for status, times in {401: 10, 429: 2}.items():
        name = "moorage_http_request_duration_seconds_count"
        assert f'{name}{{operation="listClusters",status="{status}"}} {times}.0' in told


async def test_a_principal_asks_no_more_often_than_it_may(
    make_harness: MakeHarness, clock: StillClock
) -> None:
    harness = await make_harness(clock=clock, token=TOKEN, requests_per_second=3)
    assert await statuses(harness.client, 5, headers=RIGHT) == [200] * 3 + [429] * 2
    answer = await harness.client.get("/v1/clusters", headers=RIGHT)
    assert problem(answer, 429) == "TooManyRequests"
    assert answer.headers["retry-after"] == "1"
    clock.advance(1)
    assert await statuses(harness.client, 4, headers=RIGHT) == [200] * 3 + [429]
    assert (await harness.client.get("/livez")).status_code == 200


async def test_a_principal_writes_no_more_often_than_it_may(
    make_harness: MakeHarness, clock: StillClock
) -> None:
    harness = await make_harness(clock=clock, writes_per_second=2)
    path, body = f"{CLUSTER}/namespaces/shop", {"metadata": {"name": "shop"}}
    written = [(await harness.client.put(path, json=body)).status_code for _ in range(3)]
    assert written == [201, 200, 429]
    assert await statuses(harness.client, 5) == [200] * 5
    clock.advance(0.5)
    assert (await harness.client.delete(path)).status_code == 200


async def test_without_a_setting_nobody_is_held_up(guarded: Harness) -> None:
    assert await statuses(guarded.client, 200, headers=RIGHT) == [200] * 200


def test_no_more_keys_are_kept_than_there_is_room_for(
    monkeypatch: pytest.MonkeyPatch, clock: StillClock
) -> None:
    monkeypatch.setattr(rate_limits, "KEYS_MAX", 2)
    buckets = Buckets(clock.monotonic)
    taken = [buckets.take(key, 1, 10) for key in ("a", "b", "a", "c", "b", "a")]
    assert taken == [True, True, False, True, True, True]  # b, then a, had to make room


def test_counting_starts_no_thread(clock: StillClock) -> None:
    """What a thread still holds for a while would be garbage of a later request."""
    before = threading.enumerate()
    Buckets(clock.monotonic)
    assert threading.enumerate() == before
