"""What the processes of a server do with stop signals that come at a bad moment."""

import asyncio
import signal
import threading

import pytest

from service.server.signals import restored_stop_handlers
from service.server.worker_signals import Alarm, WorkerLoop


@pytest.fixture
def loop():
    """A worker's, in this thread; the handlers of before are back afterwards."""
    with restored_stop_handlers():
        made = WorkerLoop()
        yield made
        made.close()


def test_a_worker_is_told_once_however_many_stop_signals_come(loop):
    told = []

    async def stop_twice():
        for _ in range(2):
            signal.raise_signal(signal.SIGTERM)
            await asyncio.sleep(0)
        await asyncio.sleep(0)

    loop.add_signal_handler(signal.SIGTERM, told.append, "stop")
    loop.run_until_complete(stop_twice())

    assert told == ["stop"]


def test_a_stop_signal_between_two_runs_of_the_loop_is_not_lost(loop):
    async def started():
        pass

    async def told(event):
        await event.wait()
        return True

    event = asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, event.set)
    loop.run_until_complete(started())
    signal.raise_signal(signal.SIGTERM)

    assert loop.run_until_complete(told(event))


def test_a_worker_leaves_ctrl_c_to_its_supervisor(loop):
    before = signal.getsignal(signal.SIGINT)

    loop.add_signal_handler(signal.SIGINT, pytest.fail)

    assert signal.getsignal(signal.SIGINT) is before


def test_an_alarm_wakes_who_waits_and_stays_until_it_is_cleared():
    alarm = Alarm()
    threading.Thread(target=alarm.set).start()

    assert alarm.wait()
    assert alarm.wait()

    alarm.clear()
    assert not alarm.wait(0)
