"""Decides and commits a batch with the head locked, for a worker that lost too many races."""

from service.model.log.commit import CommitRequest, Diverged, LogPage
from service.model.log.results import Behind, CommitResult, Committed
from service.scheduler.commit.committer import Committer
from service.scheduler.commit.decider import Decider, TakeTicket
from service.scheduler.commit.request_batches import Batch
from service.scheduler.replica.follower import Follower


class NotCaughtUp(Exception):  # noqa: N818 - a finding, not a failure
    """More of the log is unread than the time under the lock allows."""


class CommitUnderLock:
    """Locks the head, catches up with the log, decides for at most 50 ms, and commits (protocol rule P6).

    `batch` is set once requests have been decided.
    """

    def __init__(
        self, follower: Follower, decider: Decider, committer: Committer, take: TakeTicket
    ) -> None:
        self._follower = follower
        self._decider = decider
        self._committer = committer
        self._take = take
        self.batch: Batch | None = None

    async def run(self) -> CommitResult:
        """Lock the head, and decide and commit one batch.

        Raises the errors of `Committer.publish`, or NotCaughtUp before deciding anything.
        """
        head = self._follower.head
        assert head is not None
        result = await self._committer.publish_locked(head, self._decide)
        if isinstance(result, Behind | Diverged):
            raise NotCaughtUp
        if result is not None:
            return result
        assert self._follower.head is not None
        if self.batch is not None and self.batch.records:
            # The answer to a request with an idempotency key has to be stored before it is
            # released, even if the request changed nothing (P11).
            return await self._committer.publish(self.batch, self._follower.head)
        # There is nothing to commit, and no other worker could change the locked head.
        return Committed(self._follower.head)

    def _decide(self, page: LogPage) -> CommitRequest | None:
        self._follower.apply(page)
        replica, head = self._follower.replica, self._follower.head
        assert replica is not None
        assert head is not None
        batch = self._decider.batch(replica)
        self._decider.decide_locked(replica, batch, self._take)
        self.batch = batch
        return self._committer.request(batch, head) if batch.changes else None
