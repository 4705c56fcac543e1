"""The dashboard and the alerts ask for metrics that there are, and Prometheus takes the alerts."""

import json
import re
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from service.api.telemetry.metrics import Metrics
from service.engine import Execution
from service.settings import LIMITS, Settings, limits_of
from tests.paths import ROOT

RULES = ROOT / "deploy" / "prometheus" / "alerts.yml"
RULE_TESTS = RULES.with_name("alerts_test.yml")
DASHBOARD = ROOT / "deploy" / "grafana" / "moorage.json"
METRIC = re.compile(r"\b(?:moorage|scheduler|process)_[a-z_]+\b")
LABELS = re.compile(r"\b((?:moorage|scheduler|process)_[a-z_]+)\{([^}]*)\}")
GROUPS = re.compile(r"\bby \(([^)]*)\)")
GIVEN_BY_PROMETHEUS = {"job", "instance", "le"}


def exposition() -> str:
    return Metrics(version="1.2.3", engine="compiled").text().decode()


def exposed() -> set[str]:
    """All names by which queries may ask, those of histograms' parts included."""
    kinds = dict(re.findall(r"^# TYPE (\S+) (\S+)", exposition(), re.MULTILINE))
    parts = ("_bucket", "_sum", "_count")
    histograms = {name for name, kind in kinds.items() if kind == "histogram"}
    return kinds.keys() | {name + part for name in histograms for part in parts}


def rules() -> Iterator[dict[str, Any]]:
    for group in yaml.safe_load(RULES.read_text("utf-8"))["groups"]:
        yield from group["rules"]


def queries_of_alerts() -> Iterator[str]:
    yield from (rule["expr"] for rule in rules())


def queries_of_panels() -> Iterator[str]:
    panels: list[dict[str, Any]] = json.loads(DASHBOARD.read_text("utf-8"))["panels"]
    for panel in panels:
        yield from (target["expr"] for target in panel.get("targets", []))


@pytest.mark.parametrize("queries", [queries_of_alerts, queries_of_panels])
def test_every_metric_that_is_asked_for_exists(queries) -> None:
    """O06: no alert is silent for ever because a metric has another name."""
    asked = {name for query in queries() for name in METRIC.findall(query)}
    assert len(asked) > 8
    assert asked - exposed() == set()


def test_every_metric_is_on_the_dashboard() -> None:
    asked = {name for query in queries_of_panels() for name in METRIC.findall(query)}
    families = set(re.findall(r"^# TYPE (?!.*_created)(\S+)", exposition(), re.MULTILINE))
    missing = {name for name in families if not any(each.startswith(name) for each in asked)}
    assert missing - {"process_start_time_seconds"} == set()


def test_the_series_of_counters_exist_before_anything_is_counted() -> None:
    """Else the first error of a server would be no increase, and nobody would be alerted."""
    text = exposition()
    for series in (
        'scheduler_schedule_attempts_total{profile="default-scheduler",result="error"} 0.0',
        'moorage_commits_total{kind="PlacePods"} 0.0',
        'moorage_commits_total{kind="Batch"} 0.0',
        'moorage_evictions_total{rule="Preemption"} 0.0',
        'moorage_forwarded_total{outcome="lost"} 0.0',
        'moorage_replica_mistakes_total{part="tree"} 0.0',
        "moorage_missed_wakeups_total 0.0",
        'moorage_database_connections{pool="commits",state="idle"} 0.0',
        "moorage_database_up 1.0",
        "moorage_database_outages_total 0.0",
        "moorage_database_takeovers_total 0.0",
        "moorage_history_lifts_total 0.0",
        "moorage_worker_processes 1.0",
        'moorage_worker_starts_total{reason="death"} 0.0',
        'moorage_http_requests_total{class="5xx"} 0.0',
    ):
        assert series in text
    assert re.search(r'^moorage_build_info\{.*version="1\.2\.3"\} 1\.0$', text, re.MULTILINE)


def test_limits_that_are_set_are_told_by_setting_and_scope() -> None:
    settings = Settings(watchers_max=7, writes_per_second=0, apply_bytes_max=2048)
    text = Metrics(limits=limits_of(settings)).text().decode()
    assert 'moorage_configured_limit{scope="process",setting="watchers_max"} 7.0' in text
    assert 'moorage_configured_limit{scope="request",setting="apply_bytes_max"} 2048.0' in text
    assert "writes_per_second" not in text, "0 is no limit"
    assert {name for name in LIMITS if not hasattr(settings, name)} == set()


def test_the_database_and_the_process_are_told_of() -> None:
    metrics = Metrics()
    pools = {"commits": {"idle": 2, "borrowed": 1, "size": 8}}
    for _ in range(10):
        incidents = {"outages": 3, "takeovers": 1, "lifts": 2}
        metrics.database(is_up=False, pools=pools, incidents=incidents)
    text = metrics.text().decode()
    assert "moorage_database_up 0.0" in text
    assert 'moorage_database_connections{pool="commits",state="borrowed"} 1.0' in text
    assert 'moorage_database_connections_max{pool="commits"} 8.0' in text
    assert "moorage_database_outages_total 3.0" in text
    assert "moorage_database_takeovers_total 1.0" in text
    assert "moorage_history_lifts_total 2.0" in text
    assert re.search(r"^process_cpu_seconds_total [0-9.e-]*[1-9]", text, re.MULTILINE)


def test_answers_are_counted_by_the_class_of_their_status() -> None:
    metrics = Metrics()
    for status in (200, 201, 404, 503, 500):
        metrics.request("placePods", status, 0.1)
    text = metrics.text().decode()
    for status_class, count in (("2xx", 2), ("3xx", 0), ("4xx", 1), ("5xx", 2)):
        assert f'moorage_http_requests_total{{class="{status_class}"}} {count}.0' in text


@pytest.mark.parametrize("queries", [queries_of_alerts, queries_of_panels])
def test_labels_that_are_asked_for_exist(queries) -> None:
    metrics = Metrics(limits=limits_of(Settings()))
    metrics.request("placePods", 200, 0.1)
    metrics.executed([Execution("NodeAffinity", "Filter", "Success", 0.1)])
    told = defaultdict(set)
    for name, labels in LABELS.findall(metrics.text().decode()):
        told[name].update(re.findall(r"(\w+)=\"", labels))
    for query in queries():
        for name, labels in LABELS.findall(query):
            asked = set(re.findall(r"(\w+)=", labels)) - GIVEN_BY_PROMETHEUS
            assert asked <= told[name], (name, asked)
        known = {label for name in METRIC.findall(query) for label in told[name]}
        asked = {label for labels in GROUPS.findall(query) for label in labels.split(", ")}
        assert asked - GIVEN_BY_PROMETHEUS <= known, query


def test_every_alert_is_tried_with_figures_that_raise_it_and_with_others() -> None:
    raised, silent = set(), set()
    for test in yaml.safe_load(RULE_TESTS.read_text("utf-8"))["tests"]:
        for each in test["alert_rule_test"]:
            (raised if each["exp_alerts"] else silent).add(each["alertname"])
    alerts = {rule["alert"] for rule in rules()}
    assert (raised, silent) == (alerts, alerts)


def test_every_alert_is_in_the_table_of_what_to_do() -> None:
    page = (ROOT / "docs" / "operating.md").read_text("utf-8")
    table = page.partition("| alert | what to do |")[2].partition("\n\n")[0]
    assert set(re.findall(r"`(Moorage[A-Z]\w+)`", table)) >= {rule["alert"] for rule in rules()}


@pytest.mark.parametrize("command", ["check rules alerts.yml", "test rules alerts_test.yml"])
def test_prometheus_takes_the_alerts(command: str) -> None:
    asked_of_promtool(*command.split())


def test_prometheus_takes_the_queries_of_the_dashboard(tmp_path: Path) -> None:
    """They are checked as rules are, with what Grafana puts into them."""
    queries = [each.replace("$__rate_interval", "1m") for each in queries_of_panels()]
    records = [{"record": f"panel_{n}", "expr": each} for n, each in enumerate(queries)]
    path = tmp_path / "panels.yml"
    path.write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": records}]}), "utf-8")
    asked_of_promtool("check", "rules", str(path))


def asked_of_promtool(*arguments: str) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("alerts: promtool is not installed")
    done = subprocess.run(
        [promtool, *arguments], cwd=RULES.parent, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
