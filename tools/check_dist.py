"""Check what `make dist` has built: `python tools/check_dist.py dist`.

There are two distributions: `moorage`, the client with its command, and `moorage-server`. A wheel of
the server has the types, the page, the migrations and a compiled engine; its source distribution has
what a wheel is built of; neither has data, tests or caches. The client's packages have nothing of
the server. What a package index shows of a README has no links to files that are only in the
repository.
"""

import re
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple


class Distribution(NamedTuple):
    """What one distribution has to have, by the name of its files."""

    name: str
    in_wheel: tuple[str, ...]
    in_sources: tuple[str, ...]
    fields: tuple[str, ...]
    """Beginnings of lines of the metadata."""
    top_level: frozenset[str]
    """The packages that a wheel installs."""
    is_compiled: bool = False


_SERVER_WHEEL = (
    "service/py.typed",
    "service/app.py",
    "service/api/static/index.html",
    "migrations/sql/0015_tables.sql",
)
_CLIENT_WHEEL = ("moorage/py.typed", "moorage/__init__.py", "moorage/cli/main.py")
SERVER = Distribution(
    "moorage_server",
    _SERVER_WHEEL,
    (
        *_SERVER_WHEEL,
        *("pyproject.toml", "hatch_build.py", "tools/compile_engine.py", "LICENSE", "README.md"),
        *("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "docs/architecture.md"),
        "bench/RESULTS.md",
    ),
    (
        "License-Expression: Apache-2.0",
        "Provides-Extra: embedded",
        "Description-Content-Type:",
        "Requires-Dist: moorage==",
    ),
    frozenset({"service", "migrations"}),
    is_compiled=True,
)
CLIENT = Distribution(
    "moorage",
    _CLIENT_WHEEL,
    (*_CLIENT_WHEEL, "pyproject.toml", "LICENSE", "README.md"),
    ("License-Expression: Apache-2.0", "Description-Content-Type:"),
    frozenset({"moorage"}),
)
FORBIDDEN = re.compile(
    r"(^|/)(tests|bench(?!/RESULTS\.md$)|\.data|\.moorage|\.venv|\.uv|__pycache__|node_modules)(/|$)"
)
"""Of benchmarks, what was measured is there, as it is a page of the documentation."""
RELATIVE_LINK = re.compile(r"\]\((?!https?:|#)[^)]*\)")


def main(folder: Path) -> None:
    """End the process with an error that names everything that is wrong."""
    wrong = [*wrong_packages(folder, CLIENT), *wrong_packages(folder, SERVER)]
    versions = {path.name.split("-")[1].removesuffix(".tar.gz") for path in packages(folder)}
    if len(versions) > 1:
        wrong.append(f"the versions differ: {', '.join(sorted(versions))}")
    if wrong:
        sys.exit("\n".join(wrong))


def packages(folder: Path) -> list[Path]:
    """Return the packages of both distributions."""
    return [
        path
        for each in (CLIENT, SERVER)
        for ending in (".whl", ".tar.gz")
        for path in sorted(folder.glob(f"{each.name}-*{ending}"))
    ]


def wrong_packages(folder: Path, built: Distribution) -> Iterator[str]:
    """Yield what is wrong with the packages of a distribution."""
    wheels, (sources,) = (
        sorted(folder.glob(f"{built.name}-*.whl")),
        folder.glob(f"{built.name}-*.tar.gz"),
    )
    if not wheels:
        yield f"{built.name}: there is no wheel"
    for wheel in wheels:
        yield from (f"{wheel.name}: {problem}" for problem in wrong_in_wheel(wheel, built))
    with tarfile.open(sources) as archive:
        names = [name.partition("/")[2] for name in archive.getnames()]
    yield from (f"{sources.name}: {problem}" for problem in wrong_names(names, built.in_sources))


def wrong_in_wheel(wheel: Path, built: Distribution) -> list[str]:
    """Return what is wrong with a wheel: its name, its files and its metadata."""
    packed = zipfile.ZipFile(wheel)
    names = packed.namelist()
    metadata = next(name for name in names if name.endswith(".dist-info/METADATA"))
    text = packed.read(metadata).decode()
    wrong = [*wrong_names(names, built.in_wheel), *wrong_metadata(text, built)]
    installed = {name.partition("/")[0] for name in names} - built.top_level
    others = (name for name in sorted(installed) if not name.endswith((".dist-info", ".libs")))
    wrong += (f"it installs {name}" for name in others)
    if built.is_compiled and not any("__mypyc" in name for name in names):
        wrong.append("the engine is not compiled")
    if "-linux_" in wheel.name:
        wrong.append("the name does not say which C library it needs (manylinux)")
    return wrong


def wrong_names(names: list[str], wanted: tuple[str, ...]) -> list[str]:
    """Return what a package lacks, and what it has that it should not."""
    lacks = [f"{name} is missing" for name in wanted if name not in names]
    return lacks + [f"{name} should not be there" for name in names if FORBIDDEN.search(name)]


def wrong_metadata(text: str, built: Distribution = SERVER) -> list[str]:
    """Return what is wrong with the metadata of a wheel, README included."""
    links = [f"the README has the link {link}" for link in RELATIVE_LINK.findall(text)]
    return links + [f"no field {field}" for field in built.fields if field not in text]


if __name__ == "__main__":
    main(Path(sys.argv[1]))
