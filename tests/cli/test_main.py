"""The command as a whole, and whether the pages that describe it tell the truth."""

import re

import msgspec
import pytest

from service.cli.errors import ExitCode
from service.cli.main import app
from service.settings import FILE_SUFFIX, PREFIX, SECRETS, Settings
from tests.paths import ROOT

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
COMMANDS = sorted(
    command.callback.__name__.replace("_", "-") for command in app.registered_commands
)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(moorage, command):
    ended = moorage(command, "--help")

    assert ended.code == 0
    assert "Usage" in ended.out


def test_the_readme_lists_exactly_the_commands():
    readme = (ROOT / "README.md").read_text()
    table = readme.partition("## The command")[2].partition("Exit codes:")[0]
    cells = [row.split("|")[1] for row in table.splitlines() if row.startswith("| `")]
    listed = [name.split()[0] for cell in cells for name in re.findall(r"`([^`]+)`", cell)]

    assert sorted(listed) == COMMANDS


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
