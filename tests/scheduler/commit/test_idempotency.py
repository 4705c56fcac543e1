"""P11: a request with a key has one effect and one answer, whoever is asked how often."""

import asyncio

import msgspec
import pytest

from service.model.core.errors import IdempotencyKeyInProgress, IdempotencyKeyReused, PodDiffers
from service.scheduler.protocol.answers import RecordedAnswer
from service.scheduler.protocol.intents import DeleteObject, Idempotency
from tests.builders import node, pod
from tests.scheduler.world import world


def key(name="k", request=b"one"):
    return Idempotency(
        operation="placePods", key=name, request_hash=request, encode=msgspec.json.encode
    )


def ask(w, *pods, worker=0, idempotency=None, **options):
    intent = w.placing(*pods, **options)
    return w.schedulers[worker].submit("default", intent, idempotency or key())


async def test_p11_a_second_request_gets_the_first_answer():
    async with world(workers=2) as w:
        await w.apply(node("n1"))
        first = await ask(w, pod("a"))
        await w.ask(DeleteObject(kind="Pod", namespace="default", name="a"))
        for worker in (0, 1):
            again = await ask(w, pod("a"), worker=worker)
            assert isinstance(again, RecordedAnswer)
            assert again.answer == msgspec.json.encode(first)
        assert await w.nodes_of_pods() == {}


async def test_p11_a_key_that_stood_for_another_request_is_refused():
    async with world() as w:
        await w.apply(node("n1"))
        await ask(w, pod("a"))
        with pytest.raises(IdempotencyKeyReused):
            await ask(w, pod("b"), idempotency=key(request=b"two"))


async def test_p11_while_the_first_runs_the_second_is_told_so():
    async with world() as w:
        await w.apply(node("n1"))
        gate = w.close_gate()
        first = asyncio.create_task(ask(w, pod("a")))
        await w.others()
        with pytest.raises(IdempotencyKeyInProgress):
            await ask(w, pod("a"))
        with pytest.raises(IdempotencyKeyReused):
            await ask(w, pod("b"), idempotency=key(request=b"two"))
        w.open_gate(gate)
        assert (await first).results[0].outcome == "Placed"
        assert isinstance(await ask(w, pod("a")), RecordedAnswer)


async def test_p11_an_answer_without_changes_is_kept_too():
    async with world() as w:
        before = await w.head_revision()
        first = await ask(w, pod("a"))
        assert first.results[0].outcome == "Unschedulable"
        assert await w.head_revision() == before
        await w.apply(node("n1"))
        again = await ask(w, pod("a"))
        assert isinstance(again, RecordedAnswer)
        assert msgspec.json.decode(again.answer)["results"][0]["outcome"] == "Unschedulable"


async def test_p11_an_answer_without_changes_is_kept_also_if_it_was_decided_under_the_lock():
    async with world(workers=2) as w:
        await w.apply(node("n1"))
        await w.place(pod("warm"), worker=1, dry_run=True)
        record_answers, races = w.store.log.record_answers, iter("abc")

        async def outrun(*arguments):
            for name in races:
                await w.apply(node(name), worker=1)
                break
            return await record_answers(*arguments)

        w.store.log.record_answers = outrun
        first = await ask(w, pod("a").request(cpu="9999"))
        assert first.results[0].outcome == "Unschedulable"
        assert w.store.calls["commit_locked"] == 1
        again = await ask(w, pod("a").request(cpu="9999"), worker=1)
        assert isinstance(again, RecordedAnswer)


async def test_p11_dry_runs_and_errors_are_not_kept():
    async with world() as w:
        await w.apply(node("n1"))
        await ask(w, pod("a"), dry_run=True)
        assert (await ask(w, pod("a"))).results[0].outcome == "Placed"
        with pytest.raises(PodDiffers):
            await ask(w, pod("a").label(x="y"), idempotency=key("other"))
        await w.ask(DeleteObject(kind="Pod", namespace="default", name="a"))
        placed = await ask(w, pod("a").label(x="y"), idempotency=key("other"))
        assert placed.results[0].outcome == "Placed"


async def test_p11_a_request_that_is_refused_now_still_gets_its_first_answer():
    async with world() as w:
        await w.apply(node("n1"))
        first = await ask(w, pod("a"))
        await w.ask(DeleteObject(kind="Pod", namespace="default", name="a"))
        await w.place(pod("a").label(another="pod"))
        again = await ask(w, pod("a"))
        assert again.answer == msgspec.json.encode(first)


async def test_p11_two_processes_with_one_key_have_one_effect():
    async with world(workers=2) as w:
        await w.apply(node("n1"))
        await w.place(pod("warm"), worker=1)
        gate = w.close_gate()
        calls = [
            asyncio.create_task(ask(w, pod("a"), worker=0)),
            asyncio.create_task(ask(w, pod("a"), worker=1)),
        ]
        await w.others()
        w.open_gate(gate)
        answers = await asyncio.gather(*calls)
        recorded = [each for each in answers if isinstance(each, RecordedAnswer)]
        (own,) = (each for each in answers if not isinstance(each, RecordedAnswer))
        assert [each.answer for each in recorded] == [msgspec.json.encode(own)]
        assert own.results[0].outcome == "Placed"


async def test_p11_a_duplicate_in_a_batch_refuses_nobody_else():
    async with world(workers=2) as w:
        await w.apply(node("n1"))
        await w.place(pod("warm"), worker=1)
        gate = w.close_gate()
        held = asyncio.create_task(w.place(pod("held"), worker=1))
        await w.others()
        # Looked up before the other process answered, decided after it did.
        late = asyncio.create_task(ask(w, pod("a"), worker=1))
        beside = asyncio.create_task(w.place(pod("b"), worker=1))
        await w.others()
        w.store.gate = None
        first = await ask(w, pod("a"), worker=0)
        w.open_gate(gate)
        assert (await late).answer == msgspec.json.encode(first)
        assert (await beside).results[0].outcome == "Placed"
        assert (await held).results[0].outcome == "Placed"


async def test_p11_a_cancelled_caller_keeps_the_key_until_the_answer_is_recorded():
    async with world() as w:
        await w.apply(node("n1"))
        gate = w.close_gate()
        first = asyncio.create_task(ask(w, pod("a")))
        await w.others()
        first.cancel()
        await w.others()
        with pytest.raises(IdempotencyKeyInProgress):
            await ask(w, pod("a"))
        w.open_gate(gate)
        await w.others()
        assert isinstance(await ask(w, pod("a")), RecordedAnswer)
