"""Finds what a cluster was at an earlier revision, for the explanation of one pod."""

from collections.abc import AsyncIterator, Sequence
from itertools import groupby

from service.model.errors import Compacted, FieldError, InvalidManifest
from service.model.log.commit_log import CLUSTER_KIND, ObjectRow
from service.model.log.past_revision_types import PastChanges, PastKey, PastSelection, PastState
from service.scheduler.decide.object_writes import missing
from service.scheduler.planner.past_explanation import PastObject
from service.scheduler.protocol.intents import ExplainPod
from service.scheduler.protocol.limits import Limits
from service.scheduler.protocol.ports import Store
from service.scheduler.replica.stored_kinds import EvictionState, NodeState

_STATES_AT_ONCE = 100
_NOT_READ = (EvictionState.kind, NodeState.kind)
"""Kinds that no explanation depends on."""


class PastExplanation:
    """The explanation of one pod as of `revision`.

    If that revision is of the commit that gave the pod its node, the cluster is that just before this
    was done: the pods that were placed earlier in the same commit are there, later ones are not.
    """

    def __init__(self, store: Store, limits: Limits, cluster_id: int, intent: ExplainPod) -> None:
        self.intent = intent
        self.pod: ObjectRow | None = None
        """The pod as it was."""
        self._store = store
        self._limits = limits
        self._cluster_id = cluster_id
        self._revision = 0

    async def find(self, revision: int) -> None:
        """Find the pod as it was at a revision.

        Raises:
            NotFound: it was not there.
            Compacted: the log does not tell.
        """
        of, limits, store = self.intent, self._limits, self._store
        bound = await store.history.bound_at(self._cluster_id, of.namespace, of.name, revision)
        selection = PastSelection(kind="Pod", namespace=of.namespace, name=of.name)
        at = bound or revision
        index = await store.history.index(
            self._cluster_id, selection, at, changes_max=limits.past_changes_max, limit=1
        )
        if index.unknown or at < index.reach:
            raise _compacted(revision)
        if not index.keys:
            raise missing("Pod", of.namespace, of.name)
        rows = await store.history.objects(self._cluster_id, "Pod", index.keys)
        if rows is None:
            raise _compacted(revision)
        self.pod, self._revision = rows[0], at if bound is None else bound - 1

    async def states(self) -> AsyncIterator[list[PastObject]]:
        """The objects that have changed since, some at a time; the replica must not be younger than the log now.

        Raises:
            Compacted: the log no longer tells what they were.
            InvalidManifest: there are too many.
        """
        found = await self._changes()
        states = sorted(found.states, key=lambda each: (each.kind != CLUSTER_KIND, each[:3]))
        for kind, grouped in groupby(states, key=lambda each: each.kind):
            of_kind = list(grouped)
            for start in range(0, len(of_kind), _STATES_AT_ONCE):
                some = of_kind[start : start + _STATES_AT_ONCE]
                async for then in self._as_they_were(kind, some):
                    yield then

    async def _changes(self) -> PastChanges:
        most = self._limits.past_states_max
        found = await self._store.history.changes(
            self._cluster_id,
            self._revision,
            changes_max=self._limits.past_changes_max,
            limit=most + 1,
            without=_NOT_READ,
        )
        if found.unknown or self._revision < found.reach:
            raise _compacted(self._revision)
        if len(found.states) > most:
            message = f"more than {most} objects have changed since (past_states_max)"
            raise InvalidManifest([FieldError("revision", message, self._revision)])
        return found

    async def _as_they_were(
        self, kind: str, states: Sequence[PastState]
    ) -> AsyncIterator[list[PastObject]]:
        absent = [PastObject(each, None) for each in states if each.revision is None]
        if absent:
            yield absent
        there = [each for each in states if each.revision is not None]
        while there:
            keys = [PastKey(each.namespace, each.name, each.revision or 0) for each in there]
            rows = await self._store.history.objects(self._cluster_id, kind, keys)
            if rows is None:
                raise _compacted(self._revision)
            yield [PastObject(state, row) for state, row in zip(there, rows, strict=False)]
            there = there[len(rows) :]


def _compacted(revision: int) -> Compacted:
    return Compacted(
        f"The log no longer tells what was at revision {revision}; /revisions says what it tells."
    )
