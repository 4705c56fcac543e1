"""A stop signal ends what runs on an event loop, whatever the loop is about to do."""

import asyncio
import signal
import sys
import weakref

import pytest

from service.server.signals import (
    STOP_SIGNALS,
    StopSignal,
    raised_stop_signals,
    restored_stop_handlers,
    run_until_stopped,
)


@pytest.fixture(autouse=True)
def raising():
    with restored_stop_handlers(), raised_stop_signals():
        yield


async def hop():
    """Let others run, and wait for what one of them sets."""
    answer = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_soon(answer.set_result, None)
    await answer


async def work_of_many_steps():
    await asyncio.gather(hop(), asyncio.create_task(hop()))
    await asyncio.wait_for(hop(), None)


def callbacks_of_the_work(monkeypatch, call, before=None):
    """Run the work, and call this before one of the loop's callbacks; how many callbacks there were."""
    count = 0
    real = asyncio.Handle._run  # noqa: SLF001 - asyncio has no other place to count its steps

    def run(handle):
        nonlocal count
        count += 1
        if count == before:
            call()
        real(handle)

    with monkeypatch.context() as patch:
        patch.setattr(asyncio.Handle, "_run", run)
        run_until_stopped(work_of_many_steps())
    return count


def test_it_is_heard_before_each_callback_and_nothing_waits_for_ever(monkeypatch):
    callbacks = callbacks_of_the_work(monkeypatch, None)
    assert callbacks > 10

    for before in range(1, callbacks + 1):
        with raised_stop_signals(), pytest.raises(StopSignal) as stopped:
            callbacks_of_the_work(monkeypatch, lambda: signal.raise_signal(signal.SIGINT), before)
        assert stopped.value.number == signal.SIGINT


def test_work_that_is_done_when_it_comes_is_told_as_stopped_too():
    async def work():
        signal.raise_signal(signal.SIGTERM)

    with pytest.raises(StopSignal) as stopped:
        run_until_stopped(work())
    assert stopped.value.number == signal.SIGTERM


def test_after_work_that_was_not_stopped_the_next_one_is_raised():
    async def work():
        return 42

    assert run_until_stopped(work()) == 42
    with pytest.raises(StopSignal):
        signal.raise_signal(signal.SIGINT)


def test_afterwards_the_handlers_are_what_they_were_unless_a_stop_signal_came():
    before = [signal.getsignal(number) for number in STOP_SIGNALS]

    with raised_stop_signals():
        assert [signal.getsignal(number) for number in STOP_SIGNALS] != before
    assert [signal.getsignal(number) for number in STOP_SIGNALS] == before

    with pytest.raises(StopSignal), raised_stop_signals():
        signal.raise_signal(signal.SIGTERM)
    assert {signal.getsignal(number) for number in STOP_SIGNALS} == {signal.SIG_IGN}


def test_what_python_drops_as_it_is_raised_in_a_callback_of_a_weak_reference_is_noted(monkeypatch):
    class Referent:
        pass

    monkeypatch.setattr(sys, "unraisablehook", lambda _unraisable: None)
    with raised_stop_signals() as request:
        request.raise_if_made()
        referent = Referent()
        reference = weakref.ref(referent, lambda _: signal.raise_signal(signal.SIGTERM))
        del referent
        assert reference() is None

        with pytest.raises(StopSignal) as stopped:
            request.raise_if_made()
    assert stopped.value.number == signal.SIGTERM
