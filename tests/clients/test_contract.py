"""All operations are tried with requests that are made of the document; answers have to keep to it."""

import json
from pathlib import Path

import pytest

from service.api.resources.handlers import openapi_document
from tests.clients import contract

pytestmark = pytest.mark.clients


def test_all_operations_keep_to_the_document(url: str, tmp_path: Path) -> None:
    document = contract.write_document(tmp_path, openapi_document())
    verdict = contract.tried(url, document, "examples,fuzzing", examples=1)
    assert verdict.passed, verdict.report
    assert verdict.cases > 300, verdict.report


def test_a_broken_promise_is_found(url: str, tmp_path: Path) -> None:
    mistaken = json.loads(json.dumps(openapi_document()))
    mistaken["paths"] = {"/livez": mistaken["paths"]["/livez"]}
    mistaken["components"]["schemas"]["Readiness"]["properties"]["status"]["enum"] = ["fine"]
    document = contract.write_document(tmp_path, mistaken)
    verdict = contract.tried(url, document, "examples,fuzzing", examples=1)
    assert not verdict.passed
    assert "violates schema" in verdict.report
