"""What is public stays as it is, unless a change says that it means to change it."""

import os
from collections.abc import Iterable
from difflib import unified_diff
from pathlib import Path

import pytest

from tests.public import surface
from tools import postgres

HERE = Path(__file__).parent
WRITES = "WRITE_PUBLIC" in os.environ  # noqa: TID251 - a switch of this test, no setting
"""Whether the files are written instead of compared: `make public`."""


def assert_unchanged(name: str, lines: Iterable[str]) -> None:
    file, text = HERE / name, "".join(f"{line}\n" for line in lines)
    if WRITES:
        file.write_text(text, encoding="utf-8")
    before = file.read_text(encoding="utf-8")
    changes = unified_diff(before.splitlines(), text.splitlines(), name, "now", lineterm="")
    assert text == before, "\n".join(["`make public` writes it, if this is meant:", *changes])


@pytest.mark.parametrize("part", [surface.metrics, surface.log_events, surface.choices])
def test_a_part_of_the_surface_is_unchanged(part):
    assert_unchanged(f"{part.__name__}.txt", part())


def test_the_schema_is_unchanged(module_database_url: str):
    dump = postgres.dump(module_database_url, "--schema-only")
    assert_unchanged(
        "schema.sql", [line for line in dump.splitlines() if line and not line.startswith("--")]
    )
