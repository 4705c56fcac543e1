"""Clients in Python are generated, checked, and do what an orchestrator does; nothing is lost."""

import re
from pathlib import Path

import pytest

from tests.clients import python_clients, tools

pytestmark = pytest.mark.clients


def test_openapi_python_client(folder: Path, url: str) -> None:
    """It complains of JSON patches and of YAML alone, which it would make code of that cannot run."""
    config = tools.HERE / "openapi-python-client.json"
    command = [tools.PYTHON, "-m", "openapi_python_client", "generate", "--meta", "none"]
    options = ["--path", "openapi.json", "--config", config, "--output-path", "moorage_client"]
    said = tools.run([*command, *options], folder)
    warnings = re.findall(r"^WARNING parsing (.*)", said, re.MULTILINE)
    assert warnings, said
    assert all(each.startswith("PATCH ") for each in warnings), said
    assert len(warnings) == said.count("Unsupported content type application/x-not-generated")
    _check_and_run("openapi_python_client", folder, url)


def test_openapi_generator(folder: Path, url: str) -> None:
    generator = [tools.java(), "-XX:TieredStopAtLevel=1", "-jar", tools.openapi_generator()]
    options = ["-g", "python", "-i", "openapi.json", "-o", ".", "--package-name", "moorage_openapi"]
    parts = ["--global-property", "models,apis,supportingFiles,modelDocs=false,modelTests=false"]
    docs = [*parts[:1], f"{parts[1]},apiDocs=false,apiTests=false"]
    tools.run([*generator, "generate", *options, *docs], folder)
    _check_and_run("openapi_generator", folder, url)


def _check_and_run(scenario: str, folder: Path, url: str) -> None:
    python_clients.check_types(scenario, folder)
    cluster = scenario.replace("_", "-")
    environment = {"MOORAGE_URL": url, "MOORAGE_TOKEN": tools.TOKEN, "CLUSTER": cluster}
    python_clients.run(scenario, folder, **environment)
