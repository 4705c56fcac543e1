"""Runs are compared test by test, whatever else they say."""

import pytest

from tools import verdicts

PASSES = '<testcase classname="tests.api.middleware.test_edge" name="test_a[x.y]" time="0.25"/>'
FAILS = (
    '<testcase classname="tests.api.middleware.test_edge" name="test_a[x.y]"><failure/></testcase>'
)
SKIPPED = '<testcase classname="tests.store.test_reads.TestThese" name="test_b" time="1.5"><skipped/></testcase>'


def kept(folder, *cases):
    folder.mkdir()
    inside = "".join(cases)
    (folder / "compiled.xml").write_text(
        f"<testsuites><testsuite>{inside}</testsuite></testsuites>"
    )
    return verdicts.read(folder)


def test_runs_with_the_same_verdicts_agree(tmp_path, capsys):
    runs = [kept(tmp_path / name, PASSES, SKIPPED) for name in ("1", "2")]
    assert verdicts.tell(runs) == 0
    told = capsys.readouterr().out
    assert "| 1 |  | 0 | 0.0 | 1 | 0 | 0 | 1 |" in told
    assert "0 of 2 tests differ in 2 runs." in told


@pytest.mark.parametrize(
    ("other", "verdict"), [([FAILS, SKIPPED], "failed"), ([SKIPPED], "absent")]
)
def test_a_test_that_says_something_else_or_nothing_is_told(tmp_path, capsys, other, verdict):
    runs = [kept(tmp_path / "1", PASSES, SKIPPED), kept(tmp_path / "2", *other)]
    assert verdicts.tell(runs) == 1
    expected = f"compiled tests.api.middleware.test_edge::test_a[x.y]: passed, {verdict}"
    assert expected in capsys.readouterr().out


def test_a_run_that_left_nothing_is_no_run(tmp_path):
    with pytest.raises(FileNotFoundError):
        verdicts.read(tmp_path)


def test_tests_are_named_as_pytest_takes_them(tmp_path):
    kept(tmp_path / "1", FAILS, SKIPPED)
    failed = list(verdicts.failed_tests(tmp_path / "1" / "compiled.xml"))
    assert failed == ["tests/api/middleware/test_edge.py::test_a[x.y]"]


def test_seconds_are_told_by_file(tmp_path):
    kept(tmp_path / "1", PASSES, PASSES, SKIPPED)
    told = verdicts.by_file(tmp_path / "1" / "compiled.xml")
    assert told == {"tests/api/middleware/test_edge.py": 0.5, "tests/store/test_reads.py": 1.5}
