"""Deals tests to the processes of a run, so that each has the same tests in the same order every time.

pytest-xdist gives the next test to whichever process is idle, so it is left to chance which tests
run before another one in its process. Here every process gets all its files at the beginning. The
files are dealt by the seconds that they took when `tests/seconds.json` was written (`python -m
tools.verdicts seconds`), the longest first, each to the process that has least to do. These seconds
decide nothing but the balance. The files of a folder whose tests share a browser and servers are
dealt as if they were one, and the tests of a long file that share nothing each for itself.
"""

import heapq
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path

from typing_extensions import override
from xdist.scheduler import LoadScopeScheduling

from service.runtime import compiled_engine

SECONDS_FILE = Path(__file__).with_name("seconds.json")
UNKNOWN_SECONDS = 1.0
"""The seconds that a file is assumed to take if it was never measured."""
SHARING = ("tests/page/",)
"""Folders whose files go to one process together."""
APART = ("tests/concurrency/test_planted.py", "tests/engine/test_against_reference.py")
"""Long files whose tests share nothing, and go to whichever process has least to do."""


def measured_seconds() -> dict[str, float]:
    """The seconds that each file took when last measured, with the engine compiled or not as it is now."""
    session = "compiled" if compiled_engine.is_in_use() else "interpreted"
    seconds: dict[str, float] = json.loads(SECONDS_FILE.read_text(encoding="utf-8"))[session]
    return seconds


def file_of(nodeid: str) -> str:
    return nodeid.partition("::")[0]


def unit_of(nodeid: str) -> str:
    """What is dealt as one: a test, its file, or the folder whose files share what they start."""
    file = file_of(nodeid)
    if file in APART:
        return nodeid
    return next((folder for folder in SHARING if file.startswith(folder)), file)


def by_unit(nodeids: Iterable[str], seconds: Mapping[str, float]) -> dict[str, float]:
    """The seconds of each unit, if the tests of a file take equally long."""
    units: defaultdict[str, float] = defaultdict(float)
    tests = Counter(map(file_of, nodeids))
    for nodeid in nodeids:
        file = file_of(nodeid)
        units[unit_of(nodeid)] += seconds.get(file, UNKNOWN_SECONDS) / tests[file]
    return units


def deal(units: Mapping[str, float], processes: int) -> dict[str, int]:
    """The number of the process, from 0, that each unit goes to, by the seconds that it takes."""
    least_busy = [(0.0, number) for number in range(processes)]
    dealt = {}
    for unit in sorted(units, key=lambda unit: (-units[unit], unit)):
        busy, number = heapq.heappop(least_busy)
        dealt[unit] = number
        heapq.heappush(least_busy, (busy + units[unit], number))
    return dealt


class DealtScheduling(LoadScopeScheduling):
    """A scheduler of pytest-xdist with one scope a process, which holds all that was dealt to it."""

    @cached_property
    def _dealt(self) -> dict[str, int]:
        collected = next(iter(self.registered_collections.values()))
        return deal(by_unit(collected, measured_seconds()), self.numnodes)

    @override
    def _split_scope(self, nodeid: str) -> str:
        return str(self._dealt[unit_of(nodeid)])
