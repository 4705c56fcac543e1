"""Behind proxies that are trusted the caller's address is the one that they tell, and nobody else can tell one."""

from ipaddress import ip_address, ip_network
from typing import Any

import httpx
import pytest
import yaml

from service.api.auth.forwarded_for import Proxies
from service.api.auth.refusal_log import Refusals
from service.runtime.clock import SystemClock
from service.runtime.ids import RandomIds
from service.settings import InvalidSettings, Settings, proxy_networks, read_settings
from tests.api.conftest import MakeHarness
from tests.api.harness import CLUSTER, Harness, node
from tests.paths import ROOT
from tests.support.memory_store.store import MemoryStore

TOKEN = "an-administrators-token-of-32-characters"
RIGHT = {"authorization": f"Bearer {TOKEN}"}
WRONG = {"authorization": "Bearer wrong"}
PROXY, CALLER, FORGED = "192.0.2.10", "198.51.100.7", "203.0.113.66"
TRUSTED = f"{PROXY}, 10.0.0.0/8,2001:db8:1::/64"


def found(client: str | None, *headers: str, trusted: str = TRUSTED) -> str | None:
    """Where a request came from whose connection is the client's."""
    scope: Any = {
        "client": (client, 4711) if client else None,
        "headers": [(b"x-forwarded-for", each.encode("latin-1")) for each in headers],
    }
    Proxies(proxy_networks(Settings(trusted_proxies=trusted))).find_caller(scope)
    return scope["client"][0] if scope["client"] else None


@pytest.mark.parametrize("trusted", ["", "192.0.2.11", "10.0.0.0/8"])
def test_whoever_is_no_trusted_proxy_is_not_believed(trusted: str) -> None:
    assert found(PROXY, CALLER, trusted=trusted) == PROXY
    assert found(None, CALLER, trusted=trusted) is None


@pytest.mark.parametrize(
    "headers",
    [
        (CALLER,),
        (f"{FORGED}, {CALLER}",),
        (FORGED, CALLER),
        (f"{PROXY},{CALLER}",),
        (f"{FORGED}, {CALLER}, 10.1.2.3",),
        (f"{FORGED}, {CALLER}", "10.1.2.3, 10.1.2.4"),
        (f"nonsense, {CALLER}:50123",),
        (f"{FORGED},  ::ffff:{CALLER} ",),
    ],
)
def test_the_last_address_that_is_no_proxys_is_the_callers(headers: tuple[str, ...]) -> None:
    assert found(PROXY, *headers) == CALLER
    assert found(f"::ffff:{PROXY}", *headers) == CALLER
    assert found("2001:db8:1::5", *headers) == CALLER


@pytest.mark.parametrize(
    ("header", "address"),
    [
        ("2001:db8:2::1", "2001:db8:2::1"),
        ("[2001:db8:2::1]:443", "2001:db8:2::1"),
        ("[2001:db8:2::1]", "2001:db8:2::1"),
        ("10.1.2.3, 10.1.2.4", "10.1.2.3"),
        (f"{FORGED}, unknown", PROXY),
        (f"{FORGED}, unknown, 10.1.2.3", "10.1.2.3"),
        (f"{FORGED},", PROXY),
        (f"{FORGED}, fe80::1%x", PROXY),
        (f"{FORGED}, {'1' * 100}", PROXY),
        ("\xff", PROXY),
        ("", PROXY),
    ],
)
def test_beyond_what_is_no_address_nothing_is_believed(header: str, address: str) -> None:
    assert found(PROXY, header) == address


@pytest.mark.parametrize(
    "value", ["proxy", "10.0.0.1/8", "0.0.0.0/0", "::/0", "192.0.2.1;10.0.0.1", "*"]
)
def test_what_is_no_address_of_a_proxy_is_refused(value: str) -> None:
    with pytest.raises(InvalidSettings, match="MOORAGE_TRUSTED_PROXIES: "):
        read_settings({"MOORAGE_TRUSTED_PROXIES": f"192.0.2.1, {value}"})


def through(harness: Harness, connected_from: str) -> httpx.AsyncClient:
    transport = httpx.ASGITransport(app=harness.app, client=(connected_from, 4711))
    return httpx.AsyncClient(transport=transport, base_url="http://localhost")


async def statuses(client: httpx.AsyncClient, times: int, forwarded: str) -> list[int]:
    headers = {**WRONG, "x-forwarded-for": forwarded}
    return [(await client.get("/v1/clusters", headers=headers)).status_code for _ in range(times)]


async def test_who_guesses_behind_a_proxy_is_held_up_alone(make_harness: MakeHarness) -> None:
    harness = await make_harness(
        token=TOKEN, trusted_proxies=PROXY, failed_authentication_seconds=3600
    )
    async with through(harness, PROXY) as proxy, through(harness, FORGED) as stranger:
        assert (await statuses(proxy, 11, CALLER))[-2:] == [401, 429]
        assert await statuses(proxy, 1, "198.51.100.8") == [401]
        for number in range(10):
            assert await statuses(stranger, 1, f"198.51.100.{number}") == [401]
        assert await statuses(stranger, 1, "198.51.100.99") == [429]


async def test_the_audit_has_the_callers_address_of_writes_and_of_refusals(
    make_harness: MakeHarness,
) -> None:
    store = MemoryStore(SystemClock().now, RandomIds().commit_id, audit=True)
    refusals = Refusals(store.audit, SystemClock())
    harness = await make_harness(store=store, token=TOKEN, trusted_proxies=PROXY, refusals=refusals)
    async with through(harness, PROXY) as proxy:
        for each in (RIGHT, WRONG):
            headers = {**each, "x-forwarded-for": f"{FORGED}, {CALLER}"}
            await proxy.put(f"{CLUSTER}/nodes/n1", json=node("n1"), headers=headers)
    await refusals.close()
    rows = await store.audit.list(limit=10)
    assert sorted((row.status, row.address) for row in rows) == [(200, CALLER), (401, CALLER)]


# What is shipped


def test_the_server_that_is_shipped_trusts_the_proxy_that_is_shipped_and_nobody_else() -> None:
    compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
    server, proxy = compose["services"]["server"], compose["services"]["proxy"]
    own = proxy["networks"]["default"]["ipv4_address"]
    assert server["environment"]["MOORAGE_TRUSTED_PROXIES"] == own
    [network] = compose["networks"]["default"]["ipam"]["config"]
    assert ip_address(own) in ip_network(network["subnet"])
    assert ip_address(own) not in ip_network(network["ip_range"]), "another container could have it"


def test_the_proxy_that_is_shipped_says_who_calls_it_and_hands_on_nothing_else() -> None:
    lines = (ROOT / "deploy" / "haproxy.cfg").read_text(encoding="utf-8").splitlines()
    assert "    http-request set-header X-Forwarded-For %[src]" in lines
