"""Queries extenders about a request's pods one by one, outside the decisions."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

from msgspec.structs import replace

from service.model.core.errors import FieldError, InvalidManifest, Overloaded
from service.model.core.primitives import ObjectName
from service.scheduler.protocol.extenders import (
    ExtenderCaller,
    ExtenderQuestion,
    ExtendersRequired,
    ExtenderVerdict,
)
from service.scheduler.protocol.intents import PlacePods
from service.scheduler.protocol.limits import Limits
from service.scheduler.protocol.ports import Clock

T = TypeVar("T")


class ExtenderCalls:
    """The extender verdicts gathered so far for the pods of one request."""

    def __init__(
        self, extenders: ExtenderCaller, clock: Clock, limits: Limits, intent: PlacePods
    ) -> None:
        self._extenders = extenders
        self._clock = clock
        self._limits = limits
        self._intent = intent
        self._deadline = clock.monotonic() + limits.request_seconds_max
        self._consulted: Mapping[ObjectName, ExtenderVerdict] = {}
        self._retries = 0

    async def decided(
        self, question: ExtenderQuestion, decide: Callable[[PlacePods], Awaitable[T]]
    ) -> T:
        """Query extenders pod by pod until the verdicts suffice to decide the request.

        No decision, lock, or replica state is held while extenders are queried.

        Raises:
            InvalidManifest: too many pods of the request need extenders.
            Overloaded: time is up, or other requests repeatedly took the chosen nodes.
        """
        while True:
            intent = await self._ask(question)
            try:
                return await decide(intent)
            except ExtendersRequired as asking:
                question = asking.question

    async def _ask(self, question: ExtenderQuestion) -> PlacePods:
        """Query extenders about one more pod, and return the request with all verdicts so far."""
        if question.pod in self._consulted:
            self._retries += 1
            if self._retries > self._limits.extended_retries_max:
                raise Overloaded("The nodes that were chosen with extenders were taken by others.")
        most = self._limits.extended_pods_max
        if len(self._consulted) >= most and question.pod not in self._consulted:
            message = f"has more than {most} pods for which extenders have to be asked"
            raise InvalidManifest([FieldError(self._intent.path, message)])
        seconds = self._deadline - self._clock.monotonic()
        try:
            async with asyncio.timeout(seconds):
                verdict = await self._extenders.ask(question)
        except TimeoutError:
            message = "The time for the request ran out while extenders were asked."
            raise Overloaded(message) from None
        self._consulted = {**self._consulted, question.pod: verdict}
        return replace(self._intent, extender_verdicts=self._consulted)
