"""Rules that keep generators of clients from misreading the OpenAPI document, for all operations."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from service.api.http.operation import Operation
from service.api.http.problems import PROBLEM_JSON, PROBLEMS, headers_of
from service.api.openapi import document
from service.api.openapi.schemas import schemas_of, structs_in
from service.api.resources.handlers import HANDLERS, openapi_document
from service.api.resources.objects.registry import RESOURCES

DOCUMENT = openapi_document()
SCHEMAS = DOCUMENT["components"]["schemas"]
NOT_TOLD_APART = {
    "PlacementResult": "a full explanation and a summary have no word in common that differs",
    "Unplaced": "it has the explanations of a placement's result",
    "BindingMessage": "a problem document is as RFC 9457 has it",
    "WatchMessage": "a problem document is as RFC 9457 has it",
}
"""Schemas with unions that have no discriminator, each with the reason."""


def operations() -> list[tuple[str, dict]]:
    """All operations with their paths."""
    paths = DOCUMENT["paths"].items()
    return [(path, each) for path, methods in paths for each in methods.values()]


def declared() -> list[Operation]:
    return [h.opt["operation"] for h in HANDLERS if "operation" in (h.opt or {})]


def parts_of(value: Any) -> Iterator[dict[str, Any]]:
    """All objects within a part of the document, and itself."""
    if isinstance(value, dict):
        yield value
    for part in value.values() if isinstance(value, dict) else value:
        if isinstance(part, dict | list):
            yield from parts_of(part)


def closedness_of(type_: type[msgspec.Struct]) -> bool | None:
    return SCHEMAS[type_.__name__].get("additionalProperties")


@pytest.mark.parametrize("resource", RESOURCES, ids=lambda each: each.kind)
def test_manifests_keep_what_is_not_declared(resource) -> None:
    """So that read, change, write loses nothing, whichever generator made the client."""
    for type_ in structs_in([resource.wire_type, resource.list_type]):
        refuses = type_.__struct_config__.forbid_unknown_fields
        assert closedness_of(type_) is not refuses, type_
        assert closedness_of(type_) in {True, False}, type_


def test_requests_say_whether_they_may_have_other_fields() -> None:
    bodies = [each.request for each in declared() if each.request is not None]
    for type_ in structs_in([type_ for body in bodies for type_ in body.types.values()]):
        assert closedness_of(type_) is not None, f"{type_}: Strict, or in keeps_unknown?"


def test_a_schema_is_closed_only_if_unknown_fields_are_refused() -> None:
    for type_ in structs_in([type_ for each in declared() for type_ in types_of(each)]):
        refuses = type_.__struct_config__.forbid_unknown_fields
        assert (closedness_of(type_) is False) == refuses, type_


def types_of(operation: Operation) -> list[Any]:
    bodies = [*operation.answers.values(), *([operation.request] if operation.request else [])]
    return [type_ for body in bodies for type_ in body.types.values()]


def test_no_field_has_a_default_for_generators_to_require() -> None:
    for name, schema in SCHEMAS.items():
        for field, described in schema.get("properties", {}).items():
            assert not any("default" in part for part in parts_of(described)), (name, field)


def test_defaults_are_told_in_descriptions() -> None:
    properties = SCHEMAS["PlacementRequest"]["properties"]
    assert properties["policy"]["description"].endswith('Default: `"BestEffort"`.')
    assert properties["dryRun"]["description"].endswith("Default: `false`.")
    assert "Default" not in properties["pods"]["description"]


def test_unions_are_told_apart() -> None:
    undiscriminated = {
        name
        for name, schema in SCHEMAS.items()
        for part in parts_of(schema)
        for union in (part.get("anyOf") or part.get("oneOf"),)
        if union and sum("$ref" in each for each in union) > 1 and "discriminator" not in part
    }
    assert undiscriminated == {*NOT_TOLD_APART}


@pytest.mark.parametrize("union", ["WatchEvent", "ApplicableObject", "RuleObject"])
def test_each_part_of_a_union_has_its_own_kind(union: str) -> None:
    schema = SCHEMAS[union]
    names = [each["$ref"].rpartition("/")[2] for each in schema.get("oneOf") or schema["anyOf"]]
    kinds = [SCHEMAS[name]["properties"]["kind"]["enum"] for name in names]
    assert all(len(words) == 1 for words in kinds)
    assert len({words[0] for words in kinds}) == len(names)
    mapping = schema["discriminator"].get("mapping", {name: name for name in names})
    assert [[word] for word in mapping] == kinds


def test_words_have_a_type() -> None:
    assert all("type" in part for part in parts_of(SCHEMAS) if isinstance(part.get("enum"), list))


OF_NO_OBJECT = {"patchCluster", "patchWebhook"}
APPLY_TYPES = {"application/apply-patch+json", "application/apply-patch+yaml"}


def test_patches_of_all_kinds_are_declared() -> None:
    patched = [each for path, each in operations() if each["operationId"].startswith("patch")]
    assert len(patched) > len(RESOURCES)
    for operation in patched:
        content = operation["requestBody"]["content"]
        assert {*content} == {
            "application/json",
            "application/merge-patch+json",
            "application/strategic-merge-patch+json",
            "application/json-patch+json",
        } | (set() if operation["operationId"] in OF_NO_OBJECT else APPLY_TYPES)
        step = content["application/json-patch+json"]["schema"]["items"]
        assert step == {"$ref": "#/components/schemas/JsonPatchOperation"}


def test_streams_are_text_and_name_the_schema_of_their_events() -> None:
    streams = [
        body
        for _, operation in operations()
        for answer in operation["responses"].values()
        for media_type, body in answer.get("content", {}).items()
        if media_type == "text/event-stream"
    ]
    assert streams
    for stream in streams:
        assert stream["schema"]["type"] == "string"
        assert "contentSchema" in stream["schema"]


def test_every_body_has_an_example() -> None:
    missing = [
        (operation["operationId"], media_type)
        for _, operation in operations()
        for body in (operation.get("requestBody", {}), *operation["responses"].values())
        for media_type, content in body.get("content", {}).items()
        if "example" not in content and not content.get("examples")
    ]
    assert missing == []


def test_examples_of_answers_have_every_field_that_always_comes() -> None:
    missing = []
    for _, operation in operations():
        for answer in operation["responses"].values():
            content = answer.get("content", {}).get("application/json", {})
            schema = content.get("schema", {})
            required = SCHEMAS[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
            shown = [content["example"]] if "example" in content else []
            shown += [named["value"] for named in content.get("examples", {}).values()]
            lacking = [
                {name for name in required.get("required", []) if name not in example}
                for example in shown
            ]
            missing += [(operation["operationId"], *fields) for fields in lacking if fields]
    assert missing == []


def test_every_goal_of_a_plan_has_an_example() -> None:
    bodies = {each["operationId"]: each.get("requestBody", {}) for _, each in operations()}
    schemas = DOCUMENT["components"]["schemas"]
    for operation, goal in (("makePlan", "PlanGoal"), ("putPlan", "KeptGoal")):
        shown = bodies[operation]["content"]["application/json"]["examples"]
        told = {name: each["value"].get("spec", each["value"]) for name, each in shown.items()}
        assert {*told} == {*schemas[goal]["properties"]["type"]["enum"]}
        assert all(name == each["goal"]["type"] for name, each in told.items())


def test_every_error_has_an_example_of_each_code() -> None:
    examples = DOCUMENT["components"]["examples"]
    for _, operation in operations():
        for status, answer in operation["responses"].items():
            for code in answer.get("content", {}).get(PROBLEM_JSON, {}).get("examples", {}):
                assert f"`{code}`" in answer["description"]
                assert examples[code]["value"]["status"] == int(status) == PROBLEMS[code].status


def test_errors_tell_when_to_ask_again() -> None:
    for _, operation in operations():
        for answer in operation["responses"].values():
            codes = answer.get("content", {}).get(PROBLEM_JSON, {}).get("examples", {})
            expected = {header for code in codes for header in headers_of(code)}
            assert expected <= {*answer.get("headers", {})}, operation["operationId"]
    assert "Retry-After" in headers_of("Overloaded")
    assert "Retry-After" in headers_of("TooManyRequests")
    assert headers_of("NotFound") == ()


def test_answers_about_a_cluster_have_its_revision() -> None:
    for path, operation in operations():
        for status, answer in operation["responses"].items():
            if "{cluster}" in path and int(status) < 400:
                assert {"Moorage-Revision", "ETag"} <= {*answer["headers"]}, path


def test_what_anybody_may_ask_asks_for_no_token() -> None:
    public = [each for _, each in operations() if each.get("security") == []]
    assert {each["operationId"] for each in public} >= {"getLiveness", "getReadiness", "getMetrics"}
    for operation in public:
        assert "401" not in operation["responses"], operation["operationId"]


def test_parameters_say_how_they_are_spelled() -> None:
    for path, operation in operations():
        for parameter in operation.get("parameters", []):
            schema = parameter["schema"]
            if parameter["in"] == "path":
                assert {"pattern", "minLength"} & {*schema}, path
            if schema["type"] == "integer":
                assert "minimum" in schema, parameter


def test_exactly_one_of_several_fields_is_a_rule_of_the_schema() -> None:
    placement, simulation = SCHEMAS["PlacementRequest"], SCHEMAS["SimulationRequest"]
    alternatives = [part["required"] for part in parts_of(placement["not"]) if "required" in part]
    assert {*map(tuple, alternatives)} >= {("pods", "podRefs"), ("pods",), ("template",)}
    assert placement["dependentRequired"]["template"] == ["replicas"]
    assert "not" in simulation


class Sealed(msgspec.Struct, forbid_unknown_fields=True):
    """It refuses other fields."""

    inner: "Kept"
    """What it holds."""


class Kept(msgspec.Struct):
    """It says nothing of other fields."""

    word: str = "some"
    """A word."""


def test_only_manifests_are_opened() -> None:
    schemas = schemas_of([Sealed])
    assert schemas["Sealed"]["additionalProperties"] is False
    assert "additionalProperties" not in schemas["Kept"]
    opened = schemas_of([Sealed], [Sealed])
    assert opened["Sealed"]["additionalProperties"] is False
    assert opened["Kept"]["additionalProperties"] is True


def test_manifests_are_all_there() -> None:
    assert {*structs_in(document.kept_types(declared()))} >= {
        *(each.wire_type for each in RESOURCES)
    }
