"""Tests wait for what happens, not for time to pass: `tests/waiting.py` has the ways to do it."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
SLEEPS = {("time", "sleep"), ("asyncio", "sleep")}
MAY_SLEEP = {
    "waiting.py": "looks again and again, up to a bound that only a hang reaches",
    "scheduler/test_on_postgres.py": "its clock is the real one, which the scheduler sleeps by",
    "concurrency/callers.py": "clients of real servers, who ask again after a while",
    "concurrency/plans": "drives exploration: kills at times of chance, and clients that look again",
    "concurrency/simulation": "time is a number there",
    "concurrency/faults": "drives exploration, and faults that last for a while are what it is about",
    "concurrency/many_servers.py": "drives exploration, whose phases last for a while",
    "concurrency/failovers": "drives exploration, and asks Patroni, which tells nobody by itself",
    "security/test_watch_room.py": "one client reads each piece at the last moment, for a rule about time",
    "security/attacks": "drives exploration, and attacks that last for a while are what it is about",
}
"""File or folder, and why: whoever is added needs a reason that no event could replace."""


def sleeps(source: str) -> Iterator[int]:
    """The lines of calls that let time pass; `sleep(0)` only lets others run."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=module), attr=name), args=[much]):
                is_turn = isinstance(much, ast.Constant) and much.value == 0
                if (module, name) in SLEEPS and not is_turn:
                    yield node.lineno
            case ast.ImportFrom(module="time" | "asyncio" as module, names=names):
                if any((module, each.name) in SLEEPS for each in names):
                    yield node.lineno


def may_sleep(file: Path) -> bool:
    own = file.relative_to(TESTS)
    return any(str(each) in MAY_SLEEP for each in (own, *own.parents))


def test_no_test_sleeps():
    found = [
        f"{file.relative_to(TESTS)}:{line}"
        for file in sorted(TESTS.rglob("*.py"))
        if not may_sleep(file)
        for line in sleeps(file.read_text(encoding="utf-8"))
    ]
    assert found == []


@pytest.mark.parametrize("name", MAY_SLEEP)
def test_an_exception_is_one_that_is_needed(name: str):
    place = TESTS / name
    files = place.rglob("*.py") if place.is_dir() else [place]
    assert any(list(sleeps(file.read_text(encoding="utf-8"))) for file in files)


@pytest.mark.parametrize(
    ("source", "is_sleep"),
    [
        ("await asyncio.sleep(0.01)", True),
        ("time.sleep(pause)", True),
        ("from time import sleep", True),
        ("await asyncio.sleep(0)", False),
        ("await clock.sleep(1)", False),
    ],
)
def test_what_is_a_sleep(source: str, *, is_sleep: bool):
    assert bool(list(sleeps(source))) is is_sleep
