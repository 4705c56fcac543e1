"""Mistakes in handing requests from worker to worker."""

from service.api.forwarding import policy
from service.api.forwarding.policy import AnswerLost
from service.model.errors import StorageUnavailable
from tests.concurrency.planted.registry import bug


@bug("P19, P4, A7", "handing.hand_over")
def lost_answer_decided_again_without_a_key(patch):
    """A request whose answer got lost is decided again, though nothing tells whether it was done."""
    hand_over = policy.hand_over

    async def hand_over_again(peers, holder, request, repeat, here):
        return await hand_over(peers, holder, request, "Safe", here)

    patch.setattr(policy, "hand_over", hand_over_again)


@bug("P19, A7", "handing.hand_over")
def lost_answer_told_as_refused(patch):
    """A request whose answer got lost is told as definitely not done."""

    async def hand_over(peers, holder, request, repeat, here):
        try:
            return await peers.ask(holder, request, repeat)
        except AnswerLost:
            raise StorageUnavailable("No.") from None
        except policy.Unreachable:
            return await here()

    patch.setattr(policy, "hand_over", hand_over)
