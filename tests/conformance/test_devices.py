"""The engine against the vectors with devices, which kube-scheduler of each version answered.

Those of `devices_public_1.36` have a part of the answer. The others have all of it, with devices
that share counters, have taints or nodes of their own, and pods of which some claims have devices.
"""

import msgspec
import pytest

from service.engine import Placement, explain, place
from tests.conformance import doors, vectors
from tests.engine import objects
from tests.seeds import EXPLORING

SHARE = 4
"""The gate asks for one in so many public cases, and an exploration for all."""
PARTS = 4


@pytest.mark.parametrize("part", range(PARTS))
def test_engine_filters_and_scores_by_devices(part):
    cases = vectors.load("devices_public_1.36")[:: 1 if EXPLORING else SHARE]
    told = [failure(case) for case in cases[part::PARTS]]
    assert told
    assert not any(told), "\n".join(filter(None, told))


@pytest.mark.parametrize("version", ["1.35", "1.36", "1.37"])
def test_engine_answers_about_devices_as_each_version(version):
    told = [doors.failure(case, doors.fresh(case)) for case in vectors.load(f"devices_{version}")]
    assert told
    assert not any(told), "\n".join(filter(None, told))


def failure(case):
    """What the engine answers wrongly; empty if explanation and placement are right."""
    cluster, pod = doors.fresh(case), objects.pod(case["pod"], incoming=True)
    explanation, placed = explain(cluster, pod), place(cluster, pod)
    if isinstance(placed, Placement):
        assert placed.node_name in explanation.best
        assert placed.score == explanation.total[placed.node_name]
    else:
        assert not explanation.feasible
    answer = msgspec.to_builtins(explanation)
    want = vectors.expected(case)
    return vectors.report(case, {field: answer[field] for field in want}, want)
