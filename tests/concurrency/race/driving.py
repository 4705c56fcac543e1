"""Drives the planners of one round, keeping the cluster as full as it is at the beginning."""

import asyncio
import random
from collections import Counter, deque
from collections.abc import Sequence
from itertools import count

from tests.concurrency.callers import Caller, Notebook
from tests.concurrency.race import workload
from tests.concurrency.replicas import Asked

PROBES = 2 * len(workload.KINDS)
"""Questions to each planner at the end of a round."""


class Round:
    """One fresh cluster, on which groups are placed until there are enough placements."""

    def __init__(
        self, cluster: str, urls: Sequence[str], token: str, *, drivers: int, seed: str
    ) -> None:
        self.notebook = Notebook()
        self.placed = 0
        self.unplaced = 0
        self._cluster = cluster
        self._urls = urls
        self._token = token
        self._drivers = drivers
        self._chance = random.Random(seed)
        self._numbers = count()
        self._present: deque[tuple[str, int]] = deque()
        """Namespaces with their pods, the oldest first."""
        self._pods = int(workload.SLOTS * workload.FULL)
        filled = Counter(each["metadata"].get("namespace") for each in workload.fillers())
        self._present.extend((str(name), pods) for name, pods in filled.items() if name)

    async def run(self, placements: int) -> None:
        await asyncio.gather(*(self._drive(i, placements) for i in range(self._drivers)))

    async def _drive(self, driver: int, placements: int) -> None:
        """One group after the other, each by a few callers at planners chosen by chance."""
        callers = {
            url: Caller(
                self.notebook, f"caller-{driver}-{i}", [url], self._token, cluster=self._cluster
            )
            for i, url in enumerate(self._urls)
        }
        try:
            while self.placed < placements:
                rivals = self._chance.sample(
                    list(self._urls), min(len(self._urls), workload.RIVALS)
                )
                number = next(self._numbers)
                rest = workload.rest_of(number, self._chance)
                await self._make_room(callers[rivals[0]], len(rivals) * (workload.FIRST + rest))
                await self._place_group(number, rest, [callers[url] for url in rivals])
        finally:
            await asyncio.gather(*(caller.close() for caller in callers.values()))

    async def ask_all(self) -> list[Asked]:
        """Where each planner would put one more pod of some groups, when all is over."""
        numbers = range(PROBES)
        pods = [workload.member(number, f"probe-{number}") for number in numbers]
        told = []
        for url in self._urls:
            caller = Caller(Notebook(), "probe", [url], self._token, cluster=self._cluster)
            try:
                told += [Asked(url, pod, *await caller.try_out(pod)) for pod in pods]
            finally:
                await caller.close()
        return told

    async def _make_room(self, caller: Caller, wanted: int) -> None:
        """Delete the oldest groups; of the groups under way about half of the pods are there."""
        self._pods += wanted
        most = workload.SLOTS * workload.FULL + self._drivers * workload.GROUP_PODS / 2
        while self._pods > most and self._present:
            name, pods = self._present.popleft()
            self._pods -= pods
            await caller.delete_namespace(name)

    async def _place_group(self, number: int, rest: int, rivals: Sequence[Caller]) -> None:
        """`rest`: the pods that each caller asks for beside its first ones."""
        namespace, each_of = workload.namespace_of(number), list(enumerate(rivals))
        await rivals[0].put_namespace(namespace)
        firsts = [self._ask(number, caller, f"first-{i}", workload.FIRST) for i, caller in each_of]
        placed = sum(await asyncio.gather(*firsts))
        others = [self._ask(number, caller, f"rest-{i}", rest) for i, caller in each_of]
        if workload.is_shared(number):
            placed += sum(await asyncio.gather(*others))
        else:
            placed += sum([await each for each in others])
        self._pods += placed - len(rivals) * (workload.FIRST + rest)
        self._present.append((namespace, placed))

    async def _ask(self, number: int, caller: Caller, part: str, pods: int) -> int:
        """Have one caller place its part of a group; how many pods got a node."""
        call = await caller.place(
            workload.members(number, [f"{part}-{i}" for i in range(pods)]),
            group=workload.is_gang(number),
        )
        results = call.body["results"] if call.outcome == "ok" else ()
        placed = sum(result["outcome"] == "Placed" for result in results)
        self.placed += placed
        self.unplaced += len(results) - placed
        return placed
