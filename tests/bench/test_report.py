"""What is published is what was measured, between its marks and nowhere else."""

import dataclasses
import math
import re
from xml.etree import ElementTree as ET

import pytest
from msgspec.structs import replace

from bench import memory, pace, profiling, report, trace, worlds
from bench.verify import broken
from service.model.registry.manifests import TemplateCache

PAGE = "before\n<!-- begin a -->\nold\n<!-- end a -->\nbetween\n<!-- begin b -->\n<!-- end b -->\n"
STACKS = {("place_one", "place", "mask"): 30, ("place_one", "put_pod"): 70}


def test_a_section_is_written_between_its_marks():
    written = report.between(PAGE, "a", r"| \1 |")
    assert written == PAGE.replace("old", r"| \1 |")
    assert report.between(written, "b", "x").count("<!-- end b -->") == 1


def test_a_page_without_the_section_is_no_place_for_it():
    with pytest.raises(ValueError, match="no section c"):
        report.between(PAGE, "c", "x")


def test_the_results_have_a_place_for_every_section():
    page = report.RESULTS.read_text()
    begun, ended = (re.findall(rf"<!-- {word} (\w+) -->", page) for word in ("begin", "end"))
    assert begun == ended
    assert set(begun) == set(report.SECTIONS)


def test_a_report_writes_what_its_sections_found(tmp_path, monkeypatch):
    page = tmp_path / "RESULTS.md"
    page.write_text(PAGE)
    paces = iter([140.4, 139.0, 260.0])
    monkeypatch.setattr(pace, "pace", paces.__next__)
    means = report.Means(None, None)
    runs = iter(["once", "twice"])
    monkeypatch.setitem(
        report.SECTIONS,
        "b",
        lambda means: "".join(f"{means.gate.measured(runs.__next__)} " for _ in range(2)),
    )
    assert [name for name, _ in report.run(["b"], means, page)] == ["b"]
    found = "once twice \n\nPace of the machine: 200 ms (140 to 260)."
    assert f"<!-- begin b -->\n{found}\n<!-- end b -->" in page.read_text()


def test_a_run_counts_if_the_machine_was_fast_before_and_after_it(monkeypatch):
    paces = iter([300.0, 150.0, 300.0, 150.0, 150.0])
    monkeypatch.setattr(pace, "pace", paces.__next__)
    monkeypatch.setattr(pace, "LOOK_SECONDS", 0.0)
    runs = iter(["slowed down", "counts"])
    gate = pace.Gate(pace_max=160.0, patience_seconds=math.inf)
    assert gate.measured(runs.__next__) == "counts"
    assert gate.told() == "Pace of the machine: 150 ms (150 to 150)."


def test_every_run_counts_once_patience_ends(monkeypatch):
    monkeypatch.setattr(pace, "pace", lambda: 300.0)
    assert pace.Gate(pace_max=160.0, patience_seconds=0.0).measured(lambda: "slow") == "slow"


def test_a_profile_tells_own_time_and_time_with_what_is_called():
    rows = {row[0]: row[1:] for row in profiling.table(STACKS).rows}
    assert rows == {"put_pod": ["70.0%", "70.0%"], "mask": ["30.0%", "30.0%"]}
    frames = ET.fromstring(profiling.flame_graph("t", STACKS)).findall(".//{*}title")
    assert [frame.text for frame in frames] == [
        "place_one: 100.0%",
        "place: 30.0%",
        "mask: 30.0%",
        "put_pod: 70.0%",
    ]


def test_only_what_is_below_the_placing_of_a_pod_is_the_engines():
    stacks = {("main", "run", "place_one (engine.py)", "place"): 3, ("main", "loaded"): 5}
    assert profiling.below("place_one", stacks) == {("place_one (engine.py)", "place"): 3}


def test_threads_that_wait_for_work_are_no_part_of_a_profile():
    stacks = {
        ("run", "place"): 3,
        ("run", "_worker (concurrent/futures/thread.py:69)"): 5,
        ("",): 2,
    }
    assert profiling.busy(stacks) == {("run", "place"): 3}


def event(name: str, came: int, went: int) -> dict:
    annotations = {trace.CAME: str(came), trace.WENT: str(went)}
    return {"metadata": {"namespace": "n", "name": name, "annotations": annotations}}


def test_pods_of_a_trace_leave_before_those_come_that_came_later():
    pods = [
        event("a", 0, 5),
        event("b", 1, 9),
        event("c", 5, 6),
        event("d", 7, 99),
        event("e", 9, 9),
    ]
    told = [
        ([pod["metadata"]["name"] for pod in gone], [pod["metadata"]["name"] for pod in come])
        for gone, come in trace.batches(pods, 2)
    ]
    assert told == [([], ["a", "b"]), (["a"], ["c", "d"]), (["b", "c"], ["e"])]


def test_pods_of_a_trace_are_reported_as_gone_once_and_only_if_they_were_placed():
    pods = {name: ("n", name) for name in "abc"}
    replay = trace.Replay(steps=iter(()), ended={key: key[1].encode() for key in pods.values()})
    replay.answered[pods["a"]] = "node"
    assert replay.take_gone([pods["a"], pods["b"], pods["c"]]) == [b"a"]
    replay.answered |= {pods["b"]: None, pods["c"]: "node"}
    assert replay.take_gone([]) == [b"c"]
    assert replay.take_gone([]) == []
    assert replay.reported == 2
    assert replay.acknowledged() == {pods["a"]: "node", pods["c"]: "node"}


def test_memory_is_judged_by_the_greater_of_both_ways_to_get_there():
    figures = memory.MemoryFigures(
        nodes=5_000,
        pods=50_000,
        objects_per_second=20_000,
        applied_megabytes=251,
        applied_peak_megabytes=300,
        ready_seconds=1,
        placing_seconds=2,
        loaded_megabytes=200,
        loaded_peak_megabytes=220,
    )
    assert memory.table([figures]).rows[0][-2:] == ["≥ 20,000/s, ≤ 3 s, ≤ 250 MB", "not yet: MB"]
    reached = dataclasses.replace(figures, applied_megabytes=250)
    assert memory.table([reached]).rows[0][-1] == "reached"
    slow = dataclasses.replace(reached, objects_per_second=19_999, ready_seconds=3.01)
    assert memory.table([slow]).rows[0][-1] == "not yet: /s, s"


def test_the_objects_to_load_are_those_that_are_counted():
    lines = list(memory.lines_of(3, 8))
    assert len(lines) == 11
    assert memory.NAME not in "".join(lines)
    assert memory.ON not in "".join(lines)


@pytest.mark.parametrize(("finished", "lines"), [(False, 1), (True, 0)])
def test_pods_that_ended_break_no_rule(finished, lines):
    """They hold nothing, and what they needed may be gone."""
    cluster = worlds.empty(1)
    kind = worlds.parsed(worlds.pod("x", {"nodeSelector": {"disk": "ssd"}}), TemplateCache())
    worlds.populate(cluster, [replace(kind, finished=finished)], range(1))
    assert len(broken(cluster)) == lines
