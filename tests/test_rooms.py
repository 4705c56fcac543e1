"""The rooms of each layer stay few steps apart, and none becomes a hall where nobody finds anything."""

import ast
from collections import Counter
from pathlib import Path

import pytest

from tests.paths import CLIENT, ROOT
from tests.test_imports import file_of, source_of

MODULES_MAX = 32
"""So many modules a folder has at most, the folders within it not counted."""
ONE_EACH = {"commands"}
"""Folders with one module for each command, of its name: nobody has to look for one."""
ARROWS_MAX = {
    "scheduler": 47,
    "scheduler/plans": 60,
    "api": 18,
    "engine": 45,
    "model": 31,
    "store": 31,
    "server": 31,
    "cli": 2,
    "moorage/cli": 25,
}
"""How many pairs of rooms there are at most of which one imports the other."""


def modules_of(layer: str) -> list[Path]:
    return sorted(folder_of(layer).rglob("*.py"))


def folder_of(layer: str) -> Path:
    return (CLIENT if layer.startswith("moorage/") else ROOT / "service") / layer


def room_of(path: Path, layer: str) -> str:
    """The folder or module, directly within a layer, that a module is or is in."""
    return path.relative_to(folder_of(layer)).parts[0].removesuffix(".py")


def arrows_of(layer: str) -> set[tuple[str, str]]:
    found = set()
    for path in modules_of(layer):
        for module, name in source_of(path).imported:
            target = file_of(f"{module}.{name}") or file_of(module)
            if target is not None and target.is_relative_to(folder_of(layer)):
                found.add((room_of(path, layer), room_of(target, layer)))
    return {(one, other) for one, other in found if one not in (other, "__init__")}


@pytest.mark.parametrize("layer", ARROWS_MAX)
def test_few_rooms_import_one_another(layer: str) -> None:
    arrows = arrows_of(layer)

    assert len(arrows) > len({room for arrow in arrows for room in arrow}) / 2
    assert len(arrows) <= ARROWS_MAX[layer], sorted(arrows)


def test_no_folder_has_too_many_modules() -> None:
    sizes = Counter(path.parent for layer in ARROWS_MAX for path in modules_of(layer))

    large = {path.name: size for path, size in sizes.items() if size > MODULES_MAX}
    assert large.keys() <= ONE_EACH, large


def test_each_package_says_what_happens_in_it() -> None:
    folders = (ROOT / "service", CLIENT / "moorage")
    packages = {path.parent for folder in folders for path in folder.rglob("*.py")}
    pages = {each / "__init__.py" for each in packages if "_compiled" not in each.parts}
    silent = [
        path.relative_to(ROOT).as_posix()
        for path in sorted(pages)
        if not path.exists() or not ast.get_docstring(ast.parse(path.read_bytes()))
    ]

    assert silent == []
