"""Every field that Kubernetes has is answered, and the page says how."""

import copy
import typing

import msgspec
import pytest

from service.model.core.field_warnings import IGNORED_FIELDS, WARNINGS
from service.model.plans.plan import PLAN
from service.model.registry.kinds import DECLARED_KINDS
from service.model.registry.manifests import STORED_KINDS
from service.model.volumes.data_sets import DATA_SET
from tools.manifests import answers, gates, places, versions
from tools.manifests.__main__ import PAGE
from tools.manifests.page import page

AGAIN = "Run `python -m tools.manifests`."


def with_field(type_name: str, name: str) -> dict[str, dict[str, list[str]]]:
    """The fields that are stored, and one more in the last version."""
    read = copy.deepcopy(dict(versions.stored()))
    read["1.37"][type_name].append(name)
    return read


def test_the_page_is_what_the_declarations_say():
    assert PAGE.read_text() == page(), AGAIN


def test_no_field_of_kubernetes_is_undecided():
    undecided = [
        f"{each.type_name}: {each.path}"
        for each in answers.fields(versions.stored())
        if each.answer == "undecided"
    ]
    assert undecided == [], "Read it, refuse it, warn of it, or enter it in unread_fields.toml."


@pytest.mark.parametrize(
    ("type_name", "answer"),
    [
        ("PodSpec", "undecided"),
        ("VolumeSource", "undecided"),
        ("CSIDriverSpec", "undecided"),
        ("Toleration", "refused"),
        ("EmptyDirVolumeSource", "kept"),
    ],
)
def test_a_field_that_is_new_in_a_version_shows_up(type_name, answer):
    read = with_field(type_name, "brandNew")
    (found,) = (each for each in answers.fields(read) if each.path.endswith(".brandNew"))
    assert (found.answer, found.versions) == (answer, ("1.37",))


def test_what_is_entered_as_kept_exists_and_has_no_other_answer():
    assert answers.stale(versions.stored()) == []
    assert set(answers.kept().names) <= {each.type_name for each in places.PLACES}


OWN_KINDS = {PLAN.kind, DATA_SET.kind}
"""Kinds that Kubernetes does not have."""


def test_every_stored_kind_has_a_place():
    kinds = {place.kind for place in places.PLACES} - {places.ANY_KIND}
    assert kinds == {*STORED_KINDS, "PriorityClass"} - OWN_KINDS


def test_every_type_that_a_manifest_is_decoded_to_has_a_place():
    """Otherwise nobody would notice a field that a new version adds to it."""
    placed = {place.decoded for place in places.PLACES if place.decoded is not None}
    bodies = {spec.body for kind, spec in DECLARED_KINDS.items() if kind not in OWN_KINDS}
    assert {type_.__name__ for type_ in reached(placed | bodies) - placed} == OWN_TYPES


OWN_TYPES = {"DataAffinity", "PodConnection", "PreferredData", "RequiredData"}
"""Types within pods that Kubernetes does not have."""


def reached(types: set[type[msgspec.Struct]]) -> set[type[msgspec.Struct]]:
    """The types, and those of their fields and of the fields of these."""
    reached_types: set[type[msgspec.Struct]] = set()
    pending = list(types)
    while pending:
        type_ = pending.pop()
        if type_ not in reached_types:
            reached_types.add(type_)
            pending += [
                part for hint in typing.get_type_hints(type_).values() for part in structs(hint)
            ]
    return reached_types


def structs(hint: object) -> typing.Iterator[type[msgspec.Struct]]:
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        yield hint
    for part in typing.get_args(hint):
        yield from structs(part)


def test_a_field_is_not_kept_without_a_reason_if_its_gate_is_on_in_the_last_version():
    """Otherwise Kubernetes' scheduler may read by default what Moorage ignores."""
    stated = gates.stored()
    unexplained = [
        field.path
        for field in answers.fields(versions.stored())
        if field.answer == "kept" and not field.reason
        if is_new(stated["defaults"].get(gate_of(field, stated), {}))
    ]
    assert unexplained == []


def gate_of(field: answers.Field, stated: gates.Gates) -> str:
    return stated["fields"].get(field.type_name, {}).get(field.path.rpartition(".")[2], "")


def is_new(defaults: typing.Mapping[str, str]) -> bool:
    """Whether a gate is on in the last version, and was off in an earlier one."""
    stages = list(defaults.values())
    return stages[-1:] != [] and stages[-1].startswith("on") and not stages[0].startswith("on")


def test_every_warning_about_a_field_of_kubernetes_is_about_one_that_it_has():
    """A path that is misspelt would never be found in a manifest."""
    known = {(each.kind, each.path) for each in answers.fields(versions.stored())}
    known |= {("PriorityClass", f"metadata.{each}") for each in ("labels", "annotations")}
    known |= {("ResourceQuota", "spec.hard[*]"), ("PodGroup", "spec.minResources")}
    known.add(("Pod", "spec.initContainers[].resources.claims"))
    assert {(each.kind, each.path) for each in IGNORED_FIELDS} <= known


def test_fields_that_kubernetes_does_not_have_are_told_apart():
    own = answers.own(versions.stored())
    assert "spec.topologySpreadConstraints[].namespaceSelector" in own
    known = {each.path for each in answers.fields(versions.stored())}
    assert known.isdisjoint(own)


def test_every_code_of_a_declaration_has_a_meaning():
    assert {each.code for each in IGNORED_FIELDS} <= WARNINGS.keys()


def test_the_answers_that_users_ask_for_first():
    found = {(each.kind, each.path): each.answer for each in answers.fields(versions.stored())}
    assert found["Pod", "spec.affinity"] == "honoured"
    assert found["Pod", "spec.volumes[].persistentVolumeClaim"] == "honoured or not"
    assert found["Pod", "spec.resourceClaims"] == "honoured or not"
    assert found["Pod", "spec.dnsPolicy"] == "kept"
    assert found["PriorityClass", "globalDefault"] == "honoured"
