"""Planted bugs by name, and how they get into the service: only from here, only while a test runs.

Each replaces one function of the service by one with a mistake that somebody could make. A checker
that finds none of them would prove nothing by finding none in the service either.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

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


def made_with(patch: pytest.MonkeyPatch, kind: type) -> Mapping[Any, Mapping[str, Any]]:
    """What each object of a class is made with from now on, by the constructor's parameters.

    Mistakes that need what the service keeps to itself take it from where it came in.
    """
    made: WeakKeyDictionary[Any, Mapping[str, Any]] = WeakKeyDictionary()
    init, signature = kind.__init__, inspect.signature(kind.__init__)

    def remembering(self: Any, *arguments: Any, **named: Any) -> None:
        made[self] = signature.bind(None, *arguments, **named).arguments
        init(self, *arguments, **named)

    patch.setattr(kind, "__init__", remembering)
    return made


def bug(rule: str, where: str) -> Callable[[Plant], Plant]:
    """Register a mistake; its name and description are the function's, `where` what it replaces."""

    def register(plant: Plant) -> Plant:
        name = plant.__name__
        assert name not in BUGS, name
        assert plant.__doc__, name
        BUGS[name] = Bug(name, rule, plant.__doc__.strip(), where, plant)
        return plant

    return register
