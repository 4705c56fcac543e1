"""A second replica of a cluster, for making plans in parallel with placements.

It is built from the first replica's objects in memory, so manifests are held only once, and then
follows the first replica's committed changes. A single thread changes both replicas.
"""

from collections.abc import Generator, Sequence

from service.model.registry.manifests import TemplateCache
from service.scheduler.replica.copying import copy_replica
from service.scheduler.replica.replica import Entry, Replica

_STEP_ENTRIES = 20


class PlanningReplica:
    """Follows another replica for plans, at no cost before the first plan."""

    def __init__(self, templates: TemplateCache, behind_max: int) -> None:
        self._templates = templates
        self._behind_max = behind_max
        self.wants_new_pods = False
        self._source: Replica | None = None
        """The replica being followed, or None."""
        self._replica: Replica | None = None
        self._behind: list[Entry] = []

    @property
    def is_loaded(self) -> bool:
        """Return whether the second replica exists."""
        return self._source is not None

    def drop(self) -> None:
        """Drop the second replica; the next plan creates a new one."""
        self._source = self._replica = None
        self.wants_new_pods, self._behind = False, []

    # Changes of the first replica

    def on_loaded(self, replica: Replica) -> None:
        """Drop the second replica because the first was reloaded."""
        if replica is not self._source:
            self.drop()

    def on_committed(self, entries: Sequence[Entry]) -> None:
        """Record committed changes, which the second replica applies before the next plan."""
        if self._source is None:
            return
        self._behind += entries
        if len(self._behind) > self._behind_max:
            self.drop()

    def catching_up(self, source: Replica) -> Generator[None, None, Replica | None]:
        """Bring the replica to the first one's committed state, creating it if need be.

        Returns None if the replica was dropped in the meantime.
        """
        if self._source is not source:
            self.drop()
            self._source, self.wants_new_pods = source, True
            revision = source.committed_revision
            replica = yield from copy_replica(source.committed_objects(), self._templates)
            replica.arrive(revision)
            if self._source is source:
                self._replica = replica
        while self._behind and (following := self._replica) is not None:
            entries, self._behind = self._behind, []
            for start in range(0, len(entries), _STEP_ENTRIES):
                following.follow(entries[start : start + _STEP_ENTRIES])
                yield
        return self._replica if self._source is source else None
