"""What runs of kept plans have in common: planners that are killed, and pods that somebody stops and starts."""

import random
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import msgspec

from service.model.core.errors import MoorageError
from service.scheduler.protocol.intents import DeleteObject
from tests.reference.view import Manifest, is_terminating
from tests.scheduler.world import World


class PlanRun:
    """One history of some planners, as chance has it."""

    def __init__(self, w: World, choices: random.Random) -> None:
        self.w = w
        self.choices = choices
        self._living = list(range(len(w.schedulers)))

    async def attempt(self, intent: Any) -> None:
        """Ask one of the planners that live; it may refuse, or not answer."""
        with suppress(MoorageError):
            await self.w.ask(intent, self.choices.choice(self._living))

    def kill(self) -> None:
        """End a planner at once: it gives nothing back, and its leases run out."""
        victim = self.choices.choice(self._living)
        self._living.remove(victim)
        for task in self.w.schedulers[victim].tasks:
            task.cancel()

    async def pods(self) -> dict[str, Manifest]:
        """The stored pods by name."""
        page = await self.w.store.objects.list(1, "Pod", limit=1000)
        return {row.name: msgspec.json.decode(row.body) for row in page.rows}

    async def stop_and_start(
        self, pods: Mapping[str, Manifest], wanted: Mapping[str, Any], eager: float
    ) -> None:
        """Stop those of the pods that are to leave, and have those placed that are wanted and not there."""
        there = set(pods)
        for name, found in sorted(pods.items()):
            if is_terminating(found) and self.choices.random() < eager:
                await self.attempt(DeleteObject(kind="Pod", namespace="default", name=name))
                there.remove(name)
        for name, made in wanted.items():
            if name not in there and self.choices.random() < eager:
                await self.attempt(self.w.placing(made))
