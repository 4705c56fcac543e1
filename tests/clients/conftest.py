"""A server for the clients, and a folder in which each is made."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.api.live import live_server
from tests.clients import tools


@pytest.fixture(scope="module", autouse=True)
def fetched() -> None:
    """The tools, which `make clients` fetches."""
    assert tools.PYTHON.exists(), "Run `make clients`, which fetches the generators."


@pytest.fixture(scope="module")
def url(module_database_url: str) -> Iterator[str]:
    """One server for all tests of a module; each has a cluster of its own."""
    with live_server(module_database_url, token=tools.TOKEN) as url:
        yield url


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the document, and with the packages of npm."""
    tools.write_document(tmp_path)
    (tmp_path / "node_modules").symlink_to(tools.NODE_MODULES)
    return tmp_path
