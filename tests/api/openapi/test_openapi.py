"""The OpenAPI document: complete, described, true to the code, and readable without a network."""

import asyncio
import json
import re
import threading

import pytest

from service.api.http.problems import PROBLEMS
from service.api.resources import handlers as routes
from service.api.resources.handlers import HANDLERS, openapi_document
from service.cli.commands.openapi import rendered_document
from service.model.core.field_warnings import WARNINGS
from tests.api.harness import Harness
from tests.paths import ROOT

STORED = ROOT / "openapi" / "openapi.json"
OPERATION_IDS = [
    "listClusters",
    "getCluster",
    "putCluster",
    "patchCluster",
    "deleteCluster",
    "listNodes",
    "getNode",
    "putNode",
    "patchNode",
    "deleteNode",
    "listNamespaces",
    "getNamespace",
    "putNamespace",
    "patchNamespace",
    "deleteNamespace",
    "listPods",
    "listNamespacedPods",
    "getPod",
    "putPod",
    "patchPod",
    "deletePod",
    "applyObjects",
    "exportCluster",
    "placePods",
    "bindPod",
    "explainPod",
    "getTopology",
    "watchChanges",
    "simulate",
    "getLiveness",
    "getReadiness",
    "getMetrics",
]


def operations() -> list[tuple[str, dict]]:
    return [
        (path, operation)
        for path, methods in openapi_document()["paths"].items()
        for operation in methods.values()
    ]


def test_every_operation_has_the_name_of_the_api() -> None:
    ids = [operation["operationId"] for _, operation in operations()]
    assert sorted(ids) == sorted(set(ids))
    assert set(OPERATION_IDS) <= set(ids)


def test_every_handler_is_described() -> None:
    pages = {"page", "page_file", "docs", "operations", "docs_file"}
    pages |= {"openapi_json", "errors", "error", "warnings", "warning"}
    pages |= {"options", "debug_replicas"}
    undescribed = {h.handler_name for h in HANDLERS if "operation" not in (h.opt or {})}
    assert undescribed == pages


def test_every_schema_and_field_is_described() -> None:
    missing = [
        f"{name}.{field}"
        for name, schema in openapi_document()["components"]["schemas"].items()
        for field, part in [("", schema), *schema.get("properties", {}).items()]
        if not part.get("description")
    ]
    assert missing == []


def test_every_parameter_and_answer_is_described() -> None:
    for path, operation in operations():
        parts = [*operation.get("parameters", []), *operation["responses"].values()]
        assert all(part["description"] for part in parts), path
        assert operation["summary"], path


def test_every_path_parameter_is_declared() -> None:
    for path, operation in operations():
        declared = [p["name"] for p in operation.get("parameters", []) if p["in"] == "path"]
        assert declared == re.findall(r"{(\w+)}", path)


def test_every_error_has_a_body() -> None:
    for path, operation in operations():
        for status, answer in operation["responses"].items():
            if int(status) >= 400:
                assert [*answer["content"]] == ["application/problem+json"], path
                body = answer["content"]["application/problem+json"]
                assert body["schema"] == {"$ref": "#/components/schemas/Problem"}, path


def test_references_lead_somewhere() -> None:
    document = openapi_document()

    def references(value: object):
        if isinstance(value, dict):
            yield from [value["$ref"]] if "$ref" in value else []
            for part in value.values():
                yield from references(part)
        elif isinstance(value, list):
            for part in value:
                yield from references(part)

    for reference in set(references(document)):
        target = document
        for key in reference.removeprefix("#/").split("/"):
            target = target[key]


def test_request_bodies_show_the_whole_manifest() -> None:
    schemas = openapi_document()["components"]["schemas"]
    pods = schemas["PlacementRequest"]["properties"]["pods"]
    assert pods["items"] == {"$ref": "#/components/schemas/Pod"}
    assert "topologySpreadConstraints" in schemas["PodSpec"]["properties"]
    assert schemas["PodAffinityTerm"]["required"] == ["topologyKey"]


def test_the_stored_document_is_what_the_code_says() -> None:
    assert STORED.read_text() == rendered_document(), "Run `make openapi`."


async def test_the_document_is_served(harness: Harness) -> None:
    answer = await harness.client.get("/openapi.json")
    assert answer.json() == json.loads(rendered_document())


async def test_nobody_else_waits_while_the_document_is_made(monkeypatch) -> None:
    """It takes a second, which is too long for all who are placing pods meanwhile."""
    is_asked, may_be_made = threading.Event(), threading.Event()

    def make() -> bytes:
        is_asked.set()
        return b"made" if may_be_made.wait(5) else b"nobody could do anything meanwhile"

    monkeypatch.setattr(routes, "encoded_document", make)
    documents = routes.Documents()
    asking = [asyncio.create_task(documents.openapi()) for _ in range(2)]
    await asyncio.to_thread(is_asked.wait)
    may_be_made.set()

    assert await asyncio.gather(*asking) == [b"made", b"made"]


@pytest.mark.parametrize(
    "path",
    [
        "/docs/operations",
        "/errors",
        "/errors/PodDiffers",
        "/warnings",
        "/warnings/VolumesIgnored",
    ],
)
async def test_pages_need_nothing_from_elsewhere(harness: Harness, path: str) -> None:
    answer = await harness.client.get(path)
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/html")
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert not re.findall(r"(?:src|href)=['\"](?:https?:)?//", answer.text)


async def test_the_docs_show_every_operation(harness: Harness) -> None:
    page = (await harness.client.get("/docs/operations")).text
    assert all(f"id='{name}'" in page for name in OPERATION_IDS)


@pytest.mark.parametrize("code", PROBLEMS)
async def test_every_problem_has_its_page(harness: Harness, code: str) -> None:
    answer = await harness.client.get(f"/errors/{code}")
    assert answer.status_code == 200
    assert PROBLEMS[code].title.split("`")[0][:20] in answer.text


@pytest.mark.parametrize("code", WARNINGS)
async def test_every_warning_has_its_page(harness: Harness, code: str) -> None:
    answer = await harness.client.get(f"/warnings/{code}")
    assert answer.status_code == 200
    assert WARNINGS[code].message[:20] in answer.text


@pytest.mark.parametrize("pages", ["errors", "warnings"])
async def test_an_unknown_code_has_no_page(harness: Harness, pages: str) -> None:
    assert (await harness.client.get(f"/{pages}/<script>")).status_code == 404


def test_each_read_that_honors_if_none_match_may_answer_that_nothing_has_changed() -> None:
    reads = {
        operation["operationId"]: operation
        for methods in openapi_document()["paths"].values()
        if (operation := methods.get("get"))
    }
    conditional = {
        name: "304" in operation["responses"]
        for name, operation in reads.items()
        if "If-None-Match" in str(operation.get("parameters"))
    }
    assert conditional["getCluster"]
    assert all(conditional.values())
