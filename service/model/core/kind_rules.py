"""The rules of a kind of objects: its API versions, and which metadata and specs are valid."""

from collections.abc import Mapping, Sequence

import msgspec

from service.model.core import names
from service.model.core.primitives import ObjectMeta
from service.model.core.selector_rules import LABELS
from service.model.core.type_rules import declared
from service.model.core.validators import (
    Problems,
    Record,
    Rule,
    TextCheck,
    anything,
    at,
    boolean,
    entries_of,
    list_of,
    map_of,
    one_of,
    record,
    text,
)

ANNOTATIONS_BYTES_MAX = 256 * 1024


def _annotations_are_small(metadata: Record, path: str, problems: Problems) -> None:
    annotations = entries_of(metadata.get("annotations")).items()
    size = sum(len(key) + len(value) for key, value in annotations if isinstance(value, str))
    if size > ANNOTATIONS_BYTES_MAX:
        message = f"must have at most {ANNOTATIONS_BYTES_MAX} bytes in all"
        problems.add(at(path, "annotations"), message, size)


_OWNER_REFERENCE = record(
    {
        "apiVersion": text(),
        "kind": text(),
        "name": text(),
        "uid": text(names.uid),
        "controller": boolean,
    },
    closed=False,
)


def metadata_rule(name: TextCheck, *, namespaced: bool) -> Rule:
    """Return the rule of the metadata of a kind, given which names are valid."""
    rules: dict[str, Rule] = {
        "name": text(name),
        "namespace": text(names.dns_label) if namespaced else anything,
        "labels": LABELS,
        "annotations": map_of(names.annotation_key, text()),
        "uid": text(names.uid),
        "creationTimestamp": text(names.timestamp),
        "deletionTimestamp": text(names.timestamp),
        "ownerReferences": list_of(_OWNER_REFERENCE),
    }
    return declared(ObjectMeta, rules, also=(_annotations_are_small,))


class KindRules(msgspec.Struct, frozen=True):
    """Which objects of a kind are valid.

    `envelope` is the rule for everything but `spec`, which has a rule of its own: specs that are
    known to be valid need no second look.
    """

    namespaced: bool
    envelope: Rule
    spec: Rule


def kind_rules(
    kind: str,
    name: TextCheck,
    *,
    namespaced: bool = False,
    versions: Sequence[str] = ("v1",),
    fields: Mapping[str, Rule] = {},
    required: Sequence[str] = (),
    spec: Rule = anything,
) -> KindRules:
    """Return the rules of a kind, given those of some fields; other fields may be anything."""
    envelope = record(
        {
            "apiVersion": one_of(*versions),
            "kind": one_of(kind),
            "metadata": metadata_rule(name, namespaced=namespaced),
            "spec": anything,
            **fields,
        },
        required=("metadata", *required),
        closed=False,
    )
    return KindRules(namespaced, envelope, spec)
