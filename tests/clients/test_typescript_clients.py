"""Clients in TypeScript are generated, checked, and do what an orchestrator does; nothing is lost."""

import json
import shutil
from pathlib import Path

import pytest

from tests.clients import tools

pytestmark = pytest.mark.clients


def test_openapi_typescript(folder: Path, url: str) -> None:
    script = folder / "node_modules" / "openapi-typescript" / "bin" / "cli.js"
    output = "generated/openapi_typescript.ts"
    tools.run([tools.node(), script, "openapi.json", "-o", output], folder)
    _check_and_run("openapi_typescript", folder, url)


def test_hey_api(folder: Path, url: str) -> None:
    config = {
        "input": "openapi.json",
        "output": {"path": "generated/hey_api", "module": {"extension": ".js"}},
    }
    (folder / "config.mjs").write_text(f"export default {json.dumps(config)};")
    script = folder / "node_modules" / "@hey-api" / "openapi-ts" / "bin" / "run.js"
    tools.run([tools.node(), script, "-f", "config.mjs"], folder)
    _check_and_run("hey_api", folder, url)


def test_the_wrapper(folder: Path, url: str) -> None:
    package = folder / "client"
    shutil.copytree(tools.WRAPPER, package, ignore=shutil.ignore_patterns("node_modules", "dist"))
    script = folder / "node_modules" / "openapi-typescript" / "bin" / "cli.js"
    tools.run([tools.node(), script, "openapi.json", "-o", "client/src/schema.d.ts"], folder)
    compiler = folder / "node_modules" / "typescript" / "bin" / "tsc"
    tools.run([tools.node(), compiler, "-p", "client/tsconfig.json"], folder)
    shutil.copy(package / "src" / "schema.d.ts", package / "dist")
    shutil.copytree(package / "dist", folder / "built" / "client" / "dist")
    _check_and_run("wrapper", folder, url)


def test_the_wrapper_is_built_by_the_tools_that_it_is_tested_with() -> None:
    tested = json.loads((tools.HERE / "node" / "package.json").read_text(encoding="utf-8"))
    own = json.loads((tools.WRAPPER / "package.json").read_text(encoding="utf-8"))
    assert {**own["dependencies"], **own["devDependencies"]}.items() <= tested[
        "devDependencies"
    ].items()


def _check_and_run(scenario: str, folder: Path, url: str) -> None:
    shutil.copy(tools.HERE / "scenarios" / f"{scenario}.ts", folder)
    shutil.copy(tools.HERE / "node" / "tsconfig.json", folder)
    (folder / "package.json").write_text('{"type": "module"}')
    compiler = folder / "node_modules" / "typescript" / "bin" / "tsc"
    tools.run([tools.node(), compiler, "-p", "tsconfig.json"], folder)
    command = [tools.node(), f"built/{scenario}.js", tools.HERE / "manifests.json"]
    cluster = scenario.replace("_", "-")
    tools.run(command, folder, MOORAGE_URL=url, MOORAGE_TOKEN=tools.TOKEN, CLUSTER=cluster)
