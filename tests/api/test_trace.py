"""How far a placement goes through the code: how many files it enters, and how often it moves between two of them."""

import asyncio
import sys
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any, Self

import pytest
from typing_extensions import override

from service.runtime.clock import SystemClock
from tests.api.conftest import MakeHarness
from tests.api.harness import Harness, pod
from tests.paths import ROOT

FILES_MAX = 45
MOVES_MAX = 150
OF_A_REQUEST = frozenset({"ClusterLoop.run", "Committer.publish"})
"""The tasks that decide and commit a request; what other tasks do meanwhile is no part of its way."""

PACKAGE = f"{ROOT / 'service'}/"
ZONE = "topology.kubernetes.io/zone"
TERM = {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": "web"}}}
SPREAD = {
    "affinity": {
        "podAntiAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 1, "podAffinityTerm": TERM}
            ]
        }
    }
}


class StandingClock(SystemClock):
    """No time passes, so nothing is done that is done only once in a while."""

    @override
    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC)

    @override
    def monotonic(self) -> float:
        return 0.0


class Trace:
    """The files of the service that a request enters, one entry for each function that is called or resumed."""

    def __init__(self) -> None:
        self.files: list[str] = []
        self._own = asyncio.current_task()

    def __enter__(self) -> Self:
        sys.setprofile(self._note)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)

    @property
    def moves(self) -> list[tuple[str, str]]:
        return [(one, other) for one, other in pairwise(self.files) if one != other]

    def _note(self, frame: Any, event: str, _: object) -> None:
        path = frame.f_code.co_filename
        if event == "call" and path.startswith(PACKAGE) and self._is_of_the_request():
            self.files.append(path.removeprefix(PACKAGE))

    def _is_of_the_request(self) -> bool:
        try:
            task = asyncio.current_task()
        except RuntimeError:
            return False
        if task is None:
            return False
        return task is self._own or task.get_coro().__qualname__ in OF_A_REQUEST


async def traced(harness: Harness, name: str) -> Trace:
    with Trace() as trace:
        placed = await harness.place(pod(name, **SPREAD))
    assert placed["results"][0]["outcome"] == "Placed"
    return trace


@pytest.mark.interpreted
async def test_a_placement_goes_a_short_way_and_always_the_same(make_harness: MakeHarness) -> None:
    harness = await make_harness(clock=StandingClock())
    del harness.client.headers["accept-encoding"]  # packing an answer is a way of its own
    for number in range(4):
        await harness.put_node(f"n{number}", **{ZONE: f"z{number % 2}"})
    placed = [await traced(harness, f"web-{number}") for number in range(7)]

    traces = placed[4::2]  # the zones are filled by turns, so every other placement is alike
    ways = [len(trace.moves) for trace in traces]
    assert len(set(ways)) == 1, ways
    assert ways[0] <= MOVES_MAX, traces[0].moves
    assert len(set(traces[0].files)) <= FILES_MAX, sorted(set(traces[0].files))
