"""The clusters that a process has in memory, and which of them may have work to do.

There may be thousands of clusters, most of them unused. Each round of periodic work covers all
awake clusters and a few sleeping ones, so its cost depends on the clusters in use, not on the
total.
"""

from collections.abc import Iterable, Iterator
from itertools import islice

from typing_extensions import override

from service.scheduler.commit.cluster_loop import ClusterLoop

AWAKE_SECONDS = 10.0
"""How long a cluster stays awake after a request for it, or after its log has grown."""
SLEEPERS_AT_A_TIME = 50
"""How many sleeping clusters one round of periodic work covers, in turn."""


class Loops(dict[str, ClusterLoop]):
    """The loops of all clusters, by name. Change them only through the methods below."""

    def __init__(self) -> None:
        super().__init__()
        self._names: dict[int, str] = {}
        self._awake: dict[str, None] = {}
        self._round: Iterator[str] = iter(())

    def of(self, cluster_ids: Iterable[int], *, idle_only: bool = False) -> list[ClusterLoop]:
        """Return the loops of these clusters, or only the idle ones; some may have none."""
        names = [self._names.get(cluster_id) for cluster_id in cluster_ids]
        loops = [self[name] for name in names if name is not None]
        return [loop for loop in loops if loop.idle] if idle_only else loops

    def put(self, name: str, loop: ClusterLoop) -> None:
        """Set the loop of a cluster, and wake it."""
        self.remove(name)
        self[name] = loop
        self._names[loop.cluster_id] = name
        self.wake(loop.cluster_id)

    def remove(self, name: str) -> ClusterLoop | None:
        """Remove and return the loop of a cluster, or None if it has no loop."""
        loop = self.pop(name, None)
        self._awake.pop(name, None)
        if loop is not None and self._names.get(loop.cluster_id) == name:
            del self._names[loop.cluster_id]
        return loop

    @override
    def clear(self) -> None:
        super().clear()
        self._names.clear()
        self._awake.clear()

    def wake(self, cluster_id: int) -> None:
        """Mark a cluster as awake because it has a request or its log has grown."""
        name = self._names.get(cluster_id)
        if name is not None:
            self._awake[name] = None
            self[name].is_awake = True

    def sleep(self, name: str) -> None:
        """Mark a cluster as asleep because it has nothing to do."""
        self._awake.pop(name, None)
        self[name].is_awake = False

    @property
    def awake(self) -> list[ClusterLoop]:
        return [self[name] for name in self._awake]

    def due(self) -> dict[str, ClusterLoop]:
        """Return the loops to run periodic work for now: all awake ones and a few sleeping ones."""
        names = [*self._awake, *islice(self._round, SLEEPERS_AT_A_TIME)]
        missing = len(self._awake) + SLEEPERS_AT_A_TIME - len(names)
        if missing:
            self._round = iter(list(self))
            names += islice(self._round, missing)
        return {name: loop for name in names if (loop := self.get(name)) is not None}
