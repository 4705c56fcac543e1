"""One batch decided and committed with the head locked, by a worker that lost too many races."""

from service.model.log import (
    Behind,
    CommitRequest,
    CommitResult,
    Committed,
    Diverged,
    LogPage,
)
from service.scheduler.commit.batch import Batch
from service.scheduler.commit.committer import Committer
from service.scheduler.commit.decider import Decider, TakeTicket
from service.scheduler.replica.follower import Follower
from service.scheduler.replica.replica import Mark


class NotCaughtUp(Exception):  # noqa: N818 - a finding, not a failure
    """The replica has to read more of the log than may be read under the lock."""


class LockedRound:
    """P6: lock the head, catch up, decide for at most 50 ms, commit.

    `batch` and `end` are set once something was decided.
    """

    def __init__(
        self, follower: Follower, decider: Decider, committer: Committer, take: TakeTicket
    ) -> None:
        self._follower = follower
        self._decider = decider
        self._committer = committer
        self._take = take
        self.batch: Batch | None = None
        self.end: Mark | None = None

    async def run(self) -> CommitResult:
        """Raises what `Committer.publish` raises, and NotCaughtUp before anything is decided."""
        head = self._follower.head
        assert head is not None
        result = await self._committer.publish_locked(head, self._decide)
        if isinstance(result, Behind | Diverged):
            raise NotCaughtUp
        if result is not None:
            return result
        assert self._follower.head is not None
        if self.batch is not None and self.batch.records:
            # Keyed answers that changed nothing have to be kept before they are given out (P11).
            return await self._committer.publish(self.batch, self._follower.head)
        # Nothing to commit: while the head was locked nobody else could change it either.
        return Committed(self._follower.head)

    def _decide(self, page: LogPage) -> CommitRequest | None:
        self._follower.apply(page)
        replica, head = self._follower.replica, self._follower.head
        assert replica is not None
        assert head is not None
        self.batch = self._decider.batch(replica)
        self._decider.decide_locked(replica, self.batch, self._take)
        self.end = replica.mark()
        return self._committer.request(self.batch, head) if self.batch.changes else None
