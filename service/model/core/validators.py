"""Validators that report every error in a JSON value, not just the first.

A `Rule` is called with a decoded value, its path, and the `Problems` to which it adds errors. Rules
are stateless and composed from the functions below. A null field counts as absent, as in
kube-apiserver.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches

import msgspec

from service.model.core.errors import FieldError, InvalidManifest

ERRORS_MAX = 1_000
SHOWN_LENGTH_MAX = 256
GUESSED_LENGTH_MAX = 64
INT32_MAX = 2**31 - 1
REQUIRED = "is required"


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits on the size of a manifest, so that no single object can keep the scheduler busy.

    `terms_max`: affinity terms, constraints, tolerations, taints, containers, …;
    `values_max`: the plain values of one requirement; `fallbacks_max`: the topology spread
    constraints with FallbackWhenFull, each of which is tried as a hard and as a soft one;
    `data_sets_max`: the data sets of one list, each of which may name many nodes. The limits
    of `pod_…` are for all lists of one pod together (`service.model.pods.pod_limits`).
    """

    terms_max: int = 1_000
    values_max: int = 10_000
    fallbacks_max: int = 8
    data_sets_max: int = 16
    pod_terms_max: int = 100
    pod_expressions_max: int = 2_500
    pod_values_max: int = 10_000
    pod_topology_keys_max: int = 64
    pod_constraints_max: int = 32
    pod_resources_max: int = 64
    pod_ports_max: int = 1_000


class Problems:
    """Collects errors, and holds the limits that rules need."""

    def __init__(self, limits: Limits | None = None) -> None:
        self.errors: list[FieldError] = []
        self.limits = limits or Limits()

    def add(self, path: str, message: str, value: object = None) -> None:
        """Add an error about one field; errors beyond `ERRORS_MAX` are dropped."""
        if not self.full:
            self.errors.append(FieldError(path, message, shown(value)))

    @property
    def full(self) -> bool:
        """Whether enough errors were collected to stop looking for more."""
        return len(self.errors) >= ERRORS_MAX

    def raise_any(self) -> None:
        """Raise `InvalidManifest` if there are any errors."""
        if self.errors:
            raise InvalidManifest(self.errors)


def shown(value: object) -> object:
    """Return a value if it is short enough to repeat in an error, or None."""
    if isinstance(value, str):
        return value if len(value) <= SHOWN_LENGTH_MAX else value[:SHOWN_LENGTH_MAX] + "…"
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return None
    return value if isinstance(value, bool | int | float) else None


Rule = Callable[[object, str, Problems], None]
Record = Mapping[str, object]
RecordCheck = Callable[[Record, str, Problems], None]
"""A check across the fields of one object; it must tolerate fields of wrong types."""
TextCheck = Callable[[str], str | None]


def at(path: str, field: str) -> str:
    """Return the path of a field of the object at `path`."""
    return f"{path}.{field}" if path else field


def key_at(path: str, key: str) -> str:
    """Return the path of a map's entry: `labels[example.com/a]`."""
    return f"{path}[{key[:SHOWN_LENGTH_MAX]}]"


def anything(value: object, path: str, problems: Problems) -> None:
    """Accept every value; used for fields that scheduling does not read."""


def absent(message: str) -> Rule:
    """Return a rule for a field that must not be set; empty values count as absent."""

    def rule(value: object, path: str, problems: Problems) -> None:
        if value:
            problems.add(path, message, value)

    return rule


def text(*checks: TextCheck, empty_ok: bool = False) -> Rule:
    """Return a rule for a string that passes all checks, or is empty if `empty_ok`."""

    def rule(value: object, path: str, problems: Problems) -> None:
        if not isinstance(value, str):
            problems.add(path, "must be a string", value)
            return
        if empty_ok and not value:
            return
        for check in checks:
            message = check(value)
            if message is not None:
                problems.add(path, message, value)

    return rule


def one_of(*choices: str, hints: Mapping[str, str] | None = None) -> Rule:
    """Return a rule for one of the given words; `hints` says what to write instead of others."""
    allowed = frozenset(choices)
    message = "must be one of " + ", ".join(choice or '""' for choice in choices)
    instead = hints or {}

    def rule(value: object, path: str, problems: Problems) -> None:
        if not isinstance(value, str) or value not in allowed:
            near = _nearest(value, choices)
            guess = f"; did you mean {near}?" if near else ""
            hint = instead.get(value) if isinstance(value, str) else None
            problems.add(path, message + (guess if hint is None else f"; {hint}"), value)

    return rule


def whole_number(low: int, high: int, message: str | None = None) -> Rule:
    """Return a rule for an integer within inclusive bounds."""
    both = f"must be between {low} and {high}, inclusive"
    too_low = message or both
    too_high = message if message and str(high) in message else both

    def rule(value: object, path: str, problems: Problems) -> None:
        if not isinstance(value, int) or isinstance(value, bool):
            problems.add(path, "must be an integer", value)
        elif not low <= value <= high:
            problems.add(path, too_low if value < low else too_high, value)

    return rule


def number(low: float, high: float) -> Rule:
    """Return a rule for a number within inclusive bounds."""

    def rule(value: object, path: str, problems: Problems) -> None:
        if not isinstance(value, int | float) or isinstance(value, bool):
            problems.add(path, "must be a number", value)
        elif not low <= value <= high:
            problems.add(path, f"must be between {low} and {high}, inclusive", value)

    return rule


def boolean(value: object, path: str, problems: Problems) -> None:
    """Accept true and false."""
    if not isinstance(value, bool):
        problems.add(path, "must be true or false", value)


def nullable(rule: Rule) -> Rule:
    """Return a rule for a value that may also be null."""

    def checked(value: object, path: str, problems: Problems) -> None:
        if value is not None:
            rule(value, path, problems)

    return checked


def list_of(item: Rule, *, at_least: str | None = None, values: bool = False) -> Rule:
    """Return a rule for a list of limited length; `at_least` is the error for an empty list."""

    def rule(value: object, path: str, problems: Problems) -> None:
        if not isinstance(value, list):
            problems.add(path, "must be a list", value)
            return
        limit = problems.limits.values_max if values else problems.limits.terms_max
        if len(value) > limit:
            problems.add(path, f"must have at most {limit} items; it has {len(value)}", len(value))
            return
        if at_least and not value:
            problems.add(path, at_least)
        for index, element in enumerate(value):
            if problems.full:
                return
            item(element, f"{path}[{index}]", problems)

    return rule


def map_of(key: TextCheck, item: Rule) -> Rule:
    """Return a rule for an object used as a map; the path of an entry is `path[key]`."""

    def rule(value: object, path: str, problems: Problems) -> None:
        if not isinstance(value, dict):
            problems.add(path, "must be an object", value)
            return
        for name, element in value.items():
            if problems.full:
                return
            message = key(name)
            if message is not None:
                problems.add(key_at(path, name), f"the key {message}", name)
            item(element, key_at(path, name), problems)

    return rule


def record(
    fields: Mapping[str, Rule],
    *,
    required: Sequence[str] = (),
    closed: bool = True,
    mistakes: Mapping[str, str] | None = None,
    also: Iterable[RecordCheck] = (),
) -> Rule:
    """Return a rule for an object with named fields.

    Args:
        fields: a rule for each known field.
        required: fields that must be present and not null.
        closed: whether unknown fields are errors; those in `mistakes` always are.
        mistakes: error messages for common wrong field names.
        also: checks across fields.
    """
    checks = tuple(also)
    likely = mistakes or {}

    def rule(value: object, path: str, problems: Problems) -> None:
        if not isinstance(value, dict):
            problems.add(path, REQUIRED if value is None else "must be an object", value)
            return
        for name in required:
            if value.get(name) is None:
                problems.add(at(path, name), REQUIRED)
        for name, element in value.items():
            if name not in fields:
                if (closed or name in likely) and not problems.full:
                    problems.add(at(path, name), unknown(name, fields, likely), element)
            elif element is not None:
                fields[name](element, at(path, name), problems)
        for check in checks:
            check(value, path, problems)

    return rule


def unknown(name: str, known: Iterable[str], mistakes: Mapping[str, str]) -> str:
    """Return the error message for an unknown field, suggesting a similar known name."""
    if name in mistakes:
        return f"unknown field; did you mean {mistakes[name]}?"
    near = _nearest(name, known)
    return f"unknown field; did you mean {near}?" if near else "unknown field"


def _nearest(word: object, known: Iterable[str]) -> str | None:
    """Return the most similar known word, or None if none is similar or `word` is too long."""
    if not isinstance(word, str) or len(word) > GUESSED_LENGTH_MAX:
        return None
    by_lower = {name.lower(): name for name in known}
    near = get_close_matches(word.lower(), list(by_lower), 1)
    return by_lower[near[0]] if near else None


def items_of(value: object) -> list[object]:
    """Return the items of a list, or an empty list; used by checks across fields."""
    return value if isinstance(value, list) else []


def entries_of(value: object) -> dict[str, object]:
    """Return the entries of an object, or an empty dict; used by checks across fields."""
    return value if isinstance(value, dict) else {}


def without_nulls(value: object) -> object:
    """Return a copy without null fields; nulls in lists are kept."""
    if isinstance(value, dict):
        return {k: without_nulls(v) for k, v in value.items() if v is not None}
    return [without_nulls(v) for v in value] if isinstance(value, list) else value
