"""The plugins that configurations may name, and their arguments.

The engine declares Kubernetes' plugins when it is imported, and servers declare installed ones.
"""

from collections.abc import Mapping
from typing import ClassVar, NamedTuple, Protocol

import msgspec

from service.model.core.messages import reword
from service.model.core.primitives import Value
from service.model.core.validators import (
    Problems,
    RecordCheck,
    Rule,
    at,
    record,
    text,
    without_nulls,
)

ALL = "*"
"""This name in `disabled` means every default plugin."""


class Arguments(Value, frozen=True, kw_only=True):
    """What profiles may say to a plugin as `args` in `pluginConfig`; each that takes any declares a subclass.

    Every field has a default. Values are held to the fields' types, and `__post_init__` may raise ValueError; a plugin
    that wants to name each mistake by its field gives `rules` and `checks`.
    """

    rules: ClassVar[Mapping[str, Rule]] = {}
    """By a field's name in configurations: what its values are held to in place of its type."""
    checks: ClassVar[tuple[RecordCheck, ...]] = ()
    """Across fields."""

    api_version: str | None = None
    """Which kind of arguments they are may be said as in KubeSchedulerConfiguration."""
    kind: str | None = None


_OF_ALL: Mapping[str, Rule] = {"apiVersion": text(), "kind": text()}


class DeclaredPlugin(Protocol):
    """The attributes of a plugin, a class of the engine, that configurations read."""

    name: ClassVar[str]
    filters: ClassVar[bool]
    weight: ClassVar[int]
    """In the sum of scores where a profile gives none; 0: it does not score."""
    arguments: ClassVar[type[Arguments] | None]
    """None: it takes none."""


class Declared(NamedTuple):
    """A plugin that is known."""

    plugin: type[DeclaredPlugin]
    by_default: bool
    """Whether it is on in profiles that do not mention it."""


KNOWN: dict[str, Declared] = {}
"""All known plugins, in the order in which they filter."""


def declare(plugin: type[DeclaredPlugin], *, by_default: bool) -> None:
    """Make a plugin known to all configurations. Raises ValueError if its name is taken."""
    if plugin.name in KNOWN:
        raise ValueError(f"there is a plugin {plugin.name} already")
    KNOWN[plugin.name] = Declared(plugin, by_default)


def withdraw(name: str) -> None:
    """Make a plugin unknown again."""
    del KNOWN[name]


def filtering() -> list[str]:
    """Return the plugins that filter, in the order in which they run."""
    return [name for name, known in KNOWN.items() if known.plugin.filters]


def scoring() -> dict[str, int]:
    """Return the plugins that score, with their default weights."""
    return {name: known.plugin.weight for name, known in KNOWN.items() if known.plugin.weight}


def arguments_rule(arguments: type[Arguments]) -> Rule:
    """Return the rule for a plugin's arguments, as the plugin declares them."""
    given = {**_OF_ALL, **arguments.rules}
    fields = {
        field.encode_name: given.get(field.encode_name) or _is_of(field.type)
        for field in msgspec.structs.fields(arguments)
    }
    each_field, whole = record(fields, also=arguments.checks), _is_of(arguments)

    def rule(value: object, path: str, problems: Problems) -> None:
        before = len(problems.errors)
        each_field(value, path, problems)
        if len(problems.errors) == before:
            whole(value, path, problems)

    return rule


def _is_of(kind: object) -> Rule:
    """Return a rule for a value that converts to a type."""

    def rule(value: object, path: str, problems: Problems) -> None:
        try:
            msgspec.convert(without_nulls(value), type=kind)
        except msgspec.ValidationError as error:
            wrong = reword(str(error))
            problems.add(_below(path, wrong.field), wrong.message)

    return rule


def _below(path: str, field: str) -> str:
    return at(path, field) if field and not field.startswith("[") else path + field
