"""Reconstructs a cluster's state at an earlier revision, to explain one pod."""

from collections.abc import AsyncIterator, Sequence
from itertools import groupby

from service.model.core.errors import Compacted, FieldError, InvalidManifest
from service.model.core.primitives import CLUSTER_KIND
from service.model.log.commit import ObjectRow
from service.model.log.history import PastChanges, PastKey, PastSelection, PastState
from service.scheduler.decide.object_writes import not_found
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

    If that revision belongs to the commit that bound the pod, the state is that just before the
    binding: it includes the pods placed earlier in the same commit, but no later ones.
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
        """Find the pod as it was at a revision, and store it in `pod`.

        Raises:
            NotFound: the pod did not exist.
            Compacted: the log does not reach back that far.
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
            raise not_found("Pod", of.namespace, of.name)
        rows = await store.history.objects(self._cluster_id, "Pod", index.keys)
        if rows is None:
            raise _compacted(revision)
        self.pod, self._revision = rows[0], at if bound is None else bound - 1

    async def states(self) -> AsyncIterator[list[PastObject]]:
        """Yield, in portions, the objects changed since the revision, in their states at that time.

        Raises:
            Compacted: the log no longer has their earlier states.
            InvalidManifest: too many objects have changed.
        """
        changes = await self._changes()
        states = sorted(changes.states, key=lambda state: (state.kind != CLUSTER_KIND, state[:3]))
        for kind, grouped in groupby(states, key=lambda state: state.kind):
            of_kind = list(grouped)
            for start in range(0, len(of_kind), _STATES_AT_ONCE):
                portion = of_kind[start : start + _STATES_AT_ONCE]
                async for then in self._as_they_were(kind, portion):
                    yield then

    async def _changes(self) -> PastChanges:
        most = self._limits.past_states_max
        changes = await self._store.history.changes(
            self._cluster_id,
            self._revision,
            changes_max=self._limits.past_changes_max,
            limit=most + 1,
            without=_NOT_READ,
        )
        if changes.unknown or self._revision < changes.reach:
            raise _compacted(self._revision)
        if len(changes.states) > most:
            message = f"more than {most} objects have changed since (past_states_max)"
            raise InvalidManifest([FieldError("revision", message, self._revision)])
        return changes

    async def _as_they_were(
        self, kind: str, states: Sequence[PastState]
    ) -> AsyncIterator[list[PastObject]]:
        absent = [PastObject(state, None) for state in states if state.revision is None]
        if absent:
            yield absent
        there = [state for state in states if state.revision is not None]
        while there:
            keys = [PastKey(state.namespace, state.name, state.revision or 0) for state in there]
            rows = await self._store.history.objects(self._cluster_id, kind, keys)
            if rows is None:
                raise _compacted(self._revision)
            yield [PastObject(state, row) for state, row in zip(there, rows, strict=False)]
            there = there[len(rows) :]


def _compacted(revision: int) -> Compacted:
    return Compacted(
        f"The log no longer tells what was at revision {revision}; /revisions says what it tells."
    )
