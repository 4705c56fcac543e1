"""Callers who ask for many pods at a time, and never wait for each other.

The cluster does not fill: of the namespaces that are complete the oldest are deleted.
"""

import asyncio
from collections import Counter, deque
from collections.abc import Iterator
from itertools import count
from typing import Any

from tests.concurrency.callers import Caller
from tests.concurrency.race import workload

PARTS = 2
"""Requests for pods of one namespace, the first pods of a group among them, mostly at the same time."""
KEPT = 20
"""Complete namespaces; those in the making come on top."""


class Pressure:
    """Has each caller place so many pods, ask again until they are acknowledged, and go on."""

    def __init__(self, pods: int) -> None:
        self._pods = pods
        self._numbers = count()
        self._parts: deque[tuple[int, int]] = deque()
        self._done: Counter[int] = Counter()
        self._complete: deque[int] = deque()

    async def keep_asking(self, caller: Caller, over: asyncio.Event) -> None:
        while not over.is_set():
            number, part = await self._next_part(caller)
            await caller.place(
                list(members(number, part, self._pods)), group=workload.is_gang(number)
            )
            self._done[number] += 1
            if self._done[number] == PARTS:
                self._complete.append(number)
            while len(self._complete) > KEPT:
                await caller.delete_namespace(workload.namespace_of(self._complete.popleft()))

    async def _next_part(self, caller: Caller) -> tuple[int, int]:
        """What is left of a namespace that there is, or the first part of a new one."""
        if self._parts:
            return self._parts.popleft()
        number = next(self._numbers)
        await caller.put_namespace(workload.namespace_of(number))
        self._parts.extend((number, part) for part in range(1, PARTS))
        return number, 0


def members(number: int, part: int, pods: int) -> Iterator[dict[str, Any]]:
    """Every second pod belongs to the namespace's group and has its rules, the others have none."""
    for i in range(pods):
        made = workload.member(number, f"{part}-{i}")
        if i % 2:
            made["metadata"]["labels"] = {"app": "plain"}
            made["spec"] = {"containers": made["spec"]["containers"]}
        yield made
