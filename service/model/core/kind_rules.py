"""Validation rules of a kind of object: its API versions, metadata, and specs."""

from collections.abc import Mapping, Sequence

import msgspec
from msgspec.structs import replace

from service.model.core import names
from service.model.core.primitives import ObjectMeta
from service.model.core.selector_rules import LABELS
from service.model.core.type_rules import declared
from service.model.core.validators import (
    Problems,
    Record,
    RecordCheck,
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
    """Return the rule for a kind's metadata, given the check for valid names."""
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
    """The rules that make objects of one kind valid.

    `envelope` is the rule for everything but `spec`, which has a separate rule so that specs known
    to be valid need not be checked again.
    """

    namespaced: bool
    envelope: Rule
    spec: Rule

    def also(self, checks: Sequence[RecordCheck]) -> "KindRules":
        """Return the rules with further checks across the fields of the envelope."""
        own = self.envelope

        def envelope(value: object, path: str, problems: Problems) -> None:
            own(value, path, problems)
            for check in checks:
                check(entries_of(value), path, problems)

        return replace(self, envelope=envelope) if checks else self


_V1 = one_of("v1")


def kind_rules(
    kind: str,
    name: TextCheck,
    *,
    namespaced: bool = False,
    api_version: Rule = _V1,
    fields: Mapping[str, Rule] = {},
    required: Sequence[str] = (),
    spec: Rule = anything,
) -> KindRules:
    """Build the rules of a kind; fields without a rule may have any value."""
    envelope = record(
        {
            "apiVersion": api_version,
            "kind": one_of(kind),
            "metadata": metadata_rule(name, namespaced=namespaced),
            "spec": anything,
            **fields,
        },
        required=("metadata", *required),
        closed=False,
    )
    return KindRules(namespaced, envelope, spec)
