"""P19 on real processes: workers hand requests to one of them, which stands still or is killed."""

import asyncio
import re
import signal
import time

import httpx

from tests.concurrency.faults.site import site
from tests.concurrency.racing import CALLERS, try_out, workers_of

ANSWERED_SECONDS_MAX = 30.0


def once_handed_over(url):
    """What came of requests as soon as one was handed over: the second worker may come late."""
    deadline = time.monotonic() + ANSWERED_SECONDS_MAX
    while "answered" not in handed_over(url) and time.monotonic() < deadline:
        try_out(url)
    return handed_over(url)


def handed_over(url):
    """Requests handed over, by what came of it."""
    text = httpx.get(f"{url}/metrics", timeout=30).text
    found = re.findall(r'^moorage_handed_over_total\{outcome="(\w+)"\} (\S+)$', text, re.MULTILINE)
    return {outcome: float(value) for outcome, value in found}


async def test_p19_workers_that_stand_still_or_are_killed_cost_no_answer_and_double_nothing():
    outcomes = {}

    async def upset(made):
        """Each in turn, so the one that decides is among them."""
        outcomes.update(await asyncio.to_thread(once_handed_over, made.servers[0].url))
        for worker in workers_of(made.servers[0]):
            worker.send_signal(signal.SIGSTOP)
            await asyncio.sleep(1.5)
            worker.send_signal(signal.SIGCONT)
            await asyncio.sleep(0.2)
            worker.kill()
            await asyncio.sleep(0.5)

    async with site(servers=1, workers=2) as made:
        calls = await made.place_while(upset)
    assert outcomes["answered"] > 0
    assert sum(each.outcome == "ok" for each in calls) > CALLERS
    answered = {each.operation for each in calls if each.outcome == "ok"}
    assert answered == {each.operation for each in calls}
