"""Faults by chance while callers place pods: in lanes that overlap, each waiting until all is well again."""

import asyncio
import random
import statistics
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import get_args

from service.server.failures import ConfigurationError
from service.store.db.failures import is_unavailable
from tests.concurrency.faults.kinds import Kind, Lane
from tests.concurrency.faults.scene import Round, Scene

PAUSE_SECONDS = (0.0, 0.3)
LANES: tuple[Lane, ...] = get_args(Lane)


class Deck:
    """Kinds by their weights, dealt so that each one comes before any comes too often."""

    def __init__(self, kinds: Sequence[Kind], chance: random.Random) -> None:
        self._kinds = [kind for kind in kinds for _ in range(kind.weight)]
        self._chance = chance
        self._dealt: list[Kind] = []

    @property
    def weight(self) -> int:
        return len(self._kinds)

    def deal(self) -> Kind:
        if not self._dealt:
            self._dealt = self._chance.sample(self._kinds, len(self._kinds))
        return self._dealt.pop()

    def put_back(self, kind: Kind) -> None:
        """Deal it once more, not at once: it had nothing to befall."""
        self._dealt.insert(0, kind)


class Healed:
    """How often each kind was injected, and how long it took until placements went on."""

    def __init__(self) -> None:
        self.seconds: defaultdict[str, list[float]] = defaultdict(list)

    def add(self, other: "Healed") -> None:
        for name, seconds in other.seconds.items():
            self.seconds[name] += seconds

    @property
    def counts(self) -> Counter[str]:
        return Counter({name: len(seconds) for name, seconds in self.seconds.items()})

    def table(self) -> str:
        """One line for each kind: how often, and seconds until the next placement."""
        lines = ["| kind | injected | median s | longest s |", "|---|--:|--:|--:|"]
        for name, seconds in sorted(self.seconds.items()):
            median, longest = statistics.median(seconds), max(seconds)
            lines.append(f"| {name} | {len(seconds):,} | {median:.2f} | {longest:.2f} |")
        return "\n".join(lines)


class Injections:
    """Injects faults at a scene, round by round."""

    def __init__(self, scene: Scene, kinds: Sequence[Kind], seed: str) -> None:
        self._scene = scene
        self._chances = {lane: random.Random(f"{seed}-{lane}") for lane in LANES}
        decks = {
            lane: Deck([kind for kind in kinds if kind.lane == lane], self._chances[lane])
            for lane in LANES
        }
        self._decks: Mapping[Lane, Deck] = {k: deck for k, deck in decks.items() if deck.weight}

    async def inject(self, number: int, on: Round) -> tuple[Healed, list[str]]:
        """So many faults in all lanes; how each healed, and what did not (A16)."""
        healed, told = Healed(), list[str]()
        quotas = shares({lane: deck.weight for lane, deck in self._decks.items()}, number)
        async with asyncio.TaskGroup() as group:
            for lane, quota in quotas.items():
                group.create_task(self._inject(lane, quota, on, healed, told))
        return healed, told

    async def _inject(
        self, lane: Lane, quota: int, on: Round, healed: Healed, told: list[str]
    ) -> None:
        deck, chance, done = self._decks[lane], self._chances[lane], 0
        while done < quota and not told:
            await asyncio.sleep(chance.uniform(*PAUSE_SECONDS))
            kind = deck.deal()
            try:
                async with self._scene.database if lane == "database" else nullcontext():
                    befell = await kind.inject(self._scene, chance)
            except (AssertionError, ConfigurationError) as error:
                told.append(f"A16: {kind.name}: {error}")
                return
            except Exception as error:
                if not is_unavailable(error):
                    raise
                befell = False  # a fault of another lane has ended PostgreSQL meanwhile
            if not befell:
                deck.put_back(kind)
                continue
            over, done = time.monotonic(), done + 1
            if not await on.again(over):
                told.append(f"A16: nothing was placed any more after: {kind.name}")
            healed.seconds[kind.name].append(time.monotonic() - over)


def shares(weights: Mapping[Lane, int], number: int) -> dict[Lane, int]:
    """Of so many faults, those of each lane by its weight, rounded so that they add up."""
    total, found, before = sum(weights.values()), {}, 0
    for end, lane in enumerate(weights, start=1):
        until = round(number * sum([*weights.values()][:end]) / total)
        found[lane] = until - before
        before = until
    return found
