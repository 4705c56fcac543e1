"""The clusters that a process has in memory, and which of them there may be something to do for.

There may be thousands, of which most do nothing. What is done now and then, without being asked, is done for those
that are awake, and for some of the others in turn: so it costs what is in use, and not what is there.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice

from typing_extensions import override

from service.scheduler.commit.loop import ClusterLoop

AWAKE_SECONDS = 10.0
"""How long a cluster is looked after at each time once it was asked or heard of."""
SLEEPERS_AT_A_TIME = 50
"""Of the other clusters so many are looked after, each time the next ones."""


class Loops(Mapping[str, ClusterLoop]):
    """The loop of each cluster, by its name."""

    def __init__(self) -> None:
        self._by_name: dict[str, ClusterLoop] = {}
        self._names: dict[int, str] = {}
        self._awake: dict[str, None] = {}
        self._round: Iterator[str] = iter(())

    @override
    def __getitem__(self, name: str) -> ClusterLoop:
        return self._by_name[name]

    @override
    def __iter__(self) -> Iterator[str]:
        return iter(self._by_name)

    @override
    def __len__(self) -> int:
        return len(self._by_name)

    def of(self, cluster_ids: Iterable[int]) -> list[ClusterLoop]:
        """The loops of these clusters, of those that have one."""
        names = (self._names.get(each) for each in cluster_ids)
        return [self._by_name[name] for name in names if name is not None]

    def put(self, name: str, loop: ClusterLoop) -> None:
        """A cluster has another loop now; it is awake."""
        self.remove(name)
        self._by_name[name] = loop
        self._names[loop.cluster_id] = name
        self._awake[name] = None

    def remove(self, name: str) -> ClusterLoop | None:
        """A cluster has none any more; the one that it had."""
        loop = self._by_name.pop(name, None)
        self._awake.pop(name, None)
        if loop is not None and self._names.get(loop.cluster_id) == name:
            del self._names[loop.cluster_id]
        return loop

    def clear(self) -> None:
        """No cluster has one any more."""
        for each in (self._by_name, self._names, self._awake):
            each.clear()

    def wake(self, cluster_id: int) -> None:
        """Something is asked or heard of a cluster."""
        name = self._names.get(cluster_id)
        if name is not None:
            self._awake[name] = None

    def sleep(self, name: str) -> None:
        """There is nothing to do for a cluster now."""
        self._awake.pop(name, None)

    @property
    def awake(self) -> list[ClusterLoop]:
        """Those that there may be something to do for."""
        return [self._by_name[name] for name in self._awake]

    def due(self) -> dict[str, ClusterLoop]:
        """Those that are to be looked after this time: all that are awake, and some of the others."""
        names = [*self._awake, *islice(self._round, SLEEPERS_AT_A_TIME)]
        missing = len(self._awake) + SLEEPERS_AT_A_TIME - len(names)
        if missing:
            self._round = iter(list(self._by_name))
            names += islice(self._round, missing)
        return {name: loop for name in names if (loop := self._by_name.get(name)) is not None}
