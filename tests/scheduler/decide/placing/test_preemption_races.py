"""Two workers that preempt at the same time: nobody is evicted twice, or for nobody."""

import pytest

from service.model.core.errors import StorageUnavailable
from service.model.log.commit import Change
from tests.builders import PodBuilder, node, pod
from tests.scheduler.world import World, all_of, world


def urgent(name: str) -> PodBuilder:
    return pod(name).request(cpu="1").priority(1000)


async def full(w: World) -> None:
    """Two nodes without room, each with one pod that may be evicted."""
    for name in ("n1", "n2"):
        await w.apply(node(name).allocatable(cpu="1", memory="8Gi", pods="9"))
        await w.apply(pod(f"low-{name}").request(cpu="1").priority(0).on(name))
    for worker in range(len(w.schedulers)):
        await w.place(pod("warm-up").request(cpu="9"), dry_run=True, worker=worker)


async def preempting(w: World, *names: str) -> list[str]:
    """Two workers decide on one state, before either has committed; what becomes of their pods."""
    gate = w.close_gate()
    calls = [
        w.place(urgent(name), preemption="Evict", worker=worker)
        for worker, name in enumerate(names)
    ]

    async def open_when_both_have_decided() -> list[str]:
        while sum(bool(evicted_by(each.changes)) for each in w.store.commits_begun) < len(names):
            await w.others(1)
        w.open_gate(gate)
        return []

    *answers, _ = await all_of(*calls, open_when_both_have_decided())
    return [each.results[0].outcome for each in answers]


def evicted_by(changes: list[Change] | tuple[Change, ...]) -> list[str]:
    return [each.name for each in changes if b"PreemptionByScheduler" in each.body]


async def nomination(w: World, name: str) -> str | None:
    stored = await w.stored("Pod", "default", name)
    assert stored is not None
    node_name: str | None = stored["status"].get("nominatedNodeName")
    return node_name


async def test_one_pod_that_two_workers_preempt_for_evicts_once() -> None:
    async with world(workers=2) as w:
        await full(w)
        assert await preempting(w, "urgent", "urgent") == ["Queued", "Queued"]
        [victim] = evicted_by(w.log())
        assert victim == f"low-{await nomination(w, 'urgent')}"


async def test_two_pods_have_one_victim_each_and_wait_on_different_nodes() -> None:
    async with world(workers=2) as w:
        await full(w)
        assert await preempting(w, "urgent-1", "urgent-2") == ["Queued", "Queued"]
        nodes = [await nomination(w, name) for name in ("urgent-1", "urgent-2")]
        assert sorted(evicted_by(w.log())) == sorted(f"low-{name}" for name in nodes)
        assert len(set(nodes)) == 2


async def test_a_commit_whose_answer_is_lost_evicts_once_and_nominates() -> None:
    async with world() as w:
        await full(w)
        w.store.trouble = ["lose the answer"]
        answer = await w.place(urgent("urgent"), preemption="Evict")
        assert answer.results[0].outcome == "Queued"
        assert evicted_by(w.log()) == [f"low-{await nomination(w, 'urgent')}"]
        [preempting_commit] = [each for each in w.store.commits_begun if evicted_by(each.changes)]
        assert "urgent" in [each.name for each in preempting_commit.changes]


async def test_a_commit_that_fails_evicts_nobody_and_nominates_nothing() -> None:
    async with world() as w:
        await full(w)
        w.store.trouble = ["refuse"]
        with pytest.raises(StorageUnavailable):
            await w.place(urgent("urgent"), preemption="Evict")
        assert evicted_by(w.log()) == []
        assert await w.stored("Pod", "default", "urgent") is None
