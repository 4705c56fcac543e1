"""Mistakes in the store."""

from msgspec.structs import replace

from service.model.log.commit import Head, ReplicaMismatch, effects
from service.model.log.pages import ObjectPage
from service.model.log.results import Committed, Lost
from tests.concurrency.planted.registry import bug
from tests.support.memory_store.log import MemoryLog
from tests.support.memory_store.objects import MemoryObjects
from tests.support.memory_store.state import ClusterState


@bug("P1, A8", "MemoryLog.commit_to")
def stale_commits_numbered_on(patch):
    """Revisions come from a sequence: who is late gets the next ones, and is not validated again."""

    def commit(self, own, request):
        shift = own.head.revision - request.expected_revision
        changes = [replace(each, revision=each.revision + shift) for each in request.changes]
        moved = replace(
            request, expected_revision=own.head.revision, changes=changes, expected_tip=own.head.tip
        )
        known = own.find(record.id for record in request.idempotency)
        if known:
            return Lost(own.head)
        try:
            own.append(moved, effects(changes), max(self.state.clock(), own.head.at))
        except ReplicaMismatch:
            return Lost(own.head)
        return Committed(own.head)

    patch.setattr(MemoryLog, "commit_to", commit)


@bug("P3, P4", "MemoryLog.commit_to")
def tip_ignored(patch):
    """Commits are accepted where the revision is right, whoever made it."""
    commit = MemoryLog.commit_to

    def commit_by_revision(self, own, request):
        return commit(self, own, replace(request, expected_tip=own.head.tip))

    patch.setattr(MemoryLog, "commit_to", commit_by_revision)


@bug("P4", "MemoryLog.settle_unknown")
def settled_without_a_fence(patch):
    """An unknown attempt is looked for in the log only; its statement may still arrive."""

    async def settle(self, cluster_id, request):
        own = self.state.of(cluster_id)
        for commit in own.commits:
            if commit.commit_id == request.commit_id:
                return Committed(Head(commit.last, commit.commit_id, commit.at))
        return Lost(own.head)

    patch.setattr(MemoryLog, "settle_unknown", settle)


@bug("P11", "MemoryLog.commit_to")
def duplicate_keys_overwritten(patch):
    """Records are written with ON CONFLICT DO NOTHING: the change goes in without its record."""

    def commit(self, own, request):
        known = {record.id for record in own.find(r.id for r in request.idempotency)}
        kept = [each for each in request.idempotency if each.id not in known]
        return original(self, own, replace(request, idempotency=kept))

    original = MemoryLog.commit_to
    patch.setattr(MemoryLog, "commit_to", commit)


@bug("P11", "ClusterState.record")
def records_apart_from_their_commit(patch):
    """The records of a commit are lost."""
    record = ClusterState.record

    def record_late(self, records, at):
        if len(self.changes) % 3:
            record(self, records, at)

    patch.setattr(ClusterState, "record", record_late)


@bug("A3", "ClusterState.append")
def commits_written_twice(patch):
    """A commit is written twice once in a while."""
    append = ClusterState.append

    def append_again(self, request, acting, at):
        append(self, request, acting, at)
        if request.last_revision % 17 == 0:
            self.changes.append(replace(request.changes[-1], revision=self.head.revision + 1))
            self.head = replace_head(self.head)

    def replace_head(head):
        return type(head)(head.revision + 1, head.tip, head.at)

    patch.setattr(ClusterState, "append", append_again)


@bug("A3", "ClusterState.append")
def a_row_not_updated(patch):
    """The last object of a larger commit reaches the log, but not its table."""
    append = ClusterState.append

    def append_all_but_one(self, request, acting, at):
        last = request.changes[-1]
        before = self.objects.get(last.key)
        append(self, request, acting, at)
        if len(request.changes) > 2 and before is not None and last.verb == "Put":
            self.objects[last.key] = before

    patch.setattr(ClusterState, "append", append_all_but_one)


@bug("P1", "MemoryLog.commit_to")
def time_runs_backwards(patch):
    """A commit's time is the clock's, which may be behind the commit before it."""
    commit = MemoryLog.commit_to

    def commit_by_the_clock(self, own, request):
        result = commit(self, own, request)
        if isinstance(result, Committed) and own.head.revision % 7 == 0:
            late = own.head.at.replace(year=2025)
            own.commits[-1] = replace(own.commits[-1], at=late)
        return result

    patch.setattr(MemoryLog, "commit_to", commit_by_the_clock)


@bug("A11", "MemoryObjects.list")
def pages_skip_a_row(patch):
    """A second page begins one row too late."""
    list_objects = MemoryObjects.list

    async def list_late(self, cluster_id, kind, *, after=None, limit, **options):
        page = await list_objects(
            self, cluster_id, kind, after=after, limit=limit + bool(after), **options
        )
        return ObjectPage(page.head, page.rows[1:]) if after else page

    patch.setattr(MemoryObjects, "list", list_late)


@bug("A11", "MemoryObjects.list")
def list_claims_a_later_head(patch):
    """A list says that it is newer than its rows."""
    list_objects = MemoryObjects.list

    async def list_ahead(self, cluster_id, kind, **options):
        page = await list_objects(self, cluster_id, kind, **options)
        ahead = type(page.head)(page.head.revision + 3, page.head.tip, page.head.at)
        return ObjectPage(ahead, page.rows)

    patch.setattr(MemoryObjects, "list", list_ahead)


@bug("P8, A12", "MemoryLog.head")
def reads_from_a_replica_database(patch):
    """The head that confirms answers is read from a standby that lags behind."""
    head = MemoryLog.head
    seen = {}

    async def lagging(self, cluster_id):
        present = await head(self, cluster_id)
        before = seen.get(id(self), present)
        seen[id(self)] = present
        return before

    patch.setattr(MemoryLog, "head", lagging)
