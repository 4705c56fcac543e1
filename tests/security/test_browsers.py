"""What a server without a token asks of the headers that browsers write themselves.

`test_in_a_browser.py` has a real one; here is each rule, in every spelling.
"""

import asyncio
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from service.api.auth.authentication import Authentication
from service.api.auth.csrf import HOSTS_MAX, BrowserCheck
from service.api.resources.handlers import HANDLERS
from service.runtime.clock import SystemClock
from service.settings import InvalidSettings, Settings, read_settings
from tests.api.conftest import MakeHarness
from tests.api.harness import CLUSTER, Harness, problem
from tests.security.test_access import EXAMPLES, shown
from tests.security.test_principals import close_the_door

PLACEMENTS = f"{CLUSTER}/placements"
OWN = ("host", "localhost:8080")
TOKEN = "an-administrators-token-of-32-characters"


async def answered(
    harness: Harness,
    *headers: tuple[str, str],
    method: str = "GET",
    path: str = "/v1/clusters",
    body: bytes = b"",
    scheme: str = "http",
) -> tuple[int, str, list[str]]:
    """Status, code of the problem and header names of the answer to exactly these headers."""
    incoming = [{"type": "http.request", "body": body, "more_body": False}]
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return incoming.pop() if incoming else await asyncio.Event().wait()

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "scheme": scheme,
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": b"",
        "headers": [(name.encode(), value.encode("latin-1")) for name, value in headers],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 8080),
    }
    await harness.app(scope, receive, send)
    status, text = sent[0]["status"], b"".join(each["body"] for each in sent[1:])
    code = msgspec.json.decode(text)["code"] if status >= 400 and text else ""
    return status, code, [name.decode() for name, _ in sent[0]["headers"]]


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "LocalHost:8080",
        "localhost:",
        "moorage.localhost:1",
        "127.0.0.1",
        "127.255.3.4:65535",
        "[::1]",
        "[::1]:8080",
        "[0:0:0:0:0:0:0:1]:80",
    ],
)
async def test_a_server_without_a_token_answers_to_names_of_loopback(
    harness: Harness, host: str
) -> None:
    assert (await answered(harness, ("host", host)))[0] == 200


FOREIGN = [
    "rebind.test",
    "rebind.test:8080",
    "localhost.rebind.test",
    "127.0.0.1.rebind.test",
    "notlocalhost",
    "localhost.",
    ".localhost",
    "127.0.0.1.",
    "127.1",
    "0177.0.0.1",
    "127.0.0.01",
    "2130706433",
    "0x7f000001",
    "0.0.0.0:8080",
    "10.0.0.1",
    "::1",
    "[::]",
    "[::2]",
    "[::1",
    "[::1%lo]",
    "[::ffff:10.0.0.1]",
    "[fe80::1]",
    "[localhost]",
    "user@localhost",
    "localhost:80@rebind.test",
    "rebind.test@localhost",
    "http://localhost",
    "localhost/",
    "localhost#rebind.test",
    "localhost, rebind.test",
    "localhost rebind.test",
    "localhost:8080:8080",
    "localhost:x",
    "localhost:123456",
    "local\xe9host",
    "",
    "_",
]


@pytest.mark.parametrize("host", FOREIGN)
async def test_a_server_without_a_token_answers_to_no_other_name(
    harness: Harness, host: str
) -> None:
    for path in ("/v1/clusters", "/docs", "/metrics", "/readyz", "/nothing"):
        status, code, headers = await answered(harness, ("host", host), path=path)
        assert (status, code) == (421, "MisdirectedRequest")
        assert "moorage-revision" not in headers


@pytest.mark.parametrize(
    "hosts", [[], ["localhost", "localhost"], ["localhost", "rebind.test"], ["rebind.test"] * 2]
)
async def test_a_server_without_a_token_wants_one_host(
    harness: Harness, hosts: Sequence[str]
) -> None:
    headers = [("host", host) for host in hosts]
    assert (await answered(harness, *headers))[:2] == (400, "MalformedRequest")


async def test_a_host_that_programs_have_named_opens_no_way_for_pages(harness: Harness) -> None:
    assert [(await answered(harness, OWN))[0] for _ in range(2)] == [200, 200]

    for others in (
        [("origin", "http://rebind.test")],
        [("sec-fetch-site", "cross-site")],
        [("host", "rebind.test")],
    ):
        assert (await answered(harness, OWN, *others))[0] in {400, 403}


async def test_only_so_many_hosts_are_remembered() -> None:
    check = BrowserCheck("")

    for number in range(HOSTS_MAX + 1):
        host = f"h{number}.localhost".encode()
        check.check({"headers": [(b"host", host)], "method": "GET", "path": "/"})

    assert len(check.own_hosts) == HOSTS_MAX


async def test_further_names_can_be_allowed(make_harness: MakeHarness) -> None:
    harness = await make_harness(allowed_hosts="Moorage.example, 192.0.2.1 ,[2001:db8::1]")
    for host in ("moorage.example", "MOORAGE.example:443", "192.0.2.1:80", "[2001:db8::1]"):
        assert (await answered(harness, ("host", host)))[0] == 200
    assert (await answered(harness, OWN))[0] == 200
    for host in ("", "example", "a.moorage.example", "moorage.example.", "2001:db8::1"):
        assert (await answered(harness, ("host", host)))[0] == 421


@pytest.mark.parametrize("names", ["*", "https://a", "a:80", "a b", "a,,b", "::1"])
def test_what_is_allowed_has_to_be_names(names: str) -> None:
    with pytest.raises(InvalidSettings, match="MOORAGE_ALLOWED_HOSTS"):
        read_settings({"MOORAGE_ALLOWED_HOSTS": names})


@pytest.mark.parametrize(
    ("host", "origin", "scheme"),
    [
        ("localhost:8080", "http://localhost:8080", "http"),
        ("LOCALHOST:8080", "http://localhost:8080", "http"),
        ("127.0.0.1", "http://127.0.0.1", "http"),
        ("[::1]:8080", "http://[::1]:8080", "http"),
        ("localhost", "https://localhost", "https"),
        ("localhost:8443", "https://localhost:8443", "http"),  # a proxy ended TLS
    ],
)
async def test_the_servers_own_pages_may_ask(
    harness: Harness, host: str, origin: str, scheme: str
) -> None:
    own = (("host", host), ("origin", origin), ("sec-fetch-site", "same-origin"))
    assert (await answered(harness, *own, scheme=scheme))[0] == 200


@pytest.mark.parametrize(
    "origin",
    [
        "null",
        "",
        "http://evil.test",
        "http://evil.test:8080",
        "http://localhost",
        "http://localhost:8081",
        "http://127.0.0.1:8080",
        "http://a.localhost:8080",
        "http://localhost:8080.evil.test",
        "http://localhost:8080/",
        "ws://localhost:8080",
        "chrome-extension://localhost:8080",
        "http://localhost:8080 http://evil.test",
        "localhost:8080",
    ],
)
async def test_no_page_of_another_origin_may_ask(harness: Harness, origin: str) -> None:
    for method, path in (
        ("GET", "/v1/clusters"),
        ("GET", "/docs"),
        ("POST", PLACEMENTS),
        ("OPTIONS", "/v1/clusters"),
    ):
        for site in ([], [("sec-fetch-site", "same-origin")], [("sec-fetch-site", "none")]):
            headers = [OWN, ("origin", origin), *site]
            status, code, _ = await answered(harness, *headers, method=method, path=path)
            assert (status, code) == (403, "CrossOriginRequest")


async def test_a_page_by_http_is_not_one_of_a_server_with_tls(harness: Harness) -> None:
    headers = (OWN, ("origin", "http://localhost:8080"))
    assert (await answered(harness, *headers, scheme="https"))[1] == "CrossOriginRequest"


async def test_one_foreign_origin_among_several_is_enough(harness: Harness) -> None:
    origins = [("origin", "http://localhost:8080"), ("origin", "http://evil.test")]
    for order in (origins, origins[::-1]):
        assert (await answered(harness, OWN, *order))[1] == "CrossOriginRequest"


@pytest.mark.parametrize(
    ("sites", "status"),
    [
        ([], 200),
        (["same-origin"], 200),
        (["none"], 200),
        (["same-site"], 403),
        (["cross-site"], 403),
        (["later-invented"], 403),
        ([""], 403),
        (["none", "cross-site"], 403),
        (["cross-site", "none"], 403),
    ],
)
async def test_only_the_server_itself_and_its_user_may_ask(
    harness: Harness, sites: Sequence[str], status: int
) -> None:
    headers = [OWN, *(("sec-fetch-site", site) for site in sites)]
    for path in ("/v1/clusters", "/metrics", "/errors"):
        assert (await answered(harness, *headers, path=path))[0] == status


OPENED = (
    OWN,
    ("sec-fetch-site", "cross-site"),
    ("sec-fetch-mode", "navigate"),
    ("sec-fetch-dest", "document"),
)


@pytest.mark.parametrize("path", ["/errors", "/errors/NotFound"])
async def test_a_link_elsewhere_may_lead_to_a_page(harness: Harness, path: str) -> None:
    for method in ("GET", "HEAD"):
        assert (await answered(harness, *OPENED, method=method, path=path))[0] == 200


@pytest.mark.parametrize("path", ["/", "/docs", "/docs/decisions/page.html", "/openapi.json"])
def test_a_link_elsewhere_may_lead_to_the_document(path: str) -> None:
    """Not asked for over HTTP, since it takes long to write."""
    headers = [(name.encode(), value.encode()) for name, value in OPENED]
    BrowserCheck("").check({"method": "GET", "path": path, "headers": headers})


@pytest.mark.parametrize(
    ("method", "path", "headers"),
    [
        ("GET", "/v1/clusters", OPENED),
        ("GET", "/metrics", OPENED),
        ("GET", "/docs/", OPENED),
        ("GET", "/page/page.js", OPENED),
        ("POST", "/docs", OPENED),
        ("POST", PLACEMENTS, OPENED),
        ("GET", "/docs", (*OPENED[:3], ("sec-fetch-dest", "iframe"))),
        ("GET", "/docs", OPENED[:3]),
        ("GET", "/docs", (*OPENED, ("sec-fetch-dest", "iframe"))),
        ("GET", "/docs", (*OPENED[:2], ("sec-fetch-mode", "no-cors"), OPENED[3])),
    ],
    ids=str,
)
async def test_a_link_elsewhere_leads_to_nothing_else(
    harness: Harness, method: str, path: str, headers: Sequence[tuple[str, str]]
) -> None:
    assert (await answered(harness, *headers, method=method, path=path))[0] in {400, 403}


async def test_with_a_token_any_name_and_any_page_with_the_token_will_do(
    make_harness: MakeHarness,
) -> None:
    harness = await make_harness(token=TOKEN)
    foreign = (("origin", "null"), ("sec-fetch-site", "cross-site"), ("host", "any.test"))
    right = ("authorization", f"Bearer {TOKEN}")
    assert (await answered(harness, *foreign, right))[0] == 200
    assert (await answered(harness, *foreign))[0] == 401
    assert (await answered(harness, path="/livez"))[0] == 200


async def test_a_token_in_the_tables_is_one_too(harness: Harness) -> None:
    foreign = ("host", "any.test")
    assert (await answered(harness, foreign, path="/livez"))[0] == 421
    right = ("authorization", f"Bearer {await close_the_door(harness)}")
    assert (await answered(harness, foreign, right))[0] == 200
    assert (await answered(harness, foreign, path="/livez"))[0] == 200


async def test_a_server_knows_of_its_tokens_before_it_is_asked(harness: Harness) -> None:
    await close_the_door(harness)
    authentication = Authentication(harness.store, Settings(), SystemClock())
    assert authentication.seems_open()
    await authentication.start()
    assert not authentication.seems_open()
    await authentication.close()


async def test_what_is_checked_goes_by_what_is_so_and_not_by_what_seemed(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Authentication, "seems_open", lambda _: False)
    assert (await answered(harness, ("host", "rebind.test")))[1] == "MisdirectedRequest"
    assert (await answered(harness, OWN, ("origin", "null")))[1] == "CrossOriginRequest"


@pytest.mark.parametrize("token", [None, TOKEN])
async def test_no_page_is_told_that_it_may_ask(make_harness: MakeHarness, token: str) -> None:
    harness = await make_harness(token=token)
    asking = (
        OWN,
        ("origin", "http://evil.test"),
        ("access-control-request-method", "PUT"),
        ("access-control-request-headers", "authorization,content-type"),
        ("access-control-request-private-network", "true"),
    )
    right = ("authorization", f"Bearer {token}")
    for method in ("OPTIONS", "GET", "POST"):
        for path in ("/v1/clusters", PLACEMENTS, "/docs", "/metrics", "/livez", "/nothing"):
            for headers in (asking, (*asking, right)):
                *_, names = await answered(harness, *headers, method=method, path=path)
                assert not [name for name in names if name.startswith("access-control-")]


@pytest.mark.parametrize("path", ["/", "/v1/clusters", f"{CLUSTER}/watch"])
async def test_no_websocket_is_opened(harness: Harness, path: str) -> None:
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "websocket.connect"}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    scope = {
        "type": "websocket",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "scheme": "ws",
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": b"",
        "headers": [(b"host", b"localhost"), (b"origin", b"http://evil.test")],
        "subprotocols": [],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 8080),
    }
    await harness.app(scope, receive, send)
    assert [message["type"] for message in sent] == ["websocket.close"]


def operations_with_a_body() -> list[tuple[str, str]]:
    """Method and path of each."""
    return [
        (method, shown(path).format(**EXAMPLES))
        for handler in HANDLERS
        if "operation" in handler.opt and handler.opt["operation"].request is not None
        for path in handler.paths
        for method in handler.http_methods
    ]


@pytest.mark.parametrize("token", [None, TOKEN], ids=["open", "token"])
@pytest.mark.parametrize("typed", [[], [("content-type", " ")]], ids=["absent", "empty"])
async def test_every_body_needs_its_content_type(
    make_harness: MakeHarness, token: str | None, typed: list[tuple[str, str]]
) -> None:
    harness = await make_harness(token=token)
    headers = [OWN, ("authorization", f"Bearer {token}"), *typed]
    for method, path in operations_with_a_body():
        for framing in ("content-length", "2"), ("transfer-encoding", "chunked"), ("x", "none"):
            asked = {"method": method, "path": path, "body": b"{}"}
            answer = await answered(harness, *headers, framing, **asked)
            assert answer[:2] == (415, "UnsupportedMediaType"), (method, path)


async def test_who_sends_no_content_type_is_told_which_are_taken(harness: Harness) -> None:
    for path in (PLACEMENTS, f"{CLUSTER}/apply"):
        answer = await harness.client.post(path, content=b"{}")
        assert problem(answer, 415) == "UnsupportedMediaType"
        assert "application/json" in answer.json()["detail"]
    assert "application/x-ndjson" in answer.json()["detail"]


async def test_what_needs_no_body_needs_no_content_type(harness: Harness) -> None:
    await harness.put_node("n1")
    await harness.put_pod("web-0", nodeName="n1")
    evicted = await harness.client.post(f"{CLUSTER}/namespaces/shop/pods/web-0/eviction")
    assert evicted.status_code == 201
    deleted = await harness.client.delete(f"{CLUSTER}/namespaces/shop/pods/web-0")
    assert deleted.status_code == 200
