"""Compacts logs, lifts revisions, and keeps the reports of replicas, in memory."""

from collections.abc import Mapping
from datetime import datetime, timedelta

from service.model.log.commit import COMPACTION_STEP_ROWS_MAX, RESTORE_LIFT_REVISIONS, Head
from service.model.log.lease import REPORT_SECONDS_MAX, ReplicaReport, ReplicaState
from tests.support.memory_store.state import MemoryState


class MemoryHousekeeper:
    """Bounds what clusters store."""

    def __init__(self, state: MemoryState) -> None:
        self.state = state

    async def compact(
        self,
        cluster_id: int,
        *,
        keep_changes: int,
        keep_seconds: float,
        rows: int = COMPACTION_STEP_ROWS_MAX,
    ) -> tuple[int, bool]:
        """Make one step of compaction; returns the log's floor, and whether it rose (P12)."""
        own = self.state.of(cluster_id)
        before = self.state.clock() - timedelta(seconds=keep_seconds)
        reach = own.floor + rows
        old = [
            commit.last
            for commit in own.commits
            if commit.last > own.floor and commit.first <= reach and commit.at < before
        ]
        target = min(max(old, default=0), reach, own.head.revision - keep_changes)
        if target <= own.floor:
            return own.floor, False
        del own.changes[: target - own.floor]
        own.commits = [commit for commit in own.commits if commit.last > target]
        own.floor = target
        return target, True

    async def sweep_answers(self, cluster_id: int, *, keep_seconds: float) -> int:
        """Delete idempotency records that are older, and return how many (P11)."""
        own = self.state.states.get(cluster_id)
        if own is None:
            return 0
        before = self.state.clock() - timedelta(seconds=keep_seconds)
        old = [key for key, (at, _) in own.answers.items() if at < before]
        for key in old:
            del own.answers[key]
        return len(old)


class MemoryRecovery:
    """Continues the histories of clusters."""

    def __init__(self, state: MemoryState) -> None:
        self.state = state

    async def lift_revision(self, cluster_id: int) -> None:
        """Begin a new history at a much higher revision, with an empty log (P3)."""
        own = self.state.of(cluster_id)
        lifted = own.head.revision + RESTORE_LIFT_REVISIONS
        own.head = Head(lifted, self.state.new_id(), max(self.state.clock(), own.head.at))
        own.floor = lifted
        own.changes.clear()
        own.commits.clear()

    async def continue_history(self, cluster_id: int, known: Head | None) -> bool:
        """Lift the revisions if the log lacks a head that the caller knows; return whether they were (P3)."""
        own = self.state.of(cluster_id)
        if known is None or known.tip == own.head.tip or known.revision <= own.floor:
            return False
        commits = ((commit.last, commit.commit_id) for commit in own.commits)
        if (known.revision, known.tip) in commits:
            return False
        await self.lift_revision(cluster_id)
        return True


class MemoryReports:
    """The reports of processes on their replicas."""

    def __init__(self, state: MemoryState) -> None:
        self.state = state
        self._reports: dict[str, tuple[datetime, dict[int, ReplicaState]]] = {}

    async def report(self, process: str, states: Mapping[int, ReplicaState]) -> None:
        """Store the state of a process's replicas, by cluster, in place of its earlier report."""
        self._reports[process] = (self.state.clock(), dict(states))

    async def latest(self) -> list[ReplicaReport]:
        """The latest reports of running processes, ordered by cluster and process."""
        fresh = self.state.clock() - timedelta(seconds=REPORT_SECONDS_MAX)
        found = [
            ReplicaReport(
                process=process,
                cluster=self.state.states[cluster_id].name,
                revision=state.revision,
                hash=state.hash,
            )
            for process, (at, states) in self._reports.items()
            for cluster_id, state in states.items()
            if at > fresh and cluster_id in self.state.states
        ]
        return sorted(found, key=lambda report: (report.cluster, report.process))
