"""Python starts an oracle, feeds it, and compares its answers; a script stands in for the binary."""

import re
import stat
import sys

import pytest

from service.model.cluster.versions.known import VERSIONS
from tools.oracle import build as building
from tools.oracle.build import SOURCES, BuildError, build, releases
from tools.oracle.check import answer_differences, cases_of, compare, version_of
from tools.oracle.process import BATCH, Oracle, OracleError

ECHO = """
import json, sys
for line in sys.stdin:
    case = json.loads(line)
    answer = {"name": case["name"], "expect": {"feasible": sorted(case), "best": case.get("nodes")}}
    print(json.dumps(answer), flush=True)
"""
FAILS = """
import sys
sys.stdin.readline()
print("no such gate", file=sys.stderr)
sys.exit(1)
"""
STRAY = """
import sys
for line in sys.stdin:
    print('{"name": "another"}', flush=True)
"""


@pytest.fixture
def binary(tmp_path):
    def written(script):
        path = tmp_path / "oracle"
        path.write_text(f"#!{sys.executable}\n{script}")
        path.chmod(path.stat().st_mode | stat.S_IEXEC)
        return path

    return written


def named(count, **parts):
    return [{"name": f"case-{number}", **parts} for number in range(count)]


def test_answers_come_in_the_order_of_the_cases(binary):
    cases = named(2 * BATCH + 3)
    with Oracle("1.36", binary=binary(ECHO)) as oracle:
        answers = list(oracle.answers(iter(cases)))
        assert [answer["name"] for answer in answers] == [case["name"] for case in cases]
        assert oracle.answer({"name": "one more"})["name"] == "one more"


def test_answers_larger_than_pipes_do_not_block(binary):
    cases = named(BATCH, nodes=["n" * 10_000])
    with Oracle("1.36", binary=binary(ECHO)) as oracle:
        assert sum(1 for _ in oracle.answers(cases)) == BATCH


def test_answers_can_be_left_unread(binary):
    with Oracle("1.36", binary=binary(ECHO)) as oracle:
        assert next(oracle.answers(named(BATCH)))["name"] == "case-0"
        assert oracle.answer({"name": "one more"})["name"] == "one more"


def test_what_a_case_expects_is_not_sent(binary):
    with Oracle("1.36", binary=binary(ECHO)) as oracle:
        answer = oracle.answer({"name": "a", "pod": {}, "expect": {"best": []}, "quirks": []})
    assert answer["expect"]["feasible"] == ["name", "pod"]


def test_the_message_of_a_process_that_ends_is_shown(binary):
    with (
        Oracle("1.36", binary=binary(FAILS)) as oracle,
        pytest.raises(OracleError, match=r"ended at case-0: no such gate"),
    ):
        list(oracle.answers(named(3)))


def test_an_answer_to_another_case_is_an_error(binary):
    with (
        Oracle("1.36", binary=binary(STRAY)) as oracle,
        pytest.raises(OracleError, match=r"another instead of case-0"),
    ):
        oracle.answer(named(1)[0])


def test_answers_are_compared_in_the_fields_that_a_case_expects(binary):
    cases = [
        {"name": "a", "nodes": ["n"], "expect": {"best": ["n"]}},
        {"name": "b", "nodes": ["n"], "expect": {"best": ["other"]}},
    ]
    with Oracle("1.36", binary=binary(ECHO)) as oracle:
        comparison = compare(cases, oracle)
    assert (comparison.asked, comparison.equal) == (2, 1)
    assert comparison.by_field == {"best": 1}
    assert comparison.examples == ["b: best: expected ['other'], got ['n']"]


def test_an_error_differs_from_any_answer():
    (difference,) = answer_differences({"name": "a", "expect": {}}, {"name": "a", "error": "panic"})
    assert difference.got == "panic"


def test_a_step_of_a_trace_is_a_case_with_the_state_before_it():
    def asking(name, chosen):
        pod = {"metadata": {"namespace": "default", "name": name}, "spec": {}}
        return {"op": "schedule", "pod": pod, "expect": {"best": ["n"], "chosen": chosen}}

    trace = {
        "name": "t",
        "config": {},
        "namespaces": [],
        "nodes": [{"metadata": {"name": "n"}}],
        "steps": [
            asking("a", "n"),
            asking("b", None),
            {"op": "addNode", "node": {"metadata": {"name": "m"}}},
            asking("c", "m"),
            {"op": "deletePod", "namespace": "default", "name": "a"},
            {"op": "deleteNode", "name": "n"},
            asking("d", None),
        ],
    }
    cases = list(cases_of([trace]))
    assert [[pod["metadata"]["name"] for pod in case["pods"]] for case in cases] == [
        [],
        ["a"],
        ["a"],
        ["c"],
    ]
    assert [len(case["nodes"]) for case in cases] == [1, 1, 2, 1]
    assert cases[3]["pods"][0]["spec"] == {"nodeName": "m"}
    assert cases[0]["expect"] == {"best": ["n"]}


@pytest.mark.parametrize(
    ("name", "version"),
    [("fuzz_public.jsonl.gz", "1.35"), ("devices_1.36.jsonl.gz", "1.36"), ("a_1.37.jsonl", "1.37")],
)
def test_the_name_of_a_file_says_whose_answers_it_has(tmp_path, name, version):
    assert version_of(tmp_path / name) == version


def test_without_go_nothing_is_built(monkeypatch):
    monkeypatch.setattr(building.shutil, "which", lambda _: None)
    with pytest.raises(BuildError, match="Go is missing"):
        build("1.36")


def test_an_unknown_version_is_not_built():
    with pytest.raises(BuildError, match=r"no oracle of 1\.1, only of 1\.35, 1\.36, 1\.37"):
        build("1.1")


def test_an_oracle_is_built_from_each_release_that_a_cluster_can_follow():
    assert releases() == {name: version.patch for name, version in VERSIONS.items()}


@pytest.mark.parametrize("version", VERSIONS)
def test_all_modules_of_kubernetes_are_of_one_release(version):
    modules = (SOURCES / f"{version}.mod").read_text()
    staging = re.findall(r"^\s*(k8s\.io/\S+) => \1 v0\.(\S+)$", modules, re.MULTILINE)
    assert len(staging) > 30
    assert {f"1.{patch}" for _, patch in staging} == {VERSIONS[version].patch}


@pytest.mark.parametrize("version", VERSIONS)
def test_each_version_has_a_file_of_its_own(version):
    (source,) = SOURCES.glob(f"release_{version.replace('.', '_')}.go")
    assert f"//go:build kube{version.replace('.', '')}\n" in source.read_text()
