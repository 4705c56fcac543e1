"""Conformance vectors: what a case asks, what it expects, and where an answer differs. Pure.

A case is one JSON object: a cluster, an incoming pod, and what kube-scheduler's own code answered (`expect`). A trace is a
cluster and steps that change it, some of which ask.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Vector = Mapping[str, Any]

EXACTLY_KUBERNETES: Mapping[str, Any] = {
    "daemonNamespaces": [],
    "restrictAllNamespacesAntiAffinity": False,
}
"""Settings whose defaults are Moorage's own; Kubernetes has neither rule."""

READER_NOTES = frozenset({"preAdmission"})
"""Entries of a vector's config that are meant for its reader, and no settings."""

OURS_ALONE = frozenset({"semantics"})
"""What an explanation has beyond a vector's `expect`."""

PER_PLUGIN = ("filters", "unresolvable", "scores")
STEP_FIELDS = ("feasible", "best", "total", "message")

ABSENT = "(absent)"


@dataclass(frozen=True, kw_only=True)
class Difference:
    """One place where an answer is not the expected one."""

    field: str
    plugin: str | None = None
    node: str | None = None
    expected: object
    got: object

    def describe(self) -> str:
        """One line for people."""
        place = " ".join(part for part in (self.field, self.plugin, self.node) if part)
        return f"{place}: expected {self.expected!r}, got {self.got!r}"


def is_trace(vector: Vector) -> bool:
    """Whether a vector is a trace (else it is a single case)."""
    return "steps" in vector


def group_of(vector: Vector) -> str:
    """The feature group that a vector is counted under: its name without the running number."""
    if is_trace(vector):
        return "traces"
    if vector.get("source") == "seed":
        return "scenarios"
    stem, _, number = str(vector["name"]).rpartition("-")
    return stem if number.isdigit() else str(vector["name"])


def settings_of(vector: Vector) -> dict[str, Any]:
    """The cluster configuration under which a vector was computed."""
    given = {name: value for name, value in vector["config"].items() if name not in READER_NOTES}
    return {**given, **EXACTLY_KUBERNETES}


def expected_of(case: Vector) -> Mapping[str, Any]:
    """The answer that a case expects: Kubernetes' documented rule where its code deviates from that."""
    expected: Mapping[str, Any] = case.get("expectDocumented") or case["expect"]
    return expected


def request_of(case: Vector) -> dict[str, Any]:
    """The body of the simulation that a case stands for."""
    parts = {name: case[name] for name in ("namespaces", "nodes", "pods", "pod")}
    return {"config": settings_of(case), **parts}


def differences(expected: Mapping[str, Any], answer: Mapping[str, Any]) -> list[Difference]:
    """Where a full explanation differs from what a case expects, plugin by plugin."""
    found: list[Difference] = []
    for field in sorted(expected.keys() | answer.keys() - OURS_ALONE):
        wanted, got = expected.get(field, ABSENT), answer.get(field, ABSENT)
        if wanted == got:
            continue
        if field in PER_PLUGIN and ABSENT not in (wanted, got):
            found += _by_plugin(field, wanted, got)
        else:
            found.append(Difference(field=field, expected=wanted, got=got))
    return found


def step_differences(expected: Mapping[str, Any], answer: Mapping[str, Any]) -> list[Difference]:
    """Where a full explanation differs from what a step of a trace expects."""
    return [
        Difference(field=field, expected=expected.get(field), got=answer.get(field))
        for field in STEP_FIELDS
        if expected.get(field) != answer.get(field)
    ]


def _by_plugin(
    field: str, wanted: Mapping[str, Any], got: Mapping[str, Any]
) -> Iterator[Difference]:
    for plugin in sorted(wanted.keys() | got.keys()):
        yield from _by_node(field, plugin, wanted.get(plugin, ABSENT), got.get(plugin, ABSENT))


def _by_node(field: str, plugin: str, wanted: Any, got: Any) -> Iterator[Difference]:
    if wanted == got:
        return
    if not (isinstance(wanted, Mapping) and isinstance(got, Mapping)):
        yield Difference(field=field, plugin=plugin, expected=wanted, got=got)
        return
    for node in sorted(wanted.keys() | got.keys()):
        pair: Sequence[object] = (wanted.get(node, ABSENT), got.get(node, ABSENT))
        if pair[0] != pair[1]:
            yield Difference(field=field, plugin=plugin, node=node, expected=pair[0], got=pair[1])
