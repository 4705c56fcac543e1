"""Mistakes in forwarding requests from worker to worker."""

from service.api.forwarding import retry
from service.api.forwarding.retry import AnswerLost
from service.model.core.errors import StorageUnavailable
from tests.concurrency.planted.registry import bug


@bug("P19, P4, A7", "retry.forward")
def lost_answer_decided_again_without_a_key(patch):
    """A request whose answer got lost is decided again, though nothing tells whether it was done."""
    forward = retry.forward

    async def forward_again(peers, holder, request, repeat, here):
        return await forward(peers, holder, request, "Safe", here)

    patch.setattr(retry, "forward", forward_again)


@bug("P19, A7", "retry.forward")
def lost_answer_told_as_refused(patch):
    """A request whose answer got lost is told as definitely not done."""

    async def forward(peers, holder, request, repeat, here):
        try:
            return await peers.ask(holder, request, repeat)
        except AnswerLost:
            raise StorageUnavailable("No.") from None
        except retry.Unreachable:
            return await here()

    patch.setattr(retry, "forward", forward)
