"""The engine against the vectors with devices, which kube-scheduler of each version answered.

Beside those of `devices_public_1.36`, there are some with devices that share counters, have taints
or nodes of their own, and with pods of which only some claims have devices.
"""

import pytest

from tests.conformance import doors, vectors
from tests.seeds import EXPLORING

SHARE = 4
"""The gate asks for one in so many public cases, and an exploration for all."""
PARTS = 4


@pytest.mark.parametrize("part", range(PARTS))
def test_engine_filters_and_scores_by_devices(part):
    cases = vectors.load("devices_public_1.36")[:: 1 if EXPLORING else SHARE]
    told = [doors.failure(case, doors.fresh(case)) for case in cases[part::PARTS]]
    assert told
    assert not any(told), "\n".join(filter(None, told))


@pytest.mark.parametrize("version", ["1.35", "1.36", "1.37"])
def test_engine_answers_about_devices_as_each_version(version):
    cases = vectors.load(f"devices_{version}")
    told = [doors.failure(case, doors.fresh(case)) for case in cases]
    told += [doors.failure(case, doors.wandering(case)) for case in cases[::SHARE]]
    assert told
    assert not any(told), "\n".join(filter(None, told))
