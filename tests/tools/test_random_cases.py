"""Random cases, their comparison with an oracle, and how a case that differs gets small."""

import copy
import random

import pytest

from service.model.core.errors import InvalidManifest
from service.model.core.quantity import MILLI, NANO, parse_quantity
from tools.conformance.cases import Difference
from tools.oracle import quirks
from tools.oracle.admitted import is_admitted
from tools.oracle.comparing import Comparer, causes
from tools.oracle.engine import Engine
from tools.oracle.generators import quantities
from tools.oracle.generators.draws import Draws
from tools.oracle.generators.families import FAMILIES, generate
from tools.oracle.shrink import shrink

NUMBERS = range(12)


@pytest.fixture(scope="module")
def engine():
    return Engine()


@pytest.mark.parametrize("family", FAMILIES)
def test_a_case_depends_on_family_seed_and_number_alone(family):
    random.seed(3)
    cases = [generate(family, 1, number) for number in NUMBERS]
    random.seed(4)
    assert [generate(family, 1, number) for number in NUMBERS] == cases
    assert [generate(family, 2, number) for number in NUMBERS] != cases


@pytest.mark.parametrize("family", FAMILIES)
def test_moorage_accepts_every_case(family, engine):
    for number in NUMBERS:
        case = generate(family, 1, number)
        assert is_admitted(case)
        assert engine.answer(case | {"expect": {}})["explanation"] is not None


@pytest.mark.parametrize("seed", range(20))
def test_every_spelling_of_a_quantity_means_the_same(seed):
    draws = Draws(seed)
    amount = draws.choice((0, 1, 7, 1500, 64 * 1024**2, 3 * 1024**3, 10**9))
    for _ in range(40):
        assert parse_quantity(quantities.cpu(draws, amount)) == amount * MILLI
        assert parse_quantity(quantities.size(draws, amount)) == amount * NANO
        assert -(-parse_quantity(quantities.uneven(draws, amount)) // NANO) == amount


class FakeOracle:
    """Answers as the engine does, but for nodes with a label."""

    def __init__(self, engine, label):
        self._engine = engine
        self._label = label

    def answers(self, cases):
        for case in cases:
            try:
                result = self._engine.answer(case | {"expect": {}})
            except InvalidManifest as error:
                yield {"name": case["name"], "error": str(error)}
                continue
            expect = {k: v for k, v in result["explanation"].items() if k != "semantics"}
            yield {"name": case["name"], "expect": self._changed(case, expect)}

    def _changed(self, case, expect):
        expect = copy.deepcopy(expect)
        for node in case["nodes"]:
            name = node["metadata"]["name"]
            for scores in expect["scores"].values():
                if self._label in node["metadata"].get("labels", {}) and name in scores:
                    scores[name] += 1
        return expect


def test_a_planted_difference_is_found_and_made_small(engine):
    case = generate("image-locality", 1, 0)
    comparer = Comparer("1.35", FakeOracle(engine, "disk"), engine)
    [comparison] = comparer.compare([case])
    place = ("scores", "ImageLocality")
    assert place in comparison.places
    small = shrink(comparison.case, lambda smaller: comparer.differs(smaller, place))
    assert [set(node["metadata"]["labels"]) for node in small["nodes"]] == [{"disk"}]
    assert small["pods"] == []
    assert small["namespaces"] == []
    assert small["pod"]["spec"] == {"containers": [{}]}


class Shuffled(FakeOracle):
    """Answers otherwise the first time."""

    def __init__(self, engine, label):
        super().__init__(engine, label)
        self._asked = 0

    def answers(self, cases):
        for case in cases:
            self._asked += 1
            self._label = "disk" if self._asked == 1 else "no such label"
            yield from super().answers([case])


def test_an_oracle_that_does_not_always_answer_alike_proves_nothing(engine):
    comparer = Comparer("1.35", Shuffled(engine, "disk"), engine)
    [comparison] = comparer.compare([generate("image-locality", 1, 0)])
    assert comparison.known == "order-of-a-map"


def test_equal_answers_are_no_difference(engine):
    comparer = Comparer("1.35", FakeOracle(engine, "no such label"), engine)
    cases = [generate(family, 1, 1) for family in ("fit", "spread")]
    for comparison in comparer.compare(cases):
        assert not comparison.places
        assert comparison.error is None


def test_shrinking_leaves_a_case_that_fails_as_it_is():
    case = {"name": "n", "nodes": [1, 2], "pod": {"a": {"b": [1, 2, 3]}, "c": 4}}
    before = copy.deepcopy(case)
    small = shrink(case, lambda smaller: 2 in smaller.get("pod", {}).get("a", {}).get("b", []))
    assert small == {"name": "n", "nodes": [], "pod": {"a": {"b": [2]}}}
    assert case == before


def test_shrinking_ends_when_the_attempts_do():
    case = {"pods": list(range(100))}
    assert len(shrink(case, lambda smaller: True, attempts=1)["pods"]) == 50


def test_what_only_follows_from_a_difference_is_no_cause():
    filtered = Difference(field="filters", plugin="NodePorts", node="n", expected=["x"], got=None)
    score = Difference(field="scores", plugin="ImageLocality", node="n", expected=3, got=4)
    absent = Difference(
        field="scores", plugin="ImageLocality", node="n", expected=3, got="(absent)"
    )
    total = Difference(field="total", expected={"n": 1}, got={"n": 2})
    assert causes([total, absent, score, filtered]) == [("filters", "NodePorts")]
    assert causes([total, absent, score]) == [("scores", "ImageLocality")]
    assert causes([total, absent]) == [("scores", "ImageLocality"), ("total", None)]


def test_a_negative_namespace_selector_is_written_as_the_namespaces_that_it_selects():
    selector = {"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["a"]}]}
    term = {"topologyKey": "zone", "labelSelector": {}, "namespaceSelector": selector}
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    spec = {"affinity": {"podAffinity": {required: [term]}}, "containers": [{}]}
    namespaces = [
        {"metadata": {"name": name, "labels": {"team": name}}} for name in ("a", "b", "c")
    ]
    names, case = quirks.documented({"namespaces": namespaces, "pod": {"spec": spec}})
    assert names == ["incoming-namespaceSelector-negative-matches-all"]
    written = case["pod"]["spec"]["affinity"]["podAffinity"][required]
    assert written == [{"topologyKey": "zone", "labelSelector": {}, "namespaces": ["b", "c"]}]
    positive = selector | {"matchLabels": {"team": "b"}}
    term["namespaceSelector"] = positive
    assert quirks.documented({"namespaces": namespaces, "pod": {"spec": spec}}) is None


def test_pod_level_requests_are_written_into_containers():
    spec = {
        "containers": [{"resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}, {}],
        "resources": {"requests": {"cpu": "4"}},
    }
    names, case = quirks.documented({"namespaces": [], "pod": {"spec": spec}})
    assert names == ["fit-score-ignores-pod-level-requests"]
    requests = [item["resources"]["requests"] for item in case["pod"]["spec"]["containers"]]
    assert requests == [{"cpu": "4", "memory": "1Gi"}, {"cpu": "0"}]
