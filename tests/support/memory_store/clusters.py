"""Makes and deletes clusters in memory."""

from collections.abc import Callable, Iterable, Mapping

import msgspec

from service.model.cluster.cluster_config import ClusterConfig
from service.model.core.errors import Conflict, NotFound
from service.model.core.primitives import CLUSTER_KIND, CLUSTER_NAME
from service.model.log.audit_chain import ITSELF, AuditedCaller, AuditEntry
from service.model.log.commit import Change, CommitRequest, Head, ObjectKey, effects
from service.model.log.pages import ClusterCounts, ClusterRow
from tests.support.memory_store.state import ROOT, ClusterState, MemoryState


class MemoryClusters:
    """The clusters of the store; `default` exists from the start."""

    def __init__(self, state: MemoryState) -> None:
        self.state = state
        self._numbers = iter(range(1, 1 << 62))
        self._predecessors: dict[str, int] = {}
        """Where the logs of deleted clusters ended, by name."""
        self._create("default", msgspec.json.encode(ClusterConfig()))

    async def all(self) -> list[ClusterRow]:
        """All clusters, ordered by name."""
        return sorted((own.row() for own in self.state.states.values()), key=lambda row: row.name)

    async def ids(self) -> list[int]:
        """The numbers of all clusters, the oldest first."""
        return sorted(self.state.states)

    async def get(self, name: str) -> ClusterRow:
        """The cluster that has this name now; raises NotFound if there is none."""
        return self._named(name).row()

    async def find(self, name: str) -> int:
        """The number alone of the cluster that has this name now; raises NotFound if there is none."""
        return self._named(name).cluster_id

    async def create(self, name: str, config: bytes, caller: AuditedCaller = ITSELF) -> ClusterRow:
        """Make a new cluster; raises Conflict if the name is taken.

        It begins at revision 1, or above the last revision of a deleted cluster of that name.
        """
        if any(own.name == name for own in self.state.states.values()):
            raise Conflict(f"There is a cluster {name!r} already.")
        own = self._create(name, config)
        made = AuditEntry(caller=caller, cluster=name, revision=own.head.revision)
        self.state.note(made, own.cluster_id)
        return own.row()

    async def delete(
        self,
        cluster_id: int,
        caller: AuditedCaller = ITSELF,
        only_if: Callable[[int], None] | None = None,
        *,
        dry_run: bool = False,
    ) -> bool:
        """Delete a cluster with everything that it has; returns False if it was gone already.

        `only_if` is called with the revision of the configuration; nothing is deleted if it raises.
        """
        own = self.state.states.get(cluster_id)
        if own is None:
            return False
        if only_if is not None:
            only_if(own.objects[ObjectKey(CLUSTER_KIND, "", CLUSTER_NAME)].revision)
        if dry_run:
            return True
        del self.state.states[cluster_id]
        self._predecessors[own.name] = own.head.revision
        self.state.note(AuditEntry(caller=caller, cluster=own.name), cluster_id)
        return True

    async def counts(self, cluster_id: int) -> ClusterCounts:
        """Count the nodes and pods of a cluster; raises NotFound if there is no such cluster."""
        return self.state.of(cluster_id).row().counts

    async def count_pods(self, of: Mapping[int, Iterable[str]]) -> dict[int, ClusterCounts]:
        """Count the pods in some namespaces of each of several clusters; nodes are not counted."""
        return {
            number: self._count_pods(number, set(namespaces)) for number, namespaces in of.items()
        }

    def _count_pods(self, cluster_id: int, namespaces: set[str]) -> ClusterCounts:
        own = self.state.states.get(cluster_id)
        pods = [
            row
            for key, row in (own.objects.items() if own else ())
            if key.kind == "Pod" and key.namespace in namespaces
        ]
        return ClusterCounts(
            nodes=0, pods=len(pods), pending=sum(row.node_name is None for row in pods)
        )

    def _create(self, name: str, config: bytes) -> ClusterState:
        at = self.state.clock()
        floor = self._predecessors.pop(name, -1) + 1
        own = ClusterState(
            cluster_id=next(self._numbers), name=name, head=Head(floor, ROOT, at), floor=floor
        )
        change = Change(
            revision=floor + 1,
            verb="Put",
            kind=CLUSTER_KIND,
            namespace="",
            name=CLUSTER_NAME,
            uid="",
            body=config,
            created=True,
        )
        request = CommitRequest(
            commit_id=self.state.new_id(),
            expected_revision=floor,
            expected_tip=ROOT,
            planned_at=floor,
            kind="CreateCluster",
            changes=[change],
        )
        own.append(request, effects(request.changes), at)
        self.state.states[own.cluster_id] = own
        return own

    def _named(self, name: str) -> ClusterState:
        for own in self.state.states.values():
            if own.name == name:
                return own
        raise NotFound(f"There is no cluster {name!r}.")
