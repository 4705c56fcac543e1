"""Rules in a pod's annotation, which extend or replace those of its spec.

Some orchestrators create pods of a type that cannot hold Moorage's own fields. They can write the
same rules as JSON into the annotation `rules.moorage.dev/v1alpha1`. The pod is stored as sent;
annotation and spec are merged when a pod is decoded, so that rules need no knowledge of the
annotation. The key contains the version, so that the format can change.
"""

from collections.abc import Mapping
from typing import Literal

from service.model.core.errors import InvalidManifest, MalformedJSON
from service.model.core.metadata import RULES_PREFIX
from service.model.core.primitives import Strict
from service.model.core.strict_json import decode_strict
from service.model.core.type_rules import declared
from service.model.core.validators import (
    Problems,
    Record,
    at,
    entries_of,
    items_of,
    key_at,
    without_nulls,
)
from service.model.pods.affinity_rules import (
    AFFINITY,
    CONNECTIONS,
    DATA_AFFINITY,
    IN_BOTH,
    spread_constraints,
)
from service.model.pods.label_keys import label_keys, pod_terms
from service.model.pods.pod import (
    Affinity,
    DataAffinity,
    PodConnection,
    PodSpec,
    TopologySpreadConstraint,
)
from service.model.pods.pod_limits import check_pod_limits

ANNOTATION = f"{RULES_PREFIX}v1alpha1"
PATH = key_at("metadata.annotations", ANNOTATION)
_MODE = "mode"
_LABEL_KEYS = ("matchLabelKeys", "mismatchLabelKeys")
_ALTERNATIVES = "nodeSelectorTerms"

Json = dict[str, object]


class AnnotatedRules(Strict, frozen=True, kw_only=True):
    """The rules that the annotation may hold, and whether they replace those of the spec."""

    mode: Literal["Add", "Replace"] = "Add"
    """`Add` appends the rules to those of the spec. `Replace` overrides each field of the spec that
    the annotation sets."""
    affinity: Affinity | None = None
    """Rules about nodes and about other pods."""
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] | None = None
    """How evenly pods have to be spread over domains."""
    connections: tuple[PodConnection, ...] | None = None
    """Pods that the pod communicates with."""
    data_affinity: DataAffinity | None = None
    """Rules about the data that nodes have."""


class RulesOrigin(Strict, frozen=True, kw_only=True, omit_defaults=False):
    """An annotation of the pod from which some of its rules are."""

    annotation: str
    """The key of the annotation."""
    mode: Literal["Add", "Replace"]
    """Whether they were added to those of the spec, or count in their place."""
    rules: list[str]
    """Where they stand among all rules of the pod, as other answers name them: after those of the
    spec, unless they replace these."""


class AnnotatedSpec(PodSpec, frozen=True, kw_only=True):
    """A spec with rules merged from the pod's annotation, and the annotation's value."""

    annotation: str
    rules_from: RulesOrigin


def rules_from(spec: PodSpec) -> RulesOrigin | None:
    """Return the origin of the rules merged from an annotation, or None if the spec has none."""
    return spec.rules_from if isinstance(spec, AnnotatedSpec) else None


def annotation_of(spec: PodSpec) -> str | None:
    """Return the value of the annotation merged into a spec, or None."""
    return spec.annotation if isinstance(spec, AnnotatedSpec) else None


def rules_in(annotation: str) -> Json:
    """Decode the value of a valid annotation."""
    return entries_of(without_nulls(decode_strict(annotation.encode())))


def check_annotations(annotations: Mapping[str, str], problems: Problems) -> None:
    """Check a pod's annotation of rules on its own, and add its errors to `problems`."""
    for key in annotations:
        if key.startswith(RULES_PREFIX) and key != ANNOTATION:
            path = key_at("metadata.annotations", key)
            problems.add(path, f"is no known version; did you mean {ANNOTATION}?")
    value = annotations.get(ANNOTATION)
    if value is not None:
        _check(value, problems)


def merge_annotated(spec: Json, annotation: str) -> tuple[Json, RulesOrigin]:
    """Merge the rules of a valid annotation into a decoded spec; return both spec and origin."""
    sent = rules_in(annotation)
    mode: Literal["Add", "Replace"] = "Replace" if sent.get(_MODE) == "Replace" else "Add"
    rules = {name: rule for name, rule in sent.items() if name != _MODE}
    own = {name: rule for name, rule in spec.items() if mode == "Add" or name not in rules}
    paths: list[str] = []
    merged = entries_of(_merged(own, rules, "spec", paths))
    return merged, RulesOrigin(annotation=ANNOTATION, mode=mode, rules=paths)


def check_merged(spec: Json, annotation: str, problems: Problems) -> None:
    """Add an error wherever a valid annotation cannot be merged into a valid spec."""
    sent = rules_in(annotation)
    merged, _ = merge_annotated(spec, annotation)
    if sent.get(_MODE) == "Replace":
        check_pod_limits(merged, PATH, problems)
        return
    own, added = (_required_of_nodes(rules) for rules in (spec, sent))
    for variant in own.keys() & added.keys():
        message = (
            "cannot be added: the spec has such terms, of which one has to match; use mode Replace"
        )
        problems.add(f"{PATH}.affinity.nodeAffinity.{variant}", message)
    conflicts = Problems(problems.limits)
    AFFINITY(merged.get("affinity") or {}, "affinity", conflicts)
    spread_constraints(
        merged.get("topologySpreadConstraints") or [], "topologySpreadConstraints", conflicts
    )
    CONNECTIONS(merged.get("connections") or [], "connections", conflicts)
    DATA_AFFINITY(merged.get("dataAffinity") or {}, "dataAffinity", conflicts)
    check_pod_limits(merged, "", conflicts)
    for error in conflicts.errors:
        field = error.field.partition("[")[0]
        problems.add(f"{PATH}.{field}", f"added to the spec's own: {error.field} {error.message}")


def _required_of_nodes(fields: Json) -> Json:
    rules = entries_of(entries_of(fields.get("affinity")).get("nodeAffinity"))
    return {name: rule for name, rule in rules.items() if entries_of(rule)}


def _merged(own: object, added: object, path: str, paths: list[str]) -> object:
    """Merge two values of one field: concatenate lists, and merge objects field by field."""
    if isinstance(added, list):
        before = items_of(own)
        paths += [f"{path}[{len(before) + index}]" for index in range(len(added))]
        return [*before, *added]
    if not isinstance(added, dict) or _ALTERNATIVES in added:
        paths.append(path)
        return added
    fields = entries_of(own)
    return fields | {
        name: _merged(fields.get(name), rule, at(path, name), paths) for name, rule in added.items()
    }


def _check(value: str, problems: Problems) -> None:
    try:
        sent = decode_strict(value.encode())
    except MalformedJSON as error:
        problems.add(PATH, f"must be JSON: {error}")
        return
    except InvalidManifest as error:
        problems.errors += error.under(PATH).errors
        return
    _RULES(sent, PATH, problems)


def _nothing_to_merge(rules: Record, path: str, problems: Problems) -> None:
    """Reject label keys, which can only be merged into selectors of the spec itself."""
    for where, term in pod_terms(entries_of(rules)):
        for field in _LABEL_KEYS:
            if term.get(field):
                message = "cannot be used here: have the selector name the labels"
                problems.add(f"{path}.{where.removeprefix('spec.')}.{field}", message)
    constraints = "topologySpreadConstraints"
    if label_keys({constraints: rules.get(constraints)}):
        problems.add(at(path, constraints), IN_BOTH)


_RULES = declared(
    AnnotatedRules,
    {
        "affinity": AFFINITY,
        "topologySpreadConstraints": spread_constraints,
        "connections": CONNECTIONS,
        "dataAffinity": DATA_AFFINITY,
    },
    mistakes={
        "topologySpreadConstraint": "topologySpreadConstraints",
        "spec": "the fields themselves",
    },
    also=(_nothing_to_merge,),
)
