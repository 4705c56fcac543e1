"""Settings come from `MOORAGE_*` variables, and a mistake in one is told."""

import msgspec
import pytest

from service.app import create_app_from_environment
from service.settings import SECRETS, InvalidSettings, Settings, read_settings

TOKEN = "0123456789abcdef" * 2


def test_without_variables_all_is_default() -> None:
    assert read_settings({"PATH": "/bin"}) == Settings()


def test_variables_are_read_into_their_types() -> None:
    environment = {
        "MOORAGE_PORT": "9000",
        "MOORAGE_DEBUG": "true",
        "MOORAGE_TOKEN": TOKEN,
        "MOORAGE_BODY_TIMEOUT_SECONDS": "2.5",
    }
    settings = read_settings(environment)
    assert (settings.port, settings.debug, settings.token) == (9000, True, TOKEN)
    assert settings.body_timeout_seconds == 2.5


def test_a_misspelt_variable_is_refused() -> None:
    with pytest.raises(InvalidSettings, match=r"No such setting: MOORAGE_PROT\.") as refused:
        read_settings({"MOORAGE_PROT": "9000"})
    assert "MOORAGE_PORT" in str(refused.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PORT", "http"),
        ("PORT", "70000"),
        ("WORKERS", "0"),
        ("TOKEN", ""),
        ("OIDC_TOKEN_TYPES", ""),
        ("OIDC_TOKEN_TYPES", "at+jwt,"),
        ("TOKEN", TOKEN[:31]),
        ("DEBUG", "maybe"),
    ],
)
def test_a_bad_value_names_its_variable(name: str, value: str) -> None:
    with pytest.raises(InvalidSettings, match=f"MOORAGE_{name}: "):
        read_settings({f"MOORAGE_{name}": value})


def test_every_setting_can_be_handed_down() -> None:
    settings = msgspec.structs.asdict(
        Settings(
            token=TOKEN,
            database_url="postgresql://",
            migration_url="postgresql://",
            tls_certificate="c",
            tls_key="k",
            extender_certificate="c",
            extender_key="k",
            oidc_issuer="https://i",
            oidc_audience="a",
            oidc_keys_url="https://u",
            metrics_dir="m",
            forwarding_dir="h",
            suspects_dir="d",
            server_id="s",
            peer_address="127.0.0.1:7000",
            peer_host="127.0.0.2",
            peer_secret=TOKEN,
            peer_certificate="c",
            peer_key="k",
            peer_authorities="a",
            health_port=8081,
            health_socket="s",
            connections_max=1000,
            connections_per_address_max=100,
        )
    )
    environment = {f"MOORAGE_{n.upper()}": str(v).lower() for n, v in settings.items()}
    assert msgspec.structs.asdict(read_settings(environment)) == settings


PEERS = {"MOORAGE_PEER_ADDRESS": "10.0.0.5:7000", "MOORAGE_PEER_SECRET": TOKEN}
CERTIFICATE = {f"MOORAGE_PEER_{name}": "f" for name in ("CERTIFICATE", "KEY", "AUTHORITIES")}


def test_servers_do_not_speak_in_clear_unless_told_so() -> None:
    with pytest.raises(InvalidSettings, match=r"MOORAGE_PEER_ADDRESS: .* in clear"):
        read_settings(PEERS)
    for given in (
        CERTIFICATE,
        {"MOORAGE_PEER_PLAIN": "true"},
        {"MOORAGE_PEER_ADDRESS": "[::1]:7000"},
    ):
        assert read_settings(PEERS | given).peer_secret == TOKEN


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"MOORAGE_PEER_ADDRESS": "127.0.0.1:7000"}, "needs MOORAGE_PEER_SECRET"),
        (PEERS | {"MOORAGE_PEER_ADDRESS": "10.0.0.5"}, "MOORAGE_PEER_ADDRESS: "),
        (PEERS | {"MOORAGE_PEER_ADDRESS": "127.0.0.1:65535"}, "MOORAGE_PEER_ADDRESS: 65535"),
        (PEERS | {"MOORAGE_PEER_SECRET": TOKEN[:31]}, "MOORAGE_PEER_SECRET: .*32 characters"),
        (PEERS | {"MOORAGE_PEER_KEY": "f"}, "MOORAGE_PEER_KEY .*together"),
    ],
)
def test_what_servers_need_of_each_other_is_whole(given: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidSettings, match=message):
        read_settings(given)


def test_a_server_process_needs_a_database(monkeypatch) -> None:
    monkeypatch.delenv("MOORAGE_DATABASE_URL", raising=False)
    with pytest.raises(InvalidSettings, match="MOORAGE_DATABASE_URL"):
        create_app_from_environment()


@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
@pytest.mark.parametrize("name", SECRETS)
def test_a_secret_may_be_in_a_file_whose_line_ends(tmp_path, name, end) -> None:
    file = tmp_path / "secret"
    file.write_text(TOKEN + end, newline="")

    settings = read_settings({f"MOORAGE_{name.upper()}_FILE": str(file)})

    assert getattr(settings, name) == TOKEN


def test_a_secret_that_is_given_twice_is_refused(tmp_path) -> None:
    twice = {"MOORAGE_TOKEN": TOKEN, "MOORAGE_TOKEN_FILE": str(tmp_path / "secret")}

    with pytest.raises(InvalidSettings, match="either MOORAGE_TOKEN or MOORAGE_TOKEN_FILE"):
        read_settings(twice)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "cannot be read: No such file or directory"),
        (b"\xff", "cannot be read: it is not UTF-8"),
        (b"short\n", "must be a string of at least 32"),
    ],
)
def test_a_file_without_a_secret_names_its_variable(tmp_path, content, reason) -> None:
    file = tmp_path / "secret"
    if content is not None:
        file.write_bytes(content)

    with pytest.raises(InvalidSettings, match=rf"^MOORAGE_TOKEN_FILE: .*{reason}"):
        read_settings({"MOORAGE_TOKEN_FILE": str(file)})


@pytest.mark.parametrize(
    "unsafe",
    [
        {"ISSUER": "https://id.example"},
        {"ISSUER": "http://id.example", "AUDIENCE": "moorage"},
        {"ISSUER": "https://id.example", "AUDIENCE": "moorage", "KEYS_URL": "http://id.example/k"},
    ],
)
def test_an_identity_provider_that_anybody_could_play_is_refused(unsafe: dict[str, str]) -> None:
    with pytest.raises(InvalidSettings, match="MOORAGE_OIDC"):
        read_settings({f"MOORAGE_OIDC_{name}": value for name, value in unsafe.items()})
