import re
import socket
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from msgspec.structs import replace

from moorage.cli.exceptions import WrongUsage
from service.cli.server_options import server_settings
from service.model.core.access import ADMIN
from service.server import local_server
from service.server.failures import ConfigurationError, UnavailableError
from service.server.listen_policy import (
    authenticates_callers,
    require_tls,
    require_tokens,
    with_audit,
)
from service.server.local_server import LocalServer
from service.server.tcp_ports import claimed_port, hold_port, port_of
from service.settings import Settings, is_loopback, read_settings
from service.store.postgres import PostgresStore
from tests.examples.following import executable
from tests.paths import ROOT


def test_the_command_line_wins_over_the_environment(monkeypatch):
    monkeypatch.setenv("MOORAGE_PORT", "9000")
    monkeypatch.setenv("MOORAGE_WORKERS", "3")

    settings = server_settings(port=9001, workers=None)

    assert (settings.port, settings.workers) == (9001, 3)


def test_the_client_commands_variables_do_not_disturb_a_server(monkeypatch):
    monkeypatch.setenv("MOORAGE_URL", "http://elsewhere")
    monkeypatch.setenv("MOORAGE_CLUSTER", "c")
    monkeypatch.setenv("MOORAGE_CONTEXT", "home")
    monkeypatch.setenv("MOORAGE_CONTEXTS", "contexts.yaml")

    assert server_settings().host == "127.0.0.1"


@pytest.mark.parametrize(("name", "value"), [("MOORAGE_PROT", "1"), ("MOORAGE_PORT", "many")])
def test_a_misspelt_or_bad_variable_is_wrong_usage(monkeypatch, name, value):
    monkeypatch.setenv(name, value)

    with pytest.raises(WrongUsage, match=name):
        server_settings()


def test_a_bad_option_is_wrong_usage():
    with pytest.raises(WrongUsage, match=r"^--port: must be an integer of at most 65535\.$"):
        server_settings(port=70_000)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "localhost"])
def test_loopback_needs_no_token(host):
    assert is_loopback(host)
    require_tls(Settings(host=host))
    require_tokens(Settings(host=host))


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "example.org", ""])
def test_at_any_other_address_nobody_speaks_in_clear(host):
    with pytest.raises(ConfigurationError, match="MOORAGE_TLS_TERMINATED"):
        require_tls(Settings(host=host, token="t" * 32))

    require_tls(Settings(host=host, tls_terminated=True))
    require_tls(Settings(host=host, tls_certificate="here.pem"))


def test_servers_on_several_machines_start_as_the_guide_says():
    page = (ROOT / "docs" / "how-to" / "several-machines.md").read_text("utf-8")
    (commands,) = (each.text for each in executable(page) if "moorage serve" in each.text)
    given = dict(re.findall(r"^export (\w+)=(\S+)", commands, re.MULTILINE))
    secret = given.pop("MOORAGE_PEER_SECRET_FILE"), given.pop("MOORAGE_TOKEN_FILE")
    assert all(secret)
    settings = read_settings(given | {"MOORAGE_PEER_SECRET": "s" * 32, "MOORAGE_TOKEN": "t" * 32})
    host = re.search(r"--host (\S+)", commands)[1]
    require_tls(replace(settings, host=host))


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "example.org", ""])
def test_at_any_other_address_callers_say_who_they_are(host):
    with pytest.raises(ConfigurationError, match="MOORAGE_TOKEN"):
        require_tokens(Settings(host=host, tls_terminated=True))


async def test_a_token_anywhere_or_an_identity_provider_authenticates_callers(database_url):
    async def asks(**settings):
        return await authenticates_callers(Settings(**settings), database_url)

    assert not await asks()
    assert await asks(token="t" * 32)
    assert await asks(oidc_issuer="https://id.example", oidc_audience="moorage")
    store = PostgresStore(database_url)
    await store.access.put_principal("User", "root", [ADMIN], keep_admin=True)
    assert not await asks()
    await store.access.create_token(
        "t", "root", bytes(32), description="", expires_in=None, keep_admin=True
    )
    await store.close()
    assert await asks()


def test_who_asks_who_calls_keeps_an_audit_unless_told_not_to():
    assert with_audit(Settings()).audits
    assert not with_audit(Settings(audit="off")).audits
    assert not Settings().audits


def test_the_refusal_is_exit_code_2(moorage):
    ended = moorage("serve", "--host", "0.0.0.0")

    assert ended.code == 2
    assert "MOORAGE_TLS_TERMINATED" in ended.err


def test_a_taken_port_is_wrong_usage_although_granian_would_share_it():
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        other.bind(("127.0.0.1", 0))
        other.listen()

        with (
            pytest.raises(ConfigurationError, match="Cannot listen"),
            claimed_port(*other.getsockname()),
        ):
            pass


def listener(port):
    """One as granian's: of several that share a port."""
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    made.bind(("127.0.0.1", port))
    made.listen()
    return made


def test_port_0_is_any_free_port_that_no_stranger_gets_and_the_workers_share():
    with claimed_port("127.0.0.1", 0) as port:
        with socket.socket() as stranger, pytest.raises(OSError, match="in use"):
            stranger.bind(("127.0.0.1", port))
        with listener(port), listener(port), socket.create_connection(("127.0.0.1", port)):
            pass


def test_a_port_that_is_held_for_a_server_can_be_claimed_by_it():
    with hold_port() as held, claimed_port("127.0.0.1", port_of(held)) as port:
        assert port == port_of(held)


def test_no_server_is_born_while_another_thread_looks_whether_its_port_is_free(
    tmp_path, monkeypatch
):
    """Until it runs its program it would have the other thread's sockets, and the port be taken."""
    is_looking, is_born = threading.Event(), threading.Event()
    born_meanwhile = []

    def look(_host, _port):
        if not is_looking.is_set():
            is_looking.set()
            born_meanwhile.append(is_born.wait(0.3))

    def bear(*_, **__):
        is_born.set()
        raise UnavailableError

    monkeypatch.setattr(local_server, "require_free_port", look)
    monkeypatch.setattr(local_server.subprocess, "Popen", bear)
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(LocalServer(tmp_path).start)
        is_looking.wait()
        second = threads.submit(LocalServer(tmp_path).start)

    assert isinstance(first.exception(), UnavailableError)
    assert isinstance(second.exception(), UnavailableError)
    assert born_meanwhile == [False]


def test_a_local_server_has_its_port_for_itself_before_it_starts(tmp_path):
    server = LocalServer(tmp_path)

    with socket.socket() as stranger, pytest.raises(OSError, match="in use"):
        stranger.bind(("127.0.0.1", server.port))


def test_an_address_of_no_interface_is_wrong_usage():
    with (
        pytest.raises(ConfigurationError, match="Cannot listen"),
        claimed_port("203.0.113.1", 8080),
    ):
        pass
