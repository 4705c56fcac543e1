"""The page `docs/settings.md`: every setting of a server, from `service/settings.py`.

`python -m tools.settings_page` writes it.
"""

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args, get_origin

import msgspec
import typer

from service.cli.commands.serve import serve
from service.settings import FILE_SUFFIX, PREFIX, SECRETS, Settings
from tools.field_docstrings import field_docstrings

PAGE = Path(__file__).parents[1] / "docs" / "settings.md"
HANDED_DOWN = "`moorage serve` sets it"
"""What the docstring of a setting has in it that no operator sets."""

_INTRODUCTION = """\
# Settings

These are all settings of a server process. `python -m tools.settings_page` writes this page from
`service/settings.py`, and a test fails if they differ. [Operating Moorage](operating.md#settings)
explains the most important ones. What belongs to one cluster is in that cluster's configuration
(`moorage config`).

A setting is read from the environment variable, or from the option of `moorage serve` if there is
one, which takes precedence. A secret may be in a file instead, which the variable with `_FILE`
names. Numbers with `_BYTES` are bytes, and those with `_SECONDS` are seconds. The server refuses to
start with an unknown `MOORAGE_` variable or a bad value.

| variable | option | default | meaning |
|---|---|---|---|
"""
_INTERNAL = """
## What a server tells its workers

`moorage serve` sets these variables itself; nobody else should.

| variable | meaning |
|---|---|
"""


class Setting(NamedTuple):
    """One setting, as the page tells it."""

    name: str
    default: object
    meaning: str
    values: tuple[str, ...]

    @property
    def variable(self) -> str:
        """The environment variables that give it."""
        plain = f"`{PREFIX}{self.name.upper()}`"
        return plain + (
            f", `{PREFIX}{(self.name + FILE_SUFFIX).upper()}`" if self.name in SECRETS else ""
        )


def found() -> list[Setting]:
    """All settings, in the order in which they are declared; raises KeyError for one without a docstring."""
    meanings = _docstrings()
    return [
        Setting(
            each.name,
            each.default,
            meanings[each.name],
            _values(Settings.__annotations__[each.name]),
        )
        for each in msgspec.structs.fields(Settings)
    ]


def page() -> str:
    """The whole page."""
    options = dict(_options())
    rows, internal = [], []
    for each in found():
        if HANDED_DOWN in each.meaning:
            internal.append(f"| {each.variable} | {each.meaning} |")
            continue
        values = f" One of {', '.join(f'`{v}`' for v in each.values)}." if each.values else ""
        option = options.get(each.name, "")
        rows.append(
            f"| {each.variable} | {option} | {_told(each.default)} | {each.meaning}{values} |"
        )
    return _INTRODUCTION + "\n".join(rows) + "\n" + _INTERNAL + "\n".join(internal) + "\n"


def _docstrings() -> dict[str, str]:
    """What the text below each field of the settings says."""
    return {name: _with_variables(told) for name, told in field_docstrings(Settings).items()}


def _with_variables(meaning: str) -> str:
    """Call other settings by their variables, as nobody sees the names of fields."""
    for name in Settings.__struct_fields__:
        meaning = meaning.replace(f"`{name}`", f"`{PREFIX}{name.upper()}`")
    return meaning


def _values(annotation: Any) -> tuple[str, ...]:
    return get_args(annotation) if get_origin(annotation) is Literal else ()


def _options() -> Iterator[tuple[str, str]]:
    """The options of `moorage serve`, by the names of their settings."""
    for name, parameter in inspect.signature(serve).parameters.items():
        _, option = get_args(parameter.annotation)
        assert isinstance(option, typer.models.OptionInfo)
        # Typer takes the first one for a default until it makes the command.
        declared = [option.default, *(option.param_decls or ())]
        yield name, ", ".join(f"`{each}`" for text in declared for each in str(text).split("/"))


def _told(default: object) -> str:
    match default:
        case None | "":
            return ""
        case bool():
            return f"`{str(default).lower()}`"
        case _:
            return f"`{default}`"


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(), "utf-8")


if __name__ == "__main__":
    main()
