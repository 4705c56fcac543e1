"""Settings come from `MOORAGE_*` variables, and a mistake in one is told."""

import msgspec
import pytest

from service.app import create_app_from_environment
from service.settings import InvalidSettings, Settings, read_settings


def test_without_variables_all_is_default() -> None:
    assert read_settings({"PATH": "/bin"}) == Settings()


def test_variables_are_read_into_their_types() -> None:
    environment = {
        "MOORAGE_PORT": "9000",
        "MOORAGE_DEBUG": "true",
        "MOORAGE_TOKEN": "secret",
        "MOORAGE_BODY_TIMEOUT_SECONDS": "2.5",
    }
    settings = read_settings(environment)
    assert (settings.port, settings.debug, settings.token) == (9000, True, "secret")
    assert settings.body_timeout_seconds == 2.5


def test_a_misspelt_variable_is_refused() -> None:
    with pytest.raises(InvalidSettings, match=r"No such setting: MOORAGE_PROT\.") as refused:
        read_settings({"MOORAGE_PROT": "9000"})
    assert "MOORAGE_PORT" in str(refused.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [("PORT", "http"), ("PORT", "70000"), ("WORKERS", "0"), ("TOKEN", ""), ("DEBUG", "maybe")],
)
def test_a_bad_value_names_its_variable(name: str, value: str) -> None:
    with pytest.raises(InvalidSettings, match=f"MOORAGE_{name}: "):
        read_settings({f"MOORAGE_{name}": value})


def test_every_setting_can_be_handed_down() -> None:
    settings = msgspec.structs.asdict(
        Settings(
            token="x",
            database_url="postgresql://",
            metrics_dir="m",
            hand_over_dir="h",
            health_port=8081,
            health_socket="s",
            connections_max=1000,
            connections_per_address_max=100,
        )
    )
    environment = {f"MOORAGE_{n.upper()}": str(v).lower() for n, v in settings.items()}
    assert msgspec.structs.asdict(read_settings(environment)) == settings


def test_a_server_process_needs_a_database(monkeypatch) -> None:
    monkeypatch.delenv("MOORAGE_DATABASE_URL", raising=False)
    with pytest.raises(InvalidSettings, match="MOORAGE_DATABASE_URL"):
        create_app_from_environment()
