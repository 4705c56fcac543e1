"""Health, metrics, and what is left when the database is gone."""

import asyncio
import re

import msgspec
import pytest

from service.api.telemetry.metrics import Metrics
from service.model.core.errors import StorageUnavailable
from service.runtime.clock import SystemClock
from service.scheduler.maintenance.replica_reports import Reporter
from tests.api.harness import CLUSTER, Harness, node, pod, problem
from tests.paths import ROOT
from tests.waiting import WAIT_SECONDS

OTHER_NAMES = {"moorage_server", "moorage_owner"}
"""Names in the page for operators that are no metrics."""


async def test_health(over_each_store: Harness) -> None:
    for path in ("/livez", "/readyz"):
        answer = await over_each_store.client.get(path)
        assert (answer.status_code, answer.json()) == (200, {"status": "ok"})


async def test_readiness_tells_that_nobody_follows_the_logs_any_more(harness: Harness) -> None:
    """Then no replica would ever be seen to lag."""
    harness.scheduler.pulse.cancel()
    await asyncio.wait([harness.scheduler.pulse])
    assert problem(await harness.client.get("/readyz"), 503) == "ReplicaLags"


@pytest.fixture
async def without_database(harness: Harness, monkeypatch) -> Harness:
    """An application that has lost its database after a node was stored."""
    await harness.put_node("n1")
    await harness.place(pod("there"))

    async def gone(*_: object, **__: object) -> None:
        raise StorageUnavailable("The database cannot be reached.")

    store = harness.store
    for part, *names in (
        (store.log, "head", "commit", "check_writable"),
        (store.clusters, "find", "get"),
        (store.objects, "get", "list"),
    ):
        for name in names:
            monkeypatch.setattr(part, name, gone)
    return harness


async def test_readiness_tells_that_the_database_is_gone(without_database: Harness) -> None:
    answer = await without_database.client.get("/readyz")
    assert problem(answer, 503) == "StorageUnavailable"
    assert answer.headers["retry-after"]
    assert (await without_database.client.get("/livez")).status_code == 200


async def test_readiness_tells_that_commits_fail_though_reads_work(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with a full disk."""

    async def no_room() -> None:
        raise StorageUnavailable("No space left on device.")

    monkeypatch.setattr(harness.store.log, "check_writable", no_room)
    answer = await harness.client.get("/readyz")
    assert problem(answer, 503) == "StorageUnavailable"
    assert answer.json()["detail"] == "No space left on device."
    assert (await harness.client.get(f"{CLUSTER}/nodes")).status_code == 200


async def test_reads_and_writes_are_unavailable(without_database: Harness) -> None:
    client = without_database.client
    for answer in (
        await client.get(f"{CLUSTER}/nodes"),
        await client.get(f"{CLUSTER}/nodes/n1"),
        await client.put(f"{CLUSTER}/nodes/n1", json=node("n1", zone="b")),
    ):
        assert problem(answer, 503) == "StorageUnavailable"
        assert answer.headers["retry-after"]


async def test_simulations_and_explanations_go_on(without_database: Harness) -> None:
    client = without_database.client
    body = {"nodes": [node("n1")], "pod": pod("web-0")}
    assert (await client.post("/v1/simulations", json=body)).status_code == 200
    explained = await client.get(f"{CLUSTER}/namespaces/shop/pods/there/explanation")
    assert explained.status_code == 200
    dry = await without_database.place(pod("web-0"), dryRun=True)
    assert dry["results"][0]["outcome"] == "Placed"


async def test_metrics_count_requests_and_placements(harness: Harness) -> None:
    await harness.put_node("n1")
    body = {"pods": [pod("a"), pod("b", nodeSelector={"no": "such"})]}
    for _ in range(2):
        key = {"idempotency-key": "once"}
        await harness.client.post(f"{CLUSTER}/placements", json=body, headers=key)
    await harness.client.get(f"{CLUSTER}/nodes/secret-name")
    text = (await harness.client.get("/metrics")).text
    profile = 'profile="default-scheduler"'
    requests = "moorage_http_request_duration_seconds_bucket"
    assert f'{requests}{{le="+Inf",operation="getNode",status="404"}} 1.0' in text
    assert f'{requests}{{le="+Inf",operation="placePods",status="200"}} 2.0' in text
    assert f'scheduler_schedule_attempts_total{{{profile},result="scheduled"}} 1.0' in text
    assert f'scheduler_schedule_attempts_total{{{profile},result="unschedulable"}} 1.0' in text
    assert "scheduler_pod_scheduling_sli_duration_seconds_count 1.0" in text
    assert 'moorage_commits_total{kind="PlacePods"} 1.0' in text
    for plugin in ("NodeResourcesFit", "TaintToleration"):
        assert (
            f'extension_point="Filter",le="+Inf",plugin="{plugin}",status="Success"}} 1.0' in text
        )
    assert "secret-name" not in text


async def test_replicas_are_compared_only_when_asked_for(make_harness) -> None:
    plain = await make_harness()
    assert problem(await plain.client.get("/debug/replicas"), 404) == "NoSuchPath"

    debugging = await make_harness(debug=True)
    await debugging.put_node("n1")
    reporter = Reporter(
        debugging.store.replica_reports, debugging.scheduler, SystemClock(), "host/1"
    )
    await reporter.report()
    answer = await debugging.client.get("/debug/replicas")
    [(revision, digest)] = debugging.scheduler.replicas().values()
    expected = {"process": "host/1", "cluster": "default", "revision": revision, "hash": digest}
    assert answer.json() == {"items": [expected]}


async def test_a_process_whose_replica_lags_is_not_ready(harness: Harness, monkeypatch) -> None:
    await harness.put_node("n1")
    lagging = msgspec.structs.replace(harness.scheduler.gauges(), lag_seconds=2 * WAIT_SECONDS)
    monkeypatch.setattr(harness.scheduler, "gauges", lambda: lagging)
    assert problem(await harness.client.get("/readyz"), 503) == "ReplicaLags"


def test_the_page_for_operators_tells_of_every_metric_and_of_no_other() -> None:
    """O06: the metrics, the alerts and where to look when placements get slow."""
    page = (ROOT / "docs" / "operating.md").read_text(encoding="utf-8")
    text = Metrics().text().decode()
    exposed = set(re.findall(r"^# TYPE (?!.*_created)(\S+)", text, re.MULTILINE))
    told = set(re.findall(r"\b((?:moorage|scheduler|process)_[a-z]+_\w+)", page))
    suffixes = {name + suffix for name in exposed for suffix in ("_bucket", "_sum", "_count")}
    assert exposed - told == set()
    assert told - exposed - suffixes - OTHER_NAMES == set()
    assert "When placements get slow" in page
