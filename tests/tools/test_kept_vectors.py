"""The vectors that are kept show everything that there is, and are the same each time."""

import copy

import pytest

from tools.oracle import selection
from tools.oracle.selection import answered, family_of, marks_of, select

EXPECT = {
    "prefilter": None,
    "filters": {},
    "unresolvable": {},
    "feasible": ["n1"],
    "scores": {"ImageLocality": {"n1": 0}},
    "scoreSkipped": ["NodeAffinity"],
    "total": {"n1": 0},
    "best": ["n1"],
    "message": None,
}
NODES = [{"metadata": {"name": "n1"}}]
POD = {"metadata": {"name": "in"}, "spec": {"containers": [{}]}}


def case(family, number, **expect):
    name = f"{family}-7-{number:06}"
    base = {"name": name, "config": {}, "namespaces": [], "nodes": NODES, "pods": [], "pod": POD}
    return base | {"expect": EXPECT | expect}


def test_marks_say_what_a_case_shows():
    reasons = {"NodeResourcesFit": {"n1": ["Insufficient example.com/fpga"]}}
    shown = marks_of(case("fit", 1, filters=reasons, feasible=[]))
    assert {
        "family fit",
        "family fit, no node feasible",
        "NodeResourcesFit: Insufficient …",
        "NodeResourcesFit fails alone",
        "NodeResourcesFit is resolvable",
        "NodeAffinity is skipped",
    } <= shown


def test_a_rare_case_is_chosen_among_many():
    common = [case("fit", number) for number in range(50)]
    rare = case("fit", 50, prefilterNodes=["n1"])
    chosen = select([*common, rare], 5)
    assert rare in chosen
    assert len(chosen) == 5


def test_families_are_even_where_nothing_else_is_to_be_shown():
    cases = [case(family, number) for family in ("fit", "taints") for number in range(30)]
    chosen = select(cases, 20)
    families = [family_of(each) for each in chosen]
    assert families.count("fit") == families.count("taints") == 10


def test_a_selection_is_always_the_same_and_in_order():
    cases = [case(family, number) for number in range(9) for family in ("fit", "ports", "spread")]
    chosen = select(cases, 7)
    assert select(copy.deepcopy(cases), 7) == chosen
    assert [cases.index(each) for each in chosen] == sorted(map(cases.index, chosen))


class Unsteady:
    """An oracle that answers some cases otherwise each time, and to some not at all."""

    def __init__(self, version, workers):
        self._asked = 0

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass

    def answers(self, cases):
        for each in cases:
            self._asked += 1
            if each["name"].startswith("ports"):
                yield {"name": each["name"], "error": "no verdict"}
                continue
            changed = {"best": [self._asked]} if each["name"].startswith("taints") else {}
            yield {"name": each["name"], "expect": EXPECT | changed}


@pytest.fixture
def unsteady(monkeypatch):
    monkeypatch.setattr(selection, "Oracle", Unsteady)


def test_only_steady_answers_are_kept_with_the_version_that_gave_them(unsteady):
    cases = [case(family, 1, best=["old"]) for family in ("fit", "ports", "taints")]
    [kept] = answered("1.36", cases, workers=1)
    assert kept["name"] == "fit-7-000001"
    assert kept["config"] == {"kubernetes": "1.36"}
    assert kept["expect"] == EXPECT


def test_files_of_the_same_vectors_have_the_same_bytes(tmp_path):
    cases = [case("fit", 1), case("fit", 2)]
    paths = [tmp_path / name for name in ("a.gz", "b.gz")]
    for path in paths:
        selection.write(cases, path)
    assert paths[0].read_bytes() == paths[1].read_bytes()
    assert list(selection.read(paths[:1])) == cases
