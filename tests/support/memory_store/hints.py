"""Hints within one process that logs have grown."""

import asyncio
from collections.abc import AsyncGenerator


class Hints:
    """Sends hints to all who listen (P14)."""

    def __init__(self) -> None:
        self._listeners: list[_Listener] = []

    def notify(self, cluster_id: int) -> None:
        """Let listeners know that a cluster's log has grown (P14)."""
        for listener in self._listeners:
            listener.hear(cluster_id)

    async def listen(self) -> AsyncGenerator[frozenset[int], None]:
        """Yield clusters whose logs have grown; first an empty set, as earlier hints may have been missed."""
        listener = _Listener()
        self._listeners.append(listener)
        try:
            yield frozenset()
            while True:
                yield await listener.take()
        finally:
            self._listeners.remove(listener)


class _Listener:
    """The hints that one listener has been sent and has not taken yet."""

    def __init__(self) -> None:
        self._heard: set[int] = set()
        self._news = asyncio.Event()

    def hear(self, cluster_id: int) -> None:
        self._heard.add(cluster_id)
        self._news.set()

    async def take(self) -> frozenset[int]:
        await self._news.wait()
        self._news.clear()
        heard = frozenset(self._heard)
        self._heard.clear()
        return heard
