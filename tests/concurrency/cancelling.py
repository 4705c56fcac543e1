"""Cancels a piece of work at one of its awaits, as a client does who hangs up just then."""

import asyncio
from collections.abc import Awaitable, Generator
from typing import Any, Literal

Moment = Literal["while it waits", "as it goes on"]
"""Before what is awaited has come, or when it has come but nobody has taken it yet."""


class CancelledAt:
    """Awaits `work` in the present task, and cancels that task at the await of this number.

    `reached`: whether there were so many.
    """

    def __init__(self, work: Awaitable[Any], number: int, moment: Moment) -> None:
        self._work = work
        self._number = number
        self._moment = moment
        self.reached = False

    def __await__(self) -> Generator[Any, Any, Any]:
        steps = self._work.__await__()
        awaits, step = 0, lambda: steps.send(None)
        while True:
            try:
                waited = step()
            except StopIteration as done:
                return done.value
            if awaits == self._number:
                self._cancel_at(waited)
            awaits += 1
            step = yield from self._suspended(steps, waited)

    def _suspended(self, steps: Any, waited: Any) -> Generator[Any, Any, Any]:
        try:
            value = yield waited
        except BaseException as error:  # noqa: BLE001 - handed on to whom it is meant for
            thrown = error
            return lambda: steps.throw(thrown)
        return lambda: steps.send(value)

    def _cancel_at(self, waited: Any) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.reached = True
        if waited is None or self._moment == "while it waits":
            task.cancel()
        else:
            # Registered before the task's own wake-up, so it comes when the result is there.
            waited.add_done_callback(lambda _: task.cancel())


async def cancelled_at(work: Awaitable[Any], number: int, moment: Moment) -> tuple[bool, Any]:
    """Whether the work came so far, and what it returned or raised."""
    cancelling = CancelledAt(work, number, moment)

    async def run() -> Any:
        return await cancelling

    (outcome,) = await asyncio.gather(asyncio.create_task(run()), return_exceptions=True)
    return cancelling.reached, outcome
