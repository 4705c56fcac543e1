"""The checker sees what is wrong with pods whose node was deleted (A20)."""

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from service.model.log.commit import Change
from tests.concurrency.checker.node_lifecycle import REASON, DeletedNodesCheck
from tests.store.history import put

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ENDED = {
    "phase": "Failed",
    "conditions": [{"type": "DisruptionTarget", "status": "True", "reason": REASON}],
}


def written(status: object, uid: str = "1") -> Change:
    pod = {"metadata": {"name": "p", "namespace": "default", "uid": uid}, "status": status}
    return put("p", body=msgspec.json.encode(pod))


@pytest.mark.parametrize(
    ("write", "told"),
    [
        (written(ENDED), 0),
        (written(ENDED | {"phase": None}), 1),
        (written({}), 1),
        (written({}, uid="2"), 0),
    ],
)
def test_a_pod_that_ended_with_its_node_and_lives_again_is_found(write, told):
    before = written(ENDED)
    state: Any = SimpleNamespace(bodies={tuple(before.key): (1, before.body)})
    found: list[str] = []
    DeletedNodesCheck(state, found.append, clocks_jump=False).see(write, NOW, [write])
    assert ["revives default/p" in each for each in found] == [True] * told
