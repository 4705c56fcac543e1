"""Check what `make dist` has built: `python tools/check_dist.py dist`.

The wheel has the types, the page, the migrations and a compiled engine; the source distribution has
what a wheel is built of; neither has data, tests or caches. What a package index shows of the README
has no links to files that are only in the repository.
"""

import re
import sys
import tarfile
import zipfile
from pathlib import Path

WANTED_IN_WHEEL = (
    "service/py.typed",
    "service/app.py",
    "service/api/static/index.html",
    "migrations/sql/0015_tables.sql",
)
WANTED_IN_SOURCES = (
    *WANTED_IN_WHEEL,
    *("pyproject.toml", "hatch_build.py", "tools/compile_engine.py", "LICENSE", "README.md"),
    *("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "docs/architecture.md", "bench/RESULTS.md"),
)
FORBIDDEN = re.compile(
    r"(^|/)(tests|bench(?!/RESULTS\.md$)|\.data|\.moorage|\.venv|\.uv|__pycache__|node_modules)(/|$)"
)
"""Of benchmarks, what was measured is there, as it is a page of the documentation."""
RELATIVE_LINK = re.compile(r"\]\((?!https?:|#)[^)]*\)")


def main(folder: Path) -> None:
    """End the process with an error that names everything that is wrong."""
    wheels, (sources,) = sorted(folder.glob("moorage-*.whl")), folder.glob("moorage-*.tar.gz")
    wrong = [f"{wheel.name}: {each}" for wheel in wheels for each in wrong_in_wheel(wheel)]
    if not wheels:
        wrong.append("there is no wheel")
    with tarfile.open(sources) as archive:
        names = [name.partition("/")[2] for name in archive.getnames()]
    wrong += [f"sources: {each}" for each in wrong_names(names, WANTED_IN_SOURCES)]
    if wrong:
        sys.exit("\n".join(wrong))


def wrong_in_wheel(wheel: Path) -> list[str]:
    """Return what is wrong with a wheel: its name, its files and its metadata."""
    packed = zipfile.ZipFile(wheel)
    metadata = next(name for name in packed.namelist() if name.endswith(".dist-info/METADATA"))
    told = packed.read(metadata).decode()
    wrong = [*wrong_names(packed.namelist(), WANTED_IN_WHEEL), *wrong_metadata(told)]
    if not any("__mypyc" in name for name in packed.namelist()):
        wrong.append("the engine is not compiled")
    if "-linux_" in wheel.name:
        wrong.append("the name does not say which C library it needs (manylinux)")
    return wrong


def wrong_names(names: list[str], wanted: tuple[str, ...]) -> list[str]:
    """Return what a package lacks, and what it has that it should not."""
    lacks = [f"{name} is missing" for name in wanted if name not in names]
    return lacks + [f"{name} should not be there" for name in names if FORBIDDEN.search(name)]


def wrong_metadata(told: str) -> list[str]:
    """Return what is wrong with the metadata of a wheel, README included."""
    links = [f"the README has the link {each}" for each in RELATIVE_LINK.findall(told)]
    fields = (
        "License-Expression: Apache-2.0",
        "Provides-Extra: embedded",
        "Description-Content-Type:",
    )
    return links + [f"no field {each}" for each in fields if each not in told]


if __name__ == "__main__":
    main(Path(sys.argv[1]))
