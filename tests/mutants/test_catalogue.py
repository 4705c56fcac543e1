"""The listed mutants can be planted, and every proof that `docs/reliability.md` names finds one."""

import pytest

from tests.test_protocol_rules import rows
from tools.mutants import catalogue
from tools.mutants.catalogue import LAYERS, Mutant

MUTANTS_MIN = 150


def test_every_listed_mutant_can_be_planted():
    assert catalogue.problems(catalogue.read()) == []


def test_every_layer_has_mutants():
    mutants = catalogue.read()
    assert len(mutants) >= MUTANTS_MIN
    assert {each.layer for each in mutants} == set(LAYERS)


def test_every_proof_of_a_rule_has_a_mutant_that_it_kills():
    proofs = {f"{path}::{name}" for proofs in rows().values() for path, name in proofs}
    finders = {test.partition("[")[0] for each in catalogue.read() for test in each.tests}
    assert proofs - finders == set()


SOURCE = "def least(a, b):\n    return min(a, b)\n"
FOUND = "tests/test_least.py::test_least[1]"


def mutant(**fields: object) -> Mutant:
    given = {"name": "m", "title": "It is wrong", "layer": "engine", "file": "least.py"}
    return Mutant(**{**given, "old": "min(", "new": "max(", "tests": (FOUND,), **fields})


@pytest.fixture
def project(tmp_path):
    (tmp_path / "least.py").write_text(SOURCE)
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_least.py").write_text("def test_least(a):\n    pass\n")
    return tmp_path


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({}, []),
        ({"new": "min(("}, ["m: '(' was never closed (least.py, line 2)"]),
        ({"old": "a, b"}, ["m: what is replaced stands 2 times"]),
        ({"old": "least of all"}, ["m: what is replaced stands 0 times"]),
        ({"new": "min("}, ["m: nothing is changed"]),
        ({"tests": ()}, ["m: it names no test"]),
        ({"tests": ("tests/test_least.py::test_most",)}, ["m: no test tests/test_least.py::test_most"]),
        ({"tests": ("tests/test_most.py::test_most",)}, ["m: no test tests/test_most.py::test_most"]),
    ],
)  # fmt: skip
def test_what_is_wrong_with_an_entry_is_told(project, fields, told):
    assert catalogue.problems([mutant(**fields)], project) == told


def test_a_name_is_given_once(project):
    assert catalogue.problems([mutant(), mutant()], project) == ["m: the name is taken"]


def test_mutants_are_chosen_by_name_and_layer():
    mutants = [mutant(name="a-1"), mutant(name="a-2", layer="model"), mutant(name="b-1")]
    assert catalogue.chosen(mutants) == mutants
    assert catalogue.chosen(mutants, ["a-*"]) == mutants[:2]
    assert catalogue.chosen(mutants, ["a-*"], ["model"]) == mutants[1:2]
