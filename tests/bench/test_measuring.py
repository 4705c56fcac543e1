"""What a measurement says is what happened, and nothing is reported that could be lost."""

import asyncio
import json
from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest

from bench import chart, engine, growth, ratios, two_clusters, worlds
from bench.__main__ import main
from bench.figures import Figures, append, goal, spread, table
from bench.stack import NotDurableError, durability, refuse_unsafe
from bench.verify import violations
from bench.workloads import find
from service.model.registry.manifests import TemplateCache

ROW = Figures(
    layer="http",
    batch=100,
    clients=8,
    workload="SchedulingPodAffinity",
    nodes=5000,
    pods=1000,
    unplaced=0,
    violations=0,
    seconds=0.1,
    cpu_seconds=0.05,
    p50_ms=1.0,
    p99_ms=2.0,
    megabytes=100.0,
)


def manifests(node_of_second: str) -> list[dict]:
    """Two nodes, and two pods that must not share one."""
    anti = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"a": "b"}}}
    rule = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [anti]}}

    def node(name: str) -> dict:
        labels = {"kubernetes.io/hostname": name}
        return {
            "kind": "Node",
            "metadata": {"name": name, "labels": labels},
            "status": {"allocatable": {"cpu": "4", "pods": "10"}},
        }

    def pod(name: str, on: str) -> dict:
        return {
            "kind": "Pod",
            "metadata": {"name": name, "labels": {"a": "b"}},
            "spec": {"nodeName": on, "containers": [{"name": "c"}], "affinity": rule},
        }

    return [node("n1"), node("n2"), pod("p1", "n1"), pod("p2", node_of_second)]


def test_a_stored_placement_that_breaks_a_rule_is_counted():
    assert violations(manifests("n2")) == []
    assert len(violations(manifests("n1"))) == 2


def test_a_placement_that_was_acknowledged_and_is_elsewhere_or_missing_is_counted():
    stored = {("default", "p1"): "n1", ("default", "p2"): "n2"}
    assert violations(manifests("n2"), stored) == []
    assert len(violations(manifests("n2"), stored | {("default", "p2"): "n1"})) == 1
    assert len(violations(manifests("n2"), stored | {("default", "p3"): "n1"})) == 1


def test_a_postgresql_that_does_not_sync_is_refused(database_url):
    """The tests' own does not."""
    told = asyncio.run(durability(database_url))
    assert set(told) == {"fsync", "synchronous_commit", "full_page_writes"}
    with pytest.raises(NotDurableError, match="fsync"):
        refuse_unsafe(told)
    refuse_unsafe(dict.fromkeys(told, "on"))


@pytest.mark.parametrize("setting", ["fsync", "synchronous_commit", "full_page_writes"])
def test_each_of_the_three_settings_has_to_be_on(setting):
    on = dict.fromkeys(("fsync", "synchronous_commit", "full_page_writes"), "on")
    with pytest.raises(NotDurableError, match=setting):
        refuse_unsafe(on | {setting: "off"})


def test_the_engine_alone_places_every_pod_and_breaks_no_rule():
    found = engine.run(find("SchedulingPodAntiAffinity", 500), 50)
    assert (found.layer, found.pods, found.unplaced, found.violations) == ("engine", 50, 0, 0)
    assert found.seconds > 0
    assert found.p99_ms >= found.p50_ms > 0


def test_pods_that_fit_nowhere_are_counted_apart():
    found = engine.run(find("Unschedulable", 500), 20)
    assert (found.pods, found.unplaced) == (22, 2)


def test_several_runs_show_as_median_and_range():
    assert spread([3.0, 1.0, 2000.0]) == "3 (1 to 2,000)"
    assert spread([7.0]) == "7"


def test_goals_are_a_hundred_and_fifty_times_kube_scheduler_up_to_a_limit():
    assert goal("engine", "SchedulingPodAffinity", 5000) == 12_700
    assert goal("engine", "TopologySpreading", 5000) == 30_000
    assert goal("http", "SchedulingPodAffinity", 5000) == 6_350
    assert goal("http", "SchedulingBasic", 5000) == 8_000
    assert goal("http", "SchedulingPodAffinity", 500) is None


def test_the_table_tells_goals_and_violations():
    shown = table([[ROW]])
    row = dict(zip(shown.columns, shown.rows[0], strict=True))
    assert (row["pods/s"], row["goal"], row[""], row["violations"]) == (
        "10,000",
        "6,350",
        "reached",
        "0",
    )
    assert shown.markdown().count("\n") == 2


def test_single_requests_have_a_goal_of_their_own():
    many, one = replace(ROW, batch=1, clients=64), replace(ROW, batch=1, clients=1)
    shown = table([[many]])
    assert dict(zip(shown.columns, shown.rows[0], strict=True))["goal"] == "2,500"
    assert "goal" not in table([[one]]).columns


def test_an_unknown_workload_is_wrong_usage(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["SchedulingNothing"])
    assert ended.value.code == 2
    assert "SchedulingBasic" in capsys.readouterr().err


def test_a_run_is_a_line_of_json_and_ends_in_a_count_of_violations(tmp_path, capsys):
    lines = tmp_path / "runs.jsonl"
    with pytest.raises(SystemExit) as ended:
        main(
            [
                "engine",
                "SchedulingBasic",
                "--size",
                "500",
                "--runs",
                "2",
                "--pods",
                "10",
                "--json",
                str(lines),
            ]
        )
    assert ended.value.code == 0
    assert "0 violations in 2 runs." in capsys.readouterr().out
    runs = [json.loads(line) for line in lines.read_text().splitlines()]
    assert [(run["workload"], run["pods"]) for run in runs] == [("SchedulingBasic", 10)] * 2


def test_a_ratio_is_the_median_of_neighbours_and_tells_its_quartiles():
    case, base = iter([9.0, *[3.0] * 20]), iter([9.0, *[2.0] * 20])
    found = ratios.alternated("x", lambda: next(case), lambda: next(base), 20, 1.2)
    assert (found.median, found.first_quartile, found.third_quartile) == (1.5, 1.5, 1.5)
    assert ratios.table([found]).rows[0][-1] == "not yet"


def test_a_pod_that_finds_no_node_spoils_a_measurement():
    cluster, huge = worlds.empty(2), worlds.pod("huge", millicores=10**9)
    pods = worlds.replicas(worlds.parsed(huge, TemplateCache()), 2)
    with pytest.raises(RuntimeError, match="found no node"):
        worlds.cpu_seconds(cluster, pods)


def test_a_round_leaves_the_cluster_as_it_was():
    cluster, kind = worlds.empty(3), worlds.parsed(worlds.shaped(worlds.SPREAD), TemplateCache())
    worlds.populate(cluster, [kind], range(6))
    assert worlds.cpu_seconds(cluster, worlds.replicas(kind, 5)) > 0
    assert sorted(pod.name for pod in cluster.pods()) == [f"placed-{i}" for i in range(6)]


def test_growing_worlds_become_lines_and_a_picture(tmp_path):
    lines = tmp_path / "points.jsonl"
    points = list(growth.nodes(steps=(5, 50)))
    for point in points:
        append(lines, growth.record(point))
    assert growth.read(lines) == points
    assert [point.value for point in points] == [5] * 5 + [50] * 5
    picture = ET.fromstring(chart.svg(points))
    assert len(picture.findall(".//{*}polyline")) == 5
    assert len(growth.table(points).rows) == 5


def test_curves_stay_within_their_panels():
    made = {"dimension": "nodes", "shape": "plain", "low": 0.0, "high": 0.0}
    points = [growth.Point(value=10**n, micros=micros, **made) for n, micros in enumerate((4, 251))]
    picture = ET.fromstring(chart.svg(points))
    heights = [float(each.get("cy", "-1")) for each in picture.findall(".//{*}circle[{*}title]")]
    assert len(heights) == 2
    assert all(0 < each < chart.PANEL_HEIGHT for each in heights)
    axis = [each.text for each in picture.findall(".//{*}text[@text-anchor='end']")]
    assert axis == ["1", "10", "100", "1,000"]


def test_two_busy_clusters_are_of_one_worker_or_of_two():
    owners = {"bench-0": "a", "bench-1": "b", "bench-2": "b", "bench-3": "a"}
    assert two_clusters.pair(owners, two_clusters.TOGETHER) == ("bench-0", "bench-3")
    assert two_clusters.pair(owners, two_clusters.APART) == ("bench-0", "bench-1")
    rounds = [
        two_clusters.Round(placement, 1000, seconds, (0.06, 0.02), 0.04, 0.003, 0)
        for placement, seconds in [
            (two_clusters.TOGETHER, 0.2),
            (two_clusters.APART, 0.1),
            (two_clusters.APART, 0.1),
            (two_clusters.TOGETHER, 0.3),
        ]
    ]
    together, _apart, ratio = two_clusters.table(rounds).rows
    assert together == [
        "both with one",
        "4,167 (3,333 to 5,000)",
        "60 (60 to 60)",
        "80",
        "40",
        "3",
        "0",
    ]
    assert ratio[1:3] == ["2.50 (2.00 to 3.00)", "1.00 (1.00 to 1.00)"]
