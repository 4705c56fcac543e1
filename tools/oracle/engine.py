"""The engine's answer to a case, in this process, along the path of a simulation over HTTP."""

import asyncio
from collections.abc import Mapping
from typing import Any

import msgspec

from service.api.resources.placements.simulations import parse_simulation
from service.model.core.errors import InvalidManifest
from service.model.devices.cel_questions import OpenQuestions
from service.model.registry.manifests import TemplateCache
from service.runtime.ids import RandomIds
from service.scheduler.protocol.limits import Limits
from service.scheduler.simulation import simulate
from tools.conformance.cases import Difference, Vector, request_of, result_differences

ITEMS_MAX = 100_000
NOW = "2026-01-01T00:00:00Z"
REFUSED = "refused"
"""The field of a difference where Moorage does not accept a case."""


class Engine:
    """Answers cases one after another."""

    def __init__(self) -> None:
        self._runner = asyncio.Runner()
        self._templates = TemplateCache()
        self._limits = Limits()
        self._ids = RandomIds()

    def answer(self, case: Vector) -> Mapping[str, Any]:
        """Return the result of the simulation that a case stands for.

        Raises:
            InvalidManifest: Moorage does not accept the case.
        """
        body = msgspec.json.encode(request_of(case))
        simulation = self._runner.run(parse_simulation(body, self._templates, ITEMS_MAX))
        questions = OpenQuestions()
        questions.begin(are_deferred=False)
        steps = simulate(
            simulation,
            now=NOW,
            ids=self._ids,
            limits=self._limits,
            templates=self._templates,
            questions=questions,
        )
        while True:
            try:
                next(steps)
            except StopIteration as stop:
                answer: Mapping[str, Any] = msgspec.to_builtins(stop.value)
                result: Mapping[str, Any] = answer["results"][0]
                return result

    def differences(self, case: Vector) -> list[Difference]:
        """Return how the answer to a case differs from what it expects."""
        try:
            return result_differences(case, self.answer(case))
        except InvalidManifest as error:
            return [Difference(field=REFUSED, expected="accepted", got=str(error))]
