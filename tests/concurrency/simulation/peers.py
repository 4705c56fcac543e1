"""Workers that hand requests to each other, over connections that break."""

import asyncio
import random
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, NamedTuple

from service.api.forwarding import retry
from service.api.forwarding.retry import AnswerLost, Repeat, Unreachable
from service.model.core.errors import MoorageError
from service.scheduler.protocol.intents import ExplainPod
from tests.concurrency.simulation.choices import ACTOR
from tests.concurrency.simulation.database import Database

Ask = Callable[..., asyncio.Future[Any]]


class Asked(NamedTuple):
    """A request as `Scheduler.submit` takes it."""

    cluster: str
    intent: Any
    idempotency: Any


class Told(NamedTuple):
    """An answer, or the error that is one."""

    outcome: Any

    @property
    def refused(self) -> bool:
        return isinstance(self.outcome, Exception)


class SimulatedPeers:
    """The workers of a run by name: how one of them asks another."""

    def __init__(self, database: Database, source: random.Random) -> None:
        self._database = database
        self._random = source
        self._asks: dict[str, Ask] = {}
        self._lives: dict[str, Callable[[], bool]] = {}

    def add(self, name: str, ask: Ask, *, lives: Callable[[], bool]) -> None:
        """`ask` sends a request to a worker, which decides it itself."""
        self._asks[name] = ask
        self._lives[name] = lives

    def lives(self, name: str) -> bool:
        """Whether a worker has not crashed, which its lock tells the others."""
        return self._lives[name]()

    async def ask(self, holder: str, request: Asked, repeat: Repeat) -> Told:
        name = self._database.choices.numbered(f"{ACTOR.get()}/to {holder}")
        trouble = self._database.trouble
        if self._befalls(f"{name}/not reached", trouble.refused + trouble.lost_answer / 4):
            raise self._passed("not reached", Unreachable())
        reply = self._asks[holder](*request)
        reply.add_done_callback(lambda done: done.cancelled() or done.exception())
        # It goes on there, whether or not anybody still listens.
        lost = self._befalls(f"{name}/answer lost", trouble.lost_answer + trouble.late)
        await asyncio.wait({reply}, timeout=self._patience(name) if lost else None)
        if lost:
            raise self._passed("answer lost", AnswerLost())
        error = reply.exception()
        if isinstance(error, ConnectionResetError):
            raise self._passed("worker died", AnswerLost())
        self._passed("answered", None)
        return Told(error or reply.result())

    def _befalls(self, name: str, chance: float) -> bool:
        return self._database.choices.does(name, self._random, chance) and chance > 0

    def _patience(self, name: str) -> float:
        draw = partial(self._random.choice, (0.0, 0.05))
        return self._database.choices.take(f"{name}/patience", 0.0, draw)

    async def forward(
        self, holder: str, request: Asked, submit: Callable[..., Coroutine[Any, Any, Any]]
    ) -> Any:
        """As the API does it: `submit` is how the worker that was asked would decide."""

        async def here() -> Told:
            try:
                return Told(await submit(*request))
            except MoorageError as error:
                return Told(error)

        told = await retry.forward(self, holder, request, _repeat(request), here)
        if isinstance(told.outcome, Exception):
            raise told.outcome
        return told.outcome

    def _passed(self, moment: str, error: Any) -> Any:
        self._database.points[f"forwarding: {moment}"] += 1
        self._database.loop.tell(f"forwarding by {ACTOR.get()}: {moment}")
        return error


def _repeat(request: Asked) -> Repeat:
    if isinstance(request.intent, ExplainPod):
        return "Safe"
    return "Keyed" if request.idempotency is not None else "Never"
