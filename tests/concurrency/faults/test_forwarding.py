"""P19 on real processes: workers hand requests to one of them, which stands still or is killed."""

import asyncio
import re
import signal
import time

import httpx
import pytest

from tests.concurrency.faults.site import site
from tests.concurrency.racing import CALLERS, try_out, workers_of
from tests.processes import PLAIN_HTTP
from tests.waiting import eventually

STOOD_STILL_SECONDS = 0.3
"""Nothing tells that requests are on their way to a worker that stands still; some are, in so long."""


def once_forwarded(url):
    """What came of requests as soon as one was forwarded: the second worker may come late."""

    def told():
        try_out(url)
        found = forwarded(url)
        return found.get("answered") and found

    return eventually(told)


def forwarded(url):
    """Requests that were forwarded, by what came of it."""
    text = httpx.get(f"{url}/metrics", **PLAIN_HTTP).text
    found = re.findall(r'^moorage_forwarded_total\{outcome="(\w+)"\} (\S+)$', text, re.MULTILINE)
    return {outcome: float(value) for outcome, value in found}


@pytest.mark.slow
async def test_p19_workers_that_stand_still_or_are_killed_cost_no_answer_and_double_nothing(
    database_url,
):
    outcomes = {}

    async def upset(made):
        """Each in turn, so the one that decides is among them."""
        outcomes.update(await asyncio.to_thread(once_forwarded, made.servers[0].url))
        for worker in workers_of(made.servers[0]):
            worker.send_signal(signal.SIGSTOP)
            await asyncio.sleep(STOOD_STILL_SECONDS)
            worker.send_signal(signal.SIGCONT)
            await made.acknowledged(time.monotonic())
            worker.kill()
            await made.acknowledged(time.monotonic())

    async with site(servers=1, workers=2, url=database_url) as made:
        calls = await made.place_while(upset)
    assert outcomes["answered"] > 0
    assert sum(each.outcome == "ok" for each in calls) > CALLERS
    answered = {each.operation for each in calls if each.outcome == "ok"}
    assert answered == {each.operation for each in calls}
