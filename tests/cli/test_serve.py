import socket

import pytest

from service.cli.errors import WrongUsage
from service.cli.processes import claim_port
from service.cli.serve import is_loopback, refuse_open_door, server_settings
from service.settings import Settings


def test_the_command_line_wins_over_the_environment(monkeypatch):
    monkeypatch.setenv("MOORAGE_PORT", "9000")
    monkeypatch.setenv("MOORAGE_WORKERS", "3")

    settings = server_settings(port=9001, workers=None)

    assert (settings.port, settings.workers) == (9001, 3)


def test_the_client_commands_variables_do_not_disturb_a_server(monkeypatch):
    monkeypatch.setenv("MOORAGE_URL", "http://elsewhere")
    monkeypatch.setenv("MOORAGE_CLUSTER", "c")

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
    refuse_open_door(Settings(host=host))


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "example.org", ""])
def test_any_other_address_is_refused_without_a_token(host):
    with pytest.raises(WrongUsage, match="MOORAGE_TOKEN"):
        refuse_open_door(Settings(host=host))

    refuse_open_door(Settings(host=host, token="s3cret"))


def test_the_refusal_is_exit_code_2(moorage):
    ended = moorage("serve", "--host", "0.0.0.0")

    assert ended.code == 2
    assert "MOORAGE_TOKEN" in ended.err


def test_a_taken_port_is_wrong_usage_although_granian_would_share_it():
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        other.bind(("127.0.0.1", 0))
        other.listen()

        with pytest.raises(WrongUsage, match="Cannot listen"):
            claim_port("127.0.0.1", other.getsockname()[1])


def test_port_0_is_any_free_port():
    assert claim_port("127.0.0.1", 0) > 0


def test_an_address_of_no_interface_is_wrong_usage():
    with pytest.raises(WrongUsage, match="Cannot listen"):
        claim_port("203.0.113.1", 8080)
