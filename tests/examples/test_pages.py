"""The shell blocks of the tutorial and of the how-to pages, run in their order against a real server."""

import re
from pathlib import Path

import pytest

from service.cli.local import LocalServer, temporary_folder
from tests.examples.following import TUTORIAL, blocks, equip, follow
from tests.paths import ROOT

SHOWN = {
    "tutorial.md": [r'"action":"Place"', r"db +.*a3", r"didn't match pod anti-affinity rules"],
    "kubernetes.md": [r"node-a1", r"zone-c", r"6 placed"],
    "migrate.md": [],
    "batch.md": [r"20 deleted", r"group refused"],
    "edge.md": [r"3 placed", r"riga"],
    "tenants.md": [r"exceeded quota: compute", r"4 placed, 2 denied"],
    "scale-in.md": [r"web-\d would go", r"web-\d goes from"],
    "drain.md": [r'"status":"Planned"', r"cordoned", r"web-0 is being evicted", r"web-0 is gone"],
}
"""What somebody who follows a page sees at least."""
PAGES = [TUTORIAL, *sorted((ROOT / "docs" / "how-to").glob("*.md"))]


@pytest.fixture(scope="module")
def server(module_database_url):
    environment = {"MOORAGE_DATABASE_URL": module_database_url}
    with temporary_folder() as folder, LocalServer(folder, environment=environment) as running:
        yield running.url


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_whoever_follows_a_page_gets_to_its_end_and_sees_what_it_says(
    page: Path, server: str, tmp_path: Path
) -> None:
    equip(tmp_path)
    ended = follow(blocks(page), server, tmp_path)

    assert ended.returncode == 0, ended.stdout + ended.stderr
    for text in SHOWN[page.name]:
        assert re.search(text, ended.stdout), (text, ended.stdout)
