"""The plugins that configurations may name, and their arguments.

The engine declares Kubernetes' plugins when it is imported; servers declare installed plugins.
"""

from collections.abc import Callable, Mapping
from typing import ClassVar, NamedTuple, Protocol

import msgspec

from service.model.cluster.versions.version import SchedulerVersion
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
"""The name that stands for every default plugin in `disabled`."""


class Arguments(Value, frozen=True, kw_only=True):
    """Base class of a plugin's arguments, which profiles set as `args` in `pluginConfig`.

    Every field has a default. Values are validated against the fields' types, and `__post_init__`
    may raise ValueError; to report each error with its field, a plugin can define `rules` and
    `checks`.
    """

    rules: ClassVar[Mapping[str, Rule]] = {}
    """Validation rules that replace those derived from the fields' types, by the fields' names in
    configurations."""
    checks: ClassVar[tuple[RecordCheck, ...]] = ()
    """Checks across several fields."""
    versioned: ClassVar[Mapping[str, Callable[[SchedulerVersion], bool]]] = {}
    """For fields that only some Kubernetes versions have, by their names in configurations: whether a
    version has the field."""

    api_version: str | None = None
    """The type of the arguments may optionally be stated as in KubeSchedulerConfiguration."""
    kind: str | None = None


_OF_ALL: Mapping[str, Rule] = {"apiVersion": text(), "kind": text()}


class DeclaredPlugin(Protocol):
    """The attributes of a plugin class that configurations read."""

    name: ClassVar[str]
    filters: ClassVar[bool]
    weight: ClassVar[int]
    """The plugin's default weight in the sum of scores; 0 if it does not score."""
    arguments: ClassVar[type[Arguments] | None]
    """The type of the plugin's arguments, or None if it accepts none."""

    @classmethod
    def is_in(cls, version: SchedulerVersion) -> bool:
        """Return whether kube-scheduler of a version has the plugin."""
        ...


class Declared(NamedTuple):
    """A plugin that configurations may name."""

    plugin: type[DeclaredPlugin]
    by_default: bool
    """Whether profiles that do not mention the plugin enable it."""


KNOWN: dict[str, Declared] = {}
"""All known plugins by name, in filter order."""


def declare(plugin: type[DeclaredPlugin], *, by_default: bool) -> None:
    """Register a plugin for all configurations. Raises ValueError if its name is taken."""
    if plugin.name in KNOWN:
        raise ValueError(f"there is a plugin {plugin.name} already")
    KNOWN[plugin.name] = Declared(plugin, by_default)


def withdraw(name: str) -> None:
    """Unregister a plugin."""
    del KNOWN[name]


def filtering() -> list[str]:
    """Return the plugins that filter, in the order in which they run."""
    return [name for name, known in KNOWN.items() if known.plugin.filters]


def scoring() -> dict[str, int]:
    """Return the plugins that score, with their default weights."""
    return {name: known.plugin.weight for name, known in KNOWN.items() if known.plugin.weight}


def arguments_rule(arguments: type[Arguments]) -> Rule:
    """Return the rule for a plugin's arguments, derived from their type."""
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
    """Return a rule for values that can be converted to a type."""

    def rule(value: object, path: str, problems: Problems) -> None:
        try:
            msgspec.convert(without_nulls(value), type=kind)
        except msgspec.ValidationError as error:
            wrong = reword(str(error))
            problems.add(_below(path, wrong.field), wrong.message)

    return rule


def _below(path: str, field: str) -> str:
    return at(path, field) if field and not field.startswith("[") else path + field
