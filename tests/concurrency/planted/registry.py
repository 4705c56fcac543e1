"""Planted bugs by name, and how they get into the service: only from here, only while a test runs.

Each replaces one function of the service by one with a mistake that somebody could make. A checker
that finds none of them would prove nothing by finding none in the service either.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

Plant = Callable[[pytest.MonkeyPatch], None]


@dataclass(frozen=True)
class Bug:
    """A mistake; `rule`: the rule of the commit protocol, or the invariant, that it breaks."""

    name: str
    rule: str
    told: str
    where: str
    plant: Plant

    @contextmanager
    def planted(self) -> Iterator[None]:
        with pytest.MonkeyPatch.context() as patch:
            self.plant(patch)
            yield


BUGS: dict[str, Bug] = {}


def bug(rule: str, where: str) -> Callable[[Plant], Plant]:
    """Register a mistake; its name and description are the function's, `where` what it replaces."""

    def register(plant: Plant) -> Plant:
        name = plant.__name__
        assert name not in BUGS, name
        assert plant.__doc__, name
        BUGS[name] = Bug(name, rule, plant.__doc__.strip(), where, plant)
        return plant

    return register
