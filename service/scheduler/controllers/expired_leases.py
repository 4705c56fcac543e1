"""Finds clusters whose background work is unattended, and takes that work over."""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import Any

from service.model.core.errors import MoorageError
from service.scheduler.controllers.controller import Controllers
from service.scheduler.protocol.ports import Clock, Store

_log = logging.getLogger(__name__)


class ExpiredLeases:
    """Looks for leases of any kind that expired because their worker died or stopped.

    One query covers all kinds: every worker looks several times per lease duration, and nearly
    always finds nothing.
    """

    def __init__(
        self,
        store: Store,
        clock: Clock,
        kinds: Sequence[Controllers[Any]],
        serve: Callable[[str], Awaitable[object]],
    ) -> None:
        """Create the search; `serve` loads a cluster, by its name, with its controllers."""
        self._store = store
        self._clock = clock
        self._kinds = kinds
        self._serve = serve
        self._seconds = min(kind.lease_seconds for kind in kinds) / 3
        self._searched: set[str] = set()
        """The kinds of work for which all clusters have been searched, with or without a lease."""
        self._adopting: set[str] = set()
        """The kinds of work whose clusters are being loaded, which may take long."""

    async def run(self) -> None:
        """Look for expired leases, forever."""
        async with asyncio.TaskGroup() as adoptions:
            while True:
                await _tried(partial(self._look, adoptions))
                await self._clock.sleep(self._seconds)

    async def _look(self, adoptions: asyncio.TaskGroup) -> None:
        clusters = defaultdict[str, list[str]](list)
        for name, cluster in await self._store.leases.expired([kind.name for kind in self._kinds]):
            clusters[name].append(cluster)
        for kind in self._kinds:
            name, is_searched = kind.name, kind.name in self._searched
            if name not in self._adopting and (clusters[name] or not is_searched):
                self._adopting.add(name)
                adoptions.create_task(_tried(partial(self._adopt, kind, clusters[name])))

    async def _adopt(self, kind: Controllers[Any], clusters: Iterable[str]) -> None:
        try:
            if kind.name not in self._searched:
                clusters = [*await kind.unattended(), *clusters]
            for cluster in clusters:
                await kind.adopt(cluster, self._serve)
            self._searched.add(kind.name)
        finally:
            self._adopting.discard(kind.name)


async def _tried(work: Callable[[], Awaitable[None]]) -> None:
    """Run the work; after a failure, a later search picks up the rest."""
    try:
        await work()
    except MoorageError:
        _log.debug("Expired leases could not be looked for.", exc_info=True)
    except Exception:  # noqa: BLE001 - a bug here must not end all adopting
        _log.exception("Looking for expired leases failed; it will be tried again.")
