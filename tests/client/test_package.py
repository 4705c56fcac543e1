"""The package stands by itself, and what is written from the OpenAPI document is what that says."""

import json
import re
import subprocess
import sys

import pytest

import moorage
from moorage import AsyncClient, Client
from moorage.kinds import KINDS
from tests.paths import ROOT
from tools.client import DOCUMENT, PACKAGE, written
from tools.client.copies import COPIES

SERVERS_OWN = {
    "service", "alembic", "asyncpg", "granian", "litestar", "numpy", "prometheus_client", "sqlalchemy",
    "structlog", "typer",
}  # fmt: skip
OF_OTHERS = {
    "getLiveness", "getReadiness", "getMetrics", "listAudit", "listGroups", "getGroup", "putGroup",
    "deleteGroup", "listPrincipals", "getPrincipal", "putPrincipal", "deletePrincipal", "createToken",
    "deleteToken", "extenderFilter", "extenderPrioritize", "extenderPreempt", "extenderBind",
    "listWebhooks", "getWebhook", "putWebhook", "patchWebhook", "deleteWebhook", "rotateWebhookSecret", "pingWebhook",
}  # fmt: skip
"""Operations of operators, for whom there is the command and `Client.request`, and of kube-scheduler."""
METHODS = {
    "applyObjects": "apply",
    "bindPod": "bind",
    "cancelPlan": "cancel_plan",
    "commitPlan": "commit_plan",
    "confirmBinding": "confirm_binding",
    "cordonNode": "cordon",
    "deleteCluster": "delete_cluster",
    "drainNode": "drain",
    "evictPod": "evict",
    "explainPod": "explain",
    "exportCluster": "export",
    "findCapacity": "capacity",
    "findRepairs": "repairs",
    "getCaller": "whoami",
    "getCluster": "get_cluster",
    "getNodeLease": "node_lease",
    "getReadableRevisions": "readable_revisions",
    "getTopology": "topology",
    "listClusters": "list_clusters",
    "listEvents": "events",
    "listNamespacedEvents": "events",
    "listViolations": "violations",
    "makePlan": "plan",
    "patchCluster": "configure",
    "pausePlan": "pause_plan",
    "placePods": "place",
    "placePodsOverClusters": "place_over_clusters",
    "putCluster": "put_cluster",
    "renewNodeLease": "report_nodes",
    "reportNodes": "report_nodes",
    "reportStatuses": "report_statuses",
    "resumePlan": "resume_plan",
    "simulate": "simulate",
    "uncordonNode": "uncordon",
    "watchBindings": "bindings",
    "watchChanges": "watch",
}


@pytest.fixture(scope="module")
def document():
    return json.loads(DOCUMENT.read_text(encoding="utf-8"))


def test_nothing_of_the_server_is_loaded_with_it():
    script = "import sys, moorage, moorage.types; moorage.Client; print(*sys.modules)"
    command = [sys.executable, "-c", script]
    loaded = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    assert {name.split(".")[0] for name in loaded.split()} & SERVERS_OWN == set()
    assert "moorage.synchronous.client" in loaded


def test_what_it_offers_is_there_when_it_is_named():
    assert {getattr(moorage, name).__name__ for name in moorage.__all__} == {*moorage.__all__} - {
        "Manifest"
    } | {"Mapping"}
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        _ = moorage.Nothing


def test_what_is_written_from_others_is_what_they_say():
    """`make client` writes it."""
    stored = {
        str(file.relative_to(PACKAGE)): file.read_text(encoding="utf-8")
        for file in [
            *(PACKAGE / name for name in ("kept_kinds.py", "types.py", *COPIES)),
            *(PACKAGE / "synchronous").glob("*.py"),
        ]
    }
    assert written() == stored


def test_the_kinds_are_those_of_the_document(document):
    paths = document["paths"]
    found = {}
    for path, methods in paths.items():
        match = re.fullmatch(r"/v1/clusters/\{cluster\}/([a-z]+)", path)
        listed = methods.get("get", {}).get("operationId", "")
        of_objects = listed.startswith("list") and listed not in {"listViolations", "listWebhooks"}
        if match and of_objects:
            answer = methods["get"]["responses"]["200"]["content"]["application/json"]["schema"]
            name = answer["$ref"].rpartition("/")[2].removesuffix("List")
            inner = path.replace("{cluster}/", "{cluster}/namespaces/{namespace}/")
            found[name] = (name, match[1], inner in paths)
    assert found == {name: tuple(kind)[:3] for name, kind in KINDS.items()}


@pytest.mark.parametrize("made", [AsyncClient, Client])
def test_every_operation_has_a_method(document, made):
    operations = {
        operation["operationId"]
        for methods in document["paths"].values()
        for operation in methods.values()
        if "operationId" in operation
    }
    client = made("http://nowhere")
    objects = {
        attribute.kind.name: attribute
        for attribute in vars(client).values()
        if hasattr(attribute, "kind")
    }
    assert objects.keys() == KINDS.keys() - {"Event"}
    of_kinds = {name for name in operations if _kind_of(name) in objects}
    assert operations - of_kinds - OF_OTHERS == METHODS.keys()
    for method in METHODS.values():
        assert callable(getattr(client, method))


def _kind_of(operation: str) -> str:
    """The kind in the name of an operation on objects: `Pod` of `deleteNamespacedPods`."""
    verb = re.fullmatch(r"(list|get|create|put|patch|delete)(Namespaced)?(\w+)", operation)
    named = verb[3] if verb else ""
    plurals = {f"{name}s": name for name in KINDS} | {
        "CSIStorageCapacities": "CSIStorageCapacity",
        "DeviceClasses": "DeviceClass",
        "RuntimeClasses": "RuntimeClass",
        "StorageClasses": "StorageClass",
    }
    return plurals.get(named, named)
