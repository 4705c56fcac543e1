"""Who is planted together, which test kills whom, and what a run leaves of the tree."""

import subprocess
import sys

import pytest

from tests.mutants.test_catalogue import mutant
from tools.mutants import report
from tools.mutants.catalogue import ROOT
from tools.mutants.judging import Verdict, judge, not_passed
from tools.mutants.packing import Imports, packs
from tools.mutants.running import OPTIONS, Outcome, Tree

PROJECT = {
    "conftest.py": "import pytest\nfrom code import shared\n\n@pytest.fixture\ndef given():\n    return shared\n",
    "code/__init__.py": "",
    "code/one.py": "VALUE = 1\n",
    "code/two.py": "from code import three\nVALUE = 2\n",
    "code/three.py": "VALUE = 3\n",
    "code/shared.py": "VALUE = 4\n",
    "code/function.sql": "SELECT 5\n",
    "tests/test_one.py": "from code.one import VALUE\n\ndef test_one():\n    assert VALUE == 1\n",
    "tests/test_two.py": "from code import two\n\ndef test_two(given):\n    assert two.VALUE == 2\n",
    "tests/test_three.py": "from code import three\n\ndef test_three():\n    assert three.VALUE == 3\n",
    "tests/test_started.py": "import subprocess\n\ndef test_started():\n    assert subprocess\n",
}


@pytest.fixture
def project(tmp_path):
    for name, text in PROJECT.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def planted(name: str, *, file: str | None = None, test: str | None = None):
    return mutant(
        name=name,
        file=file or f"code/{name}.py",
        old="VALUE = ",
        new="VALUE = 1",
        tests=(f"tests/test_{test or name}.py::test_{test or name}",),
    )


ONE, TWO, THREE = planted("one"), planted("two"), planted("three")


def names(made):
    return [[each.name for each in pack] for pack in made]


def test_what_a_test_reaches_is_what_it_imports_and_the_fixtures_around_it(project):
    imports = Imports(project)
    assert imports.reached("tests/test_one.py") >= {"code/one.py", "code/__init__.py"}
    assert "code/shared.py" not in imports.reached("tests/test_one.py")
    assert imports.reached("tests/test_two.py") >= {
        "code/two.py",
        "code/three.py",
        "conftest.py",
        "code/shared.py",
    }


def test_mutants_share_a_run_only_where_neither_reaches_the_other(project):
    imports = Imports(project)
    assert names(packs([ONE, TWO, THREE], imports)) == [["one", "two"], ["three"]]
    assert names(packs([ONE, TWO, THREE], imports, most=1)) == [["one"], ["two"], ["three"]]
    assert names(packs([TWO, planted("shared", test="one")], imports)) == [["two"], ["shared"]]


def test_mutants_of_one_file_or_one_test_file_are_never_together(project):
    imports = Imports(project)
    again = planted("again", file="code/one.py", test="three")
    assert names(packs([ONE, again], imports)) == [["one"], ["again"]]
    same = planted("same", file="code/three.py", test="one")
    assert names(packs([ONE, same], imports)) == [["one"], ["same"]]


@pytest.mark.parametrize(
    "loner",
    [planted("sql", file="code/function.sql", test="three"), planted("three", test="started")],
)
def test_whom_imports_do_not_tell_of_is_alone(project, loner):
    assert len(packs([ONE, loner], Imports(project))) == 2


FAILED = {test: "failed" for each in (ONE, TWO) for test in each.tests}


def told(verdicts):
    return {each.mutant.name: each.told for each in verdicts}


def runs(*outcomes):
    """A run that has these outcomes one after the other, and notes who was planted."""
    left = list(outcomes)

    def run(mutants, tests, options):
        run.planted.append([each.name for each in mutants])
        return left.pop(0)

    run.planted = []
    return run


def test_a_pack_of_which_every_test_fails_is_settled_by_one_run():
    run = runs(Outcome(FAILED))
    assert told(judge([ONE, TWO], run)) == {"one": "killed", "two": "killed"}
    assert run.planted == [["one", "two"]]


def test_who_seems_to_survive_in_a_pack_is_run_alone():
    run = runs(Outcome({**FAILED, TWO.tests[0]: "passed"}), Outcome({TWO.tests[0]: "passed"}))
    assert told(judge([ONE, TWO], run)) == {"one": "killed", "two": "survived"}
    assert run.planted == [["one", "two"], ["two"]]


@pytest.mark.parametrize(
    "broken", [Outcome(FAILED, is_complete=False), Outcome(is_complete=False, is_hung=True)]
)
def test_a_pack_that_cannot_be_collected_or_hangs_settles_nothing(broken):
    run = runs(broken, Outcome(FAILED), Outcome(is_complete=False, is_hung=True))
    assert told(judge([ONE, TWO], run)) == {"one": "killed", "two": "killed by its time"}
    assert run.planted == [["one", "two"], ["one"], ["two"]]


def test_a_mutant_whose_tests_cannot_be_imported_is_killed_and_one_whose_run_broke_is_not():
    (verdict,) = judge([ONE], runs(Outcome({"tests/test_one.py": "failed"}, is_complete=False)))
    assert verdict.is_killed
    (verdict,) = judge([ONE], runs(Outcome(is_complete=False)))
    assert verdict.told == "survived"


def test_every_test_that_a_mutant_names_has_to_fail():
    both = mutant(tests=(*ONE.tests, *TWO.tests))
    (verdict,) = judge([both], runs(Outcome({**FAILED, TWO.tests[0]: "passed"})))
    assert verdict.is_killed
    assert verdict.slept == TWO.tests
    assert not verdict.is_well


def test_of_a_test_with_parameters_one_that_fails_is_enough():
    outcome = Outcome({"tests/a.py::test_a[1]": "passed", "tests/a.py::test_a[2]": "failed"})
    assert outcome.of("tests/a.py::test_a") == "failed"
    assert outcome.of("tests/a.py::test_a[1]") == "passed"
    assert outcome.of("tests/a.py::test_b") is None
    assert not_passed([mutant(tests=("tests/a.py::test_a",))], outcome) == ["tests/a.py::test_a"]


def test_survivors_can_be_shown_to_the_whole_suite():
    run = runs(Outcome({ONE.tests[0]: "passed"}), Outcome({"tests/b.py::test_b": "failed"}))
    (verdict,) = judge([ONE], run, whole=True)
    assert verdict.told == "survived"
    assert "tests/b.py::test_b" in verdict.note


def test_a_mutant_is_in_the_copy_while_it_is_planted_and_never_in_the_checkout(project, tmp_path):
    tree = Tree(tmp_path / "scratch", ["code/one.py", "tests/test_one.py"], project)
    with tree.planted([ONE]):
        assert (tree.folder / "code/one.py").read_text() == "VALUE = 11\n"
        assert (project / "code/one.py").read_text() == "VALUE = 1\n"
    assert (tree.folder / "code/one.py").read_text() == "VALUE = 1\n"
    with (
        pytest.raises(ValueError, match="stands 0 times"),
        tree.planted([planted("one", file="tests/test_one.py")]),
    ):
        pass


def test_the_table_counts_by_layer_and_names_survivors():
    verdicts = [
        Verdict(mutant(name="a", was="missed"), "killed"),
        Verdict(mutant(name="b"), "survived"),
        Verdict(mutant(name="c", layer="api"), "killed"),
    ]
    assert report.table(verdicts).splitlines()[2:] == [
        "| api | 1 | 1 | 100 % | 0 |  |",
        "| engine | 2 | 1 | 50 % | 1 | `b` |",
        "| all | 3 | 2 | 66 % | 1 | `b` |",
    ]


def test_the_table_stands_between_its_marks(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- begin mutants -->\nold\n<!-- end mutants -->\nafter\n")
    report.publish([Verdict(mutant(), "killed")], page)
    written = page.read_text()
    assert written.endswith("| all | 1 | 1 | 100 % | 0 |  |\n<!-- end mutants -->\nafter\n")
    assert "old" not in written


def test_the_page_has_a_place_for_the_table():
    assert report.between(report.PAGE.read_text(), report.SECTION, "x")


def test_pytest_takes_the_options_of_a_run_in_this_project():
    command = (sys.executable, "-m", "pytest", *OPTIONS, "--collect-only", "tests/test_seeds.py")
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
