"""The documentation at `/docs`: the files of a site, and what is shown where none was built."""

import base64
import hashlib
from pathlib import Path

import pytest

from service.api.resources.server import docs as documentation_site
from tests.api.harness import Harness

SCRIPT = "document.title = 1"
PAGE = f"<script>{SCRIPT}</script><script src=a.js></script>"


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the site of this server, which has nothing in it yet."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.setattr(documentation_site, "FOLDER", folder)
    return folder


async def test_where_no_site_was_built_the_operations_are_shown(
    harness: Harness, site: Path
) -> None:
    answer = await harness.client.get("/docs")

    assert (answer.status_code, answer.headers["location"]) == (307, "/docs/operations")
    assert (await harness.client.get("/docs/operations")).status_code == 200
    assert (await harness.client.get("/docs/index.html")).status_code == 404


async def test_the_first_page_of_the_site_is_led_to_as_soon_as_it_is_there(
    harness: Harness, site: Path
) -> None:
    await harness.client.get("/docs")
    (site / "index.html").write_text(PAGE)

    assert (await harness.client.get("/docs")).headers["location"] == "/docs/index.html"
    answer = await harness.client.get("/docs/index.html")
    assert (answer.status_code, answer.text) == (200, PAGE)
    assert answer.headers["content-type"].startswith("text/html")


async def test_a_page_runs_its_own_scripts_and_no_other(harness: Harness, site: Path) -> None:
    (site / "index.html").write_text(PAGE)
    (site / "a.js").write_text(PAGE)
    policy = (await harness.client.get("/docs/index.html")).headers["content-security-policy"]
    digest = base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode()

    assert f"script-src 'self' 'sha256-{digest}';" in policy
    assert "default-src 'none'" in policy
    of_script = await harness.client.get("/docs/a.js")
    assert "script-src 'self';" in of_script.headers["content-security-policy"]


@pytest.mark.parametrize(
    ("name", "media_type"),
    [
        ("deep/page.html", "text/html"),
        ("style.css", "text/css"),
        ("search.json", "application/json"),
        ("map.png", "image/png"),
        ("icon.svg", "image/svg+xml"),
        ("llms.txt", "text/plain; charset=utf-8"),
        ("index.md", "text/markdown; charset=utf-8"),
    ],
)
async def test_each_file_has_its_type(
    harness: Harness, site: Path, name: str, media_type: str
) -> None:
    (site / name).parent.mkdir(exist_ok=True)
    (site / name).write_bytes(b"x")
    answer = await harness.client.get(f"/docs/{name}")

    assert (answer.status_code, answer.content) == (200, b"x")
    assert answer.headers["content-type"].startswith(media_type)


@pytest.mark.parametrize(
    "name",
    [
        *("gone.html", "deep", "%2E%2E/secret.txt", "link.txt", "site.toml"),
        *("zero%00.html", "long" * 100 + ".html", "deep.html"),
    ],
)
async def test_nothing_else_is_sent(harness: Harness, site: Path, name: str) -> None:
    (site / "deep").mkdir()
    (site / "deep.html").mkdir()
    (site / "site.toml").write_text("secret")
    (site.parent / "secret.txt").write_text("secret")
    (site / "link.txt").symlink_to(site.parent / "secret.txt")
    answer = await harness.client.get(f"/docs/{name}")

    assert answer.status_code in {400, 404}
    assert "secret" not in answer.text.replace("secret.txt", "")
