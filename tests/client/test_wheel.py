"""The client's wheel in an environment that has nothing else: small, whole, and without the server."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.api.harness import node, pod
from tests.api.live import live_server
from tests.paths import ROOT
from tests.waiting import WAIT_SECONDS

UV = ROOT / ".uv" / "bin" / "uv"
SIZE_MAX = 15_000_000
"""Bytes of all files that are installed, without the bytecode that Python makes of them."""
TOKEN = "a-token-that-only-these-tests-know"
PLACES = """
from moorage import Client

with Client({url!r}, token={token!r}) as moorage:
    moorage.apply([{node!r}])
    print(moorage.place([{pod!r}])["results"][0]["nodeName"])
"""


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment with the wheel and the locked versions of what it needs."""
    folder = tmp_path_factory.mktemp("client")
    needed, environment = folder / "requirements.txt", folder / "venv"
    python = environment / "bin" / "python"
    _uv("build", "--package", "moorage", "--wheel", "--out-dir", str(folder))
    _uv("venv", "--python", sys.executable, str(environment))
    options = ("--locked", "--package", "moorage", "--no-dev", "--no-emit-workspace")
    _uv("export", *options, "--output-file", str(needed))
    [wheel] = folder.glob("moorage-*.whl")
    _uv("pip", "install", "--python", str(python), "--requirement", str(needed))
    _uv("pip", "install", "--python", str(python), "--no-deps", str(wheel))
    _uv("pip", "check", "--python", str(python))
    return python


@pytest.fixture(scope="module")
def url(module_database_url: str) -> Iterator[str]:
    with live_server(module_database_url, token=TOKEN) as url:
        yield url


def _uv(*arguments: str) -> None:
    command = (str(UV), *arguments, "--quiet")
    subprocess.run(command, cwd=ROOT, check=True, timeout=WAIT_SECONDS, stdout=subprocess.DEVNULL)


def run(*command: object, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a program where nothing of this checkout is found."""
    home = {"PATH": os.defpath, "HOME": "/nowhere", "TERM": "dumb"}
    return subprocess.run(
        [str(part) for part in command],
        cwd="/",
        env={**home, **environment},
        capture_output=True,
        check=False,
        text=True,
        timeout=WAIT_SECONDS,
    )


def test_it_is_small(python: Path):
    [packages] = python.parents[1].glob("lib/python*/site-packages")
    files = [path for path in packages.rglob("*") if path.is_file() and path.suffix != ".pyc"]
    assert {"moorage", "httpx"} <= {path.name for path in packages.iterdir()}
    assert sum(path.stat().st_size for path in files) <= SIZE_MAX


@pytest.mark.parametrize("module", ["service", "migrations", "numpy", "litestar", "sqlalchemy"])
def test_nothing_of_the_server_is_there(python: Path, module: str):
    assert f"No module named '{module}'" in run(python, "-c", f"import {module}").stderr


def test_the_command_names_what_a_server_would_add(python: Path):
    command = python.with_name("moorage")
    version, refused = run(command, "--version"), run(command, "serve")
    assert (version.returncode, version.stderr) == (0, "")
    assert version.stdout.startswith("moorage ")
    assert "engine" not in version.stdout
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr == (
        "error: `moorage serve` is part of the server: `pip install moorage-server`.\n"
    )
    told = run(command, "--help").stdout
    assert " get " in told
    assert " migrate " not in told


def test_it_places_pods_on_a_server_elsewhere(python: Path, url: str):
    source = PLACES.format(url=url, token=TOKEN, node=node("node-1"), pod=pod("web-0"))
    placed = run(python, "-c", source)
    assert (placed.returncode, placed.stdout) == (0, "node-1\n"), placed.stderr
    shown = run(
        *(python.with_name("moorage"), "get", "pods", "-o", "custom-columns=N:.spec.nodeName"),
        MOORAGE_URL=url,
        MOORAGE_TOKEN=TOKEN,
    )
    assert (shown.returncode, shown.stdout.split()) == (0, ["N", "node-1"]), shown.stderr
