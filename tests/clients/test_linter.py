"""A linter finds nothing in the OpenAPI document."""

import json
from pathlib import Path

import pytest

from tests.clients import tools

pytestmark = pytest.mark.clients


def findings(folder: Path) -> list[str]:
    script = folder / "node_modules" / "@redocly" / "cli" / "bin" / "cli.js"
    options = ["--extends", "recommended", "--format", "json", "--max-problems", "1000"]
    linted = tools.tried([tools.node(), script, "lint", *options, "openapi.json"], folder)
    report = json.loads(linted.stdout)
    return [f"{each['ruleId']}: {each['message']}" for each in report["problems"]]


def test_the_document_has_no_findings(folder: Path) -> None:
    assert findings(folder) == []


def test_a_mistake_is_found(folder: Path) -> None:
    path = folder / "openapi.json"
    document = json.loads(path.read_text(encoding="utf-8"))
    content = document["paths"]["/livez"]["get"]["responses"]["200"]["content"]
    content["application/json"]["example"] = {"status": 1}
    path.write_text(json.dumps(document), encoding="utf-8")
    assert any("no-invalid-media-type-examples" in each for each in findings(folder))
