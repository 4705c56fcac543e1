"""Tries all operations with requests that schemathesis makes of the OpenAPI document.

The caller may do everything on one cluster but delete it, and nothing on the others.
`python -m tests.clients.contract` does this on a server of its own.
"""

import argparse
import json
import os
import re
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import httpx

from service.api.http.operation import NDJSON
from service.api.resources.handlers import openapi_document
from service.server.local_server import temporary_folder
from service.store.embedded import EmbeddedPostgres
from service.store.schema.migrate import upgrade
from tests.api.live import live_server
from tests.clients import tools

CLUSTER = "tried"
PHASES = "examples,coverage,fuzzing,stateful"
SECONDS_MAX = 24 * 3600
EXAMPLES = 100
"""How many requests exploration makes of one operation at most, in each phase."""

_CASES = re.compile(r"(\d+) generated")


class Verdict(NamedTuple):
    """What schemathesis says in the end."""

    passed: bool
    cases: int
    report: str


def make_caller(url: str) -> str:
    """Make the cluster and a caller who may do everything on it, and return the caller's token."""
    headers = {"authorization": f"Bearer {tools.TOKEN}"}
    with httpx.Client(base_url=url, headers=headers, timeout=tools.SECONDS_MAX) as client:
        grants = [{"role": "admin", "cluster": CLUSTER}]
        client.put(f"/v1/clusters/{CLUSTER}", json={"config": {}}).raise_for_status()
        client.put("/v1/principals/explorer", json={"grants": grants}).raise_for_status()
        made = client.post("/v1/principals/explorer/tokens", json={}).raise_for_status()
        return str(made.json()["token"])


def write_document(folder: Path, document: dict[str, Any]) -> Path:
    """The document as schemathesis can use it.

    It checks each event of a stream against a schema, for which OpenAPI 3.1 has no place, and makes
    no NDJSON.
    """
    document = json.loads(json.dumps(document))
    for methods in document["paths"].values():
        for operation in methods.values():
            operation.get("requestBody", {}).get("content", {}).pop(NDJSON, None)
            content = operation["responses"].get("200", {}).get("content", {})
            if "text/event-stream" in content:
                stream = content["text/event-stream"]
                content["text/event-stream"] = {"schema": stream["schema"]["contentSchema"]}
    path = folder / "openapi.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def tried(url: str, document: Path, phases: str, examples: int, seed: int | None = None) -> Verdict:
    """Try all operations; without a seed always with the same requests."""
    config = ["--config-file", tools.HERE / "schemathesis.toml"]
    chosen = ["--generation-deterministic"] if seed is None else ["--seed", seed]
    options = [
        *("--url", url, "--header", f"Authorization: Bearer {make_caller(url)}"),
        *("--phases", phases, "--max-examples", examples, "--no-shrink", "--no-color"),
        *("--workers", 1, "--continue-on-failure", "--request-timeout", 60),
    ]
    schemathesis = tools.PYTHON.with_name("st")
    command = [schemathesis, *config, "run", document, *options, *chosen]
    done = tools.tried(command, document.parent, {"PYTHONHASHSEED": "0"}, SECONDS_MAX)
    cases = _CASES.search(done.stdout)
    report = done.stdout + done.stderr
    return Verdict(done.returncode == 0, int(cases[1]) if cases else 0, report)


def main() -> None:
    """Try all operations on a server of our own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4), "big"))
    parser.add_argument("--examples", type=int, default=EXAMPLES)
    parser.add_argument("--phases", default=PHASES)
    options = parser.parse_args()
    with ExitStack() as stack:
        folder = stack.enter_context(temporary_folder())
        postgres = stack.enter_context(EmbeddedPostgres(folder / "data"))
        upgrade(postgres.url)
        url = stack.enter_context(live_server(postgres.url, token=tools.TOKEN))
        document = write_document(folder, openapi_document())
        verdict = tried(url, document, options.phases, options.examples, options.seed)
    print(verdict.report, flush=True)
    print(f"{verdict.cases} requests, with --seed {options.seed}")
    sys.exit(not verdict.passed)


if __name__ == "__main__":
    main()
