"""The command as a whole, and whether the pages that describe it tell the truth."""

import os
import re
import subprocess
import sys
from importlib.metadata import EntryPoints

import msgspec
import pytest

from moorage.cli import command_table
from moorage.cli.command_group import INSTEAD
from moorage.cli.command_table import COMMANDS
from moorage.cli.exceptions import ExitCode
from service.settings import FILE_SUFFIX, PREFIX, SECRETS, Settings
from tests.paths import ROOT
from tests.waiting import WAIT_SECONDS

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(moorage, command):
    ended = moorage(command, "--help")

    assert ended.code == 0
    assert "Usage" in ended.out


@pytest.mark.parametrize("words", [("-h",), ("get", "-h"), ("context", "list", "-h")])
def test_help_has_a_short_option(moorage, words):
    ended = moorage(*words)

    assert ended.code == 0
    assert "Usage" in ended.out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("logs", "web-0"), "error: There is no command logs. Moorage decides where pods run"),
        (("edit", "pod", "web-0"), "`moorage apply -f` it."),
        (("version",), "`moorage --version` shows it."),
        (("config", "get-contexts"), "`moorage context` chooses the server"),
        (("get", "podz"), "error: No such kind: podz. Did you mean pods?\n"),
        (("get", "configmaps"), "Known kinds: nodes, namespaces, pods, "),
    ],
)
def test_who_comes_from_kubectl_is_told_what_to_do_instead(moorage, words, told):
    ended = moorage(*words)

    assert ended.code == 2
    assert told in ended.err


def test_no_command_that_is_there_is_said_to_be_missing():
    assert not set(INSTEAD) & {*COMMANDS}


def test_without_a_server_its_commands_say_what_to_install(moorage, monkeypatch):
    monkeypatch.setattr(command_table, "entry_points", lambda **_: EntryPoints())
    ended = moorage("serve", "--port", "0")

    assert (ended.code, ended.out) == (2, "")
    assert (
        ended.err == "error: `moorage serve` is part of the server: `pip install moorage-server`.\n"
    )
    assert "serve" not in {line[2:].split(" ")[0] for line in moorage("--help").out.splitlines()}


def test_the_server_registers_its_commands():
    assert command_table.server_commands().names == command_table.SERVER_COMMANDS


PRINTS = """
import typer
from moorage.cli.command_group import Commands

app = typer.Typer(cls=Commands)
app.command()(lambda: print("text", flush=True))
app.command("other")(lambda: None)
app(["<lambda>"])
"""


@pytest.mark.parametrize(
    "words", [("-m", "service.cli", "context", "list"), ("-c", PRINTS)], ids=["table", "text"]
)
def test_it_is_no_error_if_nobody_reads_to_the_end(words):
    """The reading end is closed before the command starts, so that each write fails."""
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, *words]
    try:
        ended = subprocess.run(
            command,
            check=False,
            cwd=ROOT,
            stdout=writing,
            stderr=subprocess.PIPE,
            timeout=WAIT_SECONDS,
        )
    finally:
        os.close(writing)

    assert (ended.returncode, ended.stderr) == (0, b"")


def test_the_readme_lists_exactly_the_commands():
    readme = (ROOT / "README.md").read_text()
    table = readme.partition("## The command")[2].partition("Exit codes:")[0]
    cells = [row.split("|")[1] for row in table.splitlines() if row.startswith("| `")]
    listed = [name.split()[0] for cell in cells for name in re.findall(r"`([^`]+)`", cell)]

    assert sorted(listed) == sorted(COMMANDS)


def test_the_readme_lists_exactly_the_exit_codes():
    rows = re.findall(r"^\| (\d+) \|", (ROOT / "README.md").read_text(), re.MULTILINE)

    assert [int(row) for row in rows] == sorted(ExitCode)


def test_no_setting_in_the_operating_page_is_invented():
    page = (ROOT / "docs" / "operating.md").read_text()
    named = set(re.findall(PREFIX + r"([A-Z_]+[A-Z])", page))

    known = {field.name for field in msgspec.structs.fields(Settings)}
    known |= {name + FILE_SUFFIX for name in SECRETS}
    assert named <= {name.upper() for name in known}


def test_the_defaults_in_the_operating_page_are_those_of_the_code():
    page = (ROOT / "docs" / "operating.md").read_text()
    defaults = dict(re.findall(r"`MOORAGE_([A-Z_]+)` \| `([^`]+)` \|", page))
    settings = Settings()

    assert defaults
    for name, default in defaults.items():
        assert str(getattr(settings, name.lower())) == default


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_between_pages_lead_somewhere(page):
    links = re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text())
    targets = {(page.parent / link).resolve() for link in links}

    missing = {str(target.relative_to(ROOT)) for target in targets if not target.exists()}

    assert not missing


def test_the_openapi_document_is_the_stored_one_or_the_difference_is_shown(moorage, tmp_path):
    file = tmp_path / "folder" / "openapi.json"

    assert moorage("openapi", "--file", str(file)).code == 0
    assert moorage("openapi", "--check", str(file)).code == 0

    file.write_text(file.read_text().replace('"openapi"', '"openapy"', 1))
    ended = moorage("openapi", "--check", str(file))

    assert ended.code == 1
    assert "make openapi" in ended.err
    assert moorage("openapi").out.startswith("{")
