"""P19 between servers: a worker forwards a cluster's requests to the server that holds it, and is known there."""

import asyncio
import ssl
import subprocess
from contextlib import AsyncExitStack, suppress
from importlib import metadata
from itertools import count
from shutil import which

import h11
import pytest

from service.api.forwarding import transport as sockets
from service.api.forwarding.middleware import decide_forwarded
from service.api.forwarding.peer_connections import (
    PROTOCOL,
    ReplacedCertificates,
    Servers,
    certificates_of,
    servers_of,
)
from service.api.forwarding.peer_names import Address, address_in, id_in, parse_address
from service.api.forwarding.transport import ForwardedRequest
from service.model.core.access import BOOTSTRAP, Grant, Principal
from service.model.core.errors import OutcomeUnknown
from service.runtime.ids import RandomIds
from service.settings import InvalidSettings, Settings
from tests.api.harness import CLUSTER, node, problem
from tests.api.worker_forwarding.test_forwarding import CLOCK, KEY, Worker, placing
from tests.cli.server.test_tls import write_certificate
from tests.examples.following import executable
from tests.paths import ROOT
from tests.processes import own_address
from tests.support.memory_store.store import MemoryStore

SECRET = "what-only-servers-know-0123456789"
HOST = own_address()
LEASE = "requests@s"
VERSION = metadata.version("moorage-server")


@pytest.fixture
async def start_server(tmp_path_factory):
    """Servers of one worker each, with a folder and a port of their own, over one store."""
    store, folders = MemoryStore(CLOCK.now, RandomIds().commit_id), tmp_path_factory
    ports = count(20_000, 10)
    async with AsyncExitStack() as stack:

        async def start(name, *, port=None, secret=SECRET, certificates=None, **settings):
            folder = folders.mktemp(name)
            address = Address(HOST, port or next(ports))
            servers = Servers(
                *(name, address, 1),
                server_id=f"server-{name}",
                secret=secret,
                certificates=certificates,
            )
            worker = Worker(store, folder, name, servers, **settings)
            worker.store = store
            await worker.start()
            stack.push_async_callback(worker.stop)
            return worker

        yield start


@pytest.fixture
async def home(start_server):
    """The server that holds the lease of `default`; the cluster has one node."""
    return await as_home(await start_server("home"))


async def as_home(server):
    answer = await server.client.put(f"{CLUSTER}/nodes/n", json=node("n", zone="a"))
    assert answer.status_code == 201
    return server


async def place(server, name, **headers):
    """The answer to the placement of one pod."""
    return await server.client.post(f"{CLUSTER}/placements", json=placing(name), headers=headers)


async def placed(server, name, **headers):
    """Whether a pod is placed."""
    answer = await place(server, name, **headers)
    return answer.json()["results"][0]["outcome"] == "Placed"


async def holder_of(server):
    """Whoever holds the lease, by its id."""
    lease = await server.store.leases.claim(1, LEASE, "nobody", 1)
    return id_in(lease.holder)


async def test_p19_a_server_decides_what_others_forward_with_the_rights_that_it_has_there(
    home, start_server
):
    strict = await start_server("strict", token="secret")
    refused = await place(strict, "p", authorization="Bearer wrong")
    assert (problem(refused, 401), home.decided) == ("Unauthorized", [])
    assert await placed(strict, "p", authorization="Bearer secret", cookie="a=b")
    [forwarded] = home.received
    assert forwarded.principal == BOOTSTRAP
    assert not {b"authorization", b"cookie"} & {name for name, _ in forwarded.headers}
    assert strict.scheduler.replicas() == {}
    # Whoever decides looks at the rights that came with the request, and at no others.
    reader = Principal("r", (Grant("reader"),))
    path = f"{CLUSTER}/placements"
    told = ForwardedRequest("POST", path, path.encode(), b"", [], b"{}", reader)
    assert (await decide_forwarded(home.app.app, told)).status == 403


async def asked(home, *, secret=SECRET, worker="home", version=VERSION):
    """The status with which a server answers a connection; None if it says nothing."""
    address = address_in(home.servers.own)
    reader, writer = await asyncio.open_connection(*address)
    head = h11.Request(
        method="GET",
        target=f"/{worker}",
        headers=[
            ("Host", address.text),
            ("Connection", "Upgrade"),
            ("Upgrade", PROTOCOL),
            ("Moorage-Version", version),
            *([("Authorization", f"Bearer {secret}")] if secret else []),
        ],
    )
    client = h11.Connection(h11.CLIENT)
    writer.write(client.send(head))
    client.send(h11.EndOfMessage())
    client.receive_data(await reader.readuntil(b"\r\n\r\n"))
    writer.close()
    return client.next_event().status_code


async def test_p19_only_who_knows_the_secret_of_the_servers_can_forward_anything(
    home, start_server
):
    assert await asked(home) == 101
    assert await asked(home, secret=None) == 401
    assert await asked(home, secret=SECRET + "x", worker="else") == 401
    assert await asked(home, version="0.0.1") == 426
    assert await asked(home, worker="else") == 410
    stranger = await start_server("stranger", secret="x" * 32)
    assert await placed(stranger, "p"), "it decides by itself"
    assert (home.decided, await holder_of(home)) == ([], "home")


async def test_p19_nonsense_where_servers_listen_ends_that_connection_only(home, start_server):
    for nonsense in (b"\xff\r\n\r\n", b"GET / HTTP/1.1\r\n" + b"a" * 2**17, b""):
        reader, writer = await asyncio.open_connection(*address_in(home.servers.own))
        writer.write(nonsense)
        writer.write_eof()
        with suppress(ConnectionResetError):
            assert await reader.read() == b""
        writer.close()
    other = await start_server("other")
    assert await placed(other, "p")
    assert len(home.decided) == 1


async def test_p19_the_place_of_a_server_that_has_died_is_taken_at_once(home, start_server):
    other, third = await start_server("other"), await start_server("third")
    assert await third.cluster_owners.elsewhere("default") == home.servers.own
    assert (await other.client.get(f"{CLUSTER}/violations")).status_code == 200
    home.vanish()
    assert await placed(other, "q", **KEY)
    for name in ("r", "s"):
        assert await placed(other, name), "nobody listens there any more"
    assert await holder_of(other) == "other"
    assert len(home.decided) == 1
    # Whoever still takes the dead one for the holder finds out in the same way.
    assert await placed(third, "t")
    assert await third.cluster_owners.elsewhere("default") == other.servers.own


async def test_p19_in_place_of_a_server_that_stands_still_one_other_decides(
    start_server, monkeypatch
):
    """It lets others in, as the system does for a stopped process, and then says nothing."""
    go_on = asyncio.Event()

    async def stand_still(*_):
        await go_on.wait()

    with monkeypatch.context() as still:
        still.setattr(sockets.Listener, "serve", stand_still)
        home = await as_home(await start_server("home"))
    other, third = await start_server("other"), await start_server("third")
    assert await third.cluster_owners.elsewhere("default") == home.servers.own
    monkeypatch.setattr(sockets, "PING_SECONDS", 0.01)
    assert await placed(other, "p", **KEY), "what may be repeated is, when it finds that out"
    assert not other.peers.answers(home.servers.own)
    assert await placed(other, "q"), "and all else is decided at once from then on"
    assert (home.decided, await holder_of(home)) == ([], "other")
    assert await placed(third, "r", **{"idempotency-key": "l"}), (
        "whoever notices it later asks the one that came first"
    )
    assert (len(other.decided), third.scheduler.replicas()) == (1, {})
    go_on.set()


async def test_p19_nor_is_one_waited_for_that_does_not_complete_a_connection(
    home, start_server, monkeypatch
):
    async def say_nothing(*_):
        raise TimeoutError

    other = await start_server("other")
    monkeypatch.setattr(other.servers, "connect", say_nothing)
    monkeypatch.setattr(sockets, "RECONNECT_SECONDS", 0)
    assert await placed(other, "p")
    assert await holder_of(home) == "home", "once is not enough"
    monkeypatch.setattr(sockets, "PING_SECONDS", 0)
    assert await placed(other, "q")
    assert await holder_of(home) == "other"


async def test_p19_servers_whose_ports_overlap_know_each_others_workers_as_such(home, start_server):
    """Nor is one that says nothing for a while taken for the one that had the address before."""
    other = await start_server("other", port=address_in(home.servers.own).port)
    assert await placed(other, "p")
    assert (len(home.decided), await holder_of(home)) == (1, "home")


async def test_p19_a_request_is_not_forwarded_between_servers_twice(home, start_server):
    other, third = await start_server("other"), await start_server("third")
    assert await third.cluster_owners.elsewhere("default") == home.servers.own
    await home.store.leases.release(1, LEASE, home.servers.own)
    assert await other.store.leases.claim(1, LEASE, third.servers.own, 60)
    assert await placed(other, "p")
    assert (len(third.decided), home.decided) == (1, [])


async def test_p19_who_does_not_know_yet_that_a_cluster_was_passed_on_is_told_to_whom(
    home, start_server
):
    """So nobody decides beside the one that has it now; and no request is passed on by whoever gets it."""
    other, third = await start_server("other"), await start_server("third")
    for each in (other, third):
        assert await each.cluster_owners.elsewhere("default") == home.servers.own
    assert await home.forwarding.prepare(other.servers.own, "default")
    assert list(other.scheduler.replicas()) == ["default"]
    assert await home.cluster_owners.pass_on("default", other.servers.own)
    home.received.clear()
    other.received.clear()
    for number, server in enumerate((third, other, home)):
        assert await placed(server, f"p{number}")
    assert (len(other.decided), home.decided) == (2, [])
    assert third.scheduler.replicas() == {}


async def test_p19_a_lost_answer_of_another_server_is_settled_by_the_key_or_unknown(
    home, start_server
):
    other = await start_server("other")
    over = asyncio.Event()

    async def lose():
        home.fall_silent()
        await over.wait()

    home.after = lose
    unknown = await place(other, "p")
    assert problem(unknown, 503) == OutcomeUnknown.__name__
    over.set()
    assert await placed(other, "q", **KEY)


async def test_servers_with_certificates_ask_each_other_for_them(start_server, tmp_path_factory):
    folder, strange = tmp_path_factory.mktemp("certificate"), tmp_path_factory.mktemp("strange")
    certificate, key = write_certificate(folder, "servers", HOST)
    settings = Settings(
        peer_certificate=str(certificate), peer_key=str(key), peer_authorities=str(certificate)
    )
    home = await as_home(await start_server("home", certificates=certificates_of(settings)))
    other = await start_server("other", certificates=certificates_of(settings))
    assert await placed(other, "p")
    assert len(home.decided) == 1
    certificate, key = write_certificate(strange, "strange", HOST)
    settings = Settings(
        peer_certificate=str(certificate),
        peer_key=str(key),
        peer_authorities=settings.peer_authorities,
    )
    for stranger in (
        await start_server("strange", certificates=certificates_of(settings)),
        await start_server("plain"),
    ):
        assert await placed(stranger, stranger.servers.own[:5])
    assert len(home.decided) == 1


@pytest.mark.skipif(which("openssl") is None, reason="certificates: openssl is not installed")
async def test_certificates_made_as_the_guide_says_satisfy_any_python(start_server, tmp_path):
    """Since 3.13 Python verifies them strictly, which earlier ones do if they are told to."""
    page = (ROOT / "docs" / "how-to" / "several-machines.md").read_text("utf-8")
    commands = [block.text for block in executable(page) if "openssl" in block.text]
    script = "\n".join(commands).replace("10.0.0.5", HOST)
    await asyncio.to_thread(
        subprocess.run, ("sh", "-ec", script), cwd=tmp_path, check=True, capture_output=True
    )
    settings = Settings(
        peer_certificate=str(tmp_path / "peer.crt"),
        peer_key=str(tmp_path / "peer.key"),
        peer_authorities=str(tmp_path / "peers.crt"),
    )
    certificates = certificates_of(settings)
    for context in (certificates.listening, certificates.connecting):
        context.verify_flags |= ssl.VERIFY_X509_STRICT
    home = await as_home(await start_server("home", certificates=certificates))
    other = await start_server("other", certificates=certificates)
    assert await placed(other, "p")
    assert len(home.decided) == 1


async def test_certificates_that_were_renewed_are_used_from_then_on(
    start_server, tmp_path_factory, monkeypatch, caplog
):
    monkeypatch.setattr(sockets, "RECONNECT_SECONDS", 0)
    folder = tmp_path_factory.mktemp("certificate")
    certificate, key = write_certificate(folder, "servers", HOST)
    settings = Settings(
        peer_certificate=str(certificate), peer_key=str(key), peer_authorities=str(certificate)
    )
    home = await as_home(await start_server("home", certificates=certificates_of(settings)))
    old = await start_server("old", certificates=certificates_of(settings))
    replaced = ReplacedCertificates(home.servers, settings)
    await replaced.look()
    assert await placed(old, "p")
    key.write_text("half of it is")
    await replaced.look()
    assert "stay those before" in caplog.text
    write_certificate(folder, "servers", HOST)
    new = await start_server("new", certificates=certificates_of(settings))
    assert await placed(new, "q")
    assert len(home.decided) == 1, "it does not trust the new one yet"
    await replaced.look()
    for number, server in enumerate((new, old)):
        assert await placed(server, f"r{number}"), "what is connected stays connected"
    assert len(home.decided) == 3


async def test_what_cannot_be_listened_on_or_shown_is_told_by_its_setting(tmp_path):
    assert servers_of(Settings(), "w") is None
    with pytest.raises(InvalidSettings, match="MOORAGE_PEER_ADDRESS"):
        servers_of(Settings(peer_address="192.0.2.1:7000", peer_secret=SECRET), "w")
    missing = str(tmp_path / "none")
    with pytest.raises(InvalidSettings, match="MOORAGE_PEER_CERTIFICATE"):
        certificates_of(
            Settings(peer_certificate=missing, peer_key=missing, peer_authorities=missing)
        )


async def test_each_worker_of_a_server_has_a_port_and_knows_the_others_by_their_server():
    first = Address(HOST, 21_000)
    one, two, else_ = (
        Servers(name, first, 2, server_id=server, secret=SECRET)
        for name, server in (("one", "s"), ("two", "s"), ("else", "t"))
    )
    assert (one.own, two.own) == (f"one.s@{HOST}:21000", f"two.s@{HOST}:21001")
    assert one.is_here(two.own)
    assert not one.is_here(else_.own)
    assert one.is_here("three"), "whoever has no address is known here only"
    assert parse_address("[::1]:7000") == Address("::1", 7000)
    assert Address("::1", 7000).text == "[::1]:7000"
    for each in (one, two, else_):
        each.stop_listening()
