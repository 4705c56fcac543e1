"""Pods of groups in several clusters whose nodes are reserved: what others may do to them meanwhile."""

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest

from service.model.core.errors import InvalidManifest
from service.model.core.metadata import REQUIRED_NODE
from service.scheduler.decide.placing.pod_placement import RESERVED_REASON
from service.scheduler.protocol.intents import (
    AdvanceGroup,
    DeleteObject,
    EvictPod,
    PutConfig,
    PutObject,
)
from service.scheduler.protocol.placements import PlacementAnswer
from service.scheduler.protocol.split_groups import STORED_MEANWHILE, GroupStep, ReservationTerms
from tests.builders import node, pod
from tests.scheduler.world import World, all_of, world


@pytest.fixture
async def w() -> AsyncIterator[World]:
    """A run with one node."""
    async with world() as made:
        await made.apply(node("n1").allocatable(cpu="4", pods="10"))
        yield made


def reserving(w: World, *pods: Any) -> Any:
    """The intent to reserve nodes for pods of the group `g`."""
    terms = ReservationTerms(
        group="g",
        home="default",
        until=w.clock.now() + timedelta(hours=1),
        clusters=("default", "other"),
    )
    return w.placing(*pods, all_or_nothing=True, reserving=terms, without_groups=True)


async def reserve(w: World, *pods: Any) -> PlacementAnswer:
    answer = await w.ask(reserving(w, *pods))
    assert isinstance(answer, PlacementAnswer)
    return answer


async def take(w: World, step: GroupStep) -> None:
    await w.ask(AdvanceGroup(group="g", step=step))


def job() -> Any:
    return pod("job").request(cpu="1")


def changed(**spec: Any) -> Any:
    made = job()
    made["spec"].update(spec)
    return made


def bound_for(node_name: str) -> Any:
    made = job()
    made["metadata"]["annotations"] = {REQUIRED_NODE: node_name}
    return made


@pytest.mark.parametrize(
    ("manifest", "fields"),
    [
        (changed(nodeSelector={"no": "such"}), ["spec.nodeSelector"]),
        (changed(schedulingGates=[{"name": "x/y"}]), ["spec.schedulingGates"]),
        (
            changed(volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]),
            ["spec.volumes"],
        ),
        (bound_for("n2"), ["spec.nodeName"]),
    ],
)
async def test_a_reserved_pod_may_change_only_as_a_placed_one(
    w: World, manifest: Any, fields: list[str]
) -> None:
    await reserve(w, job())
    before = await w.stored("Pod", "default", "job")
    with pytest.raises(InvalidManifest) as refused:
        await w.ask(PutObject(manifest=w.parsed(manifest)[0]))
    assert [each.field for each in refused.value.errors] == fields
    assert await w.stored("Pod", "default", "job") == before
    await w.apply(job().label(tier="new"))
    await take(w, "Commit")
    placed = await w.stored("Pod", "default", "job")
    assert placed is not None
    assert placed["spec"]["nodeName"] == "n1"
    assert placed["metadata"]["labels"]["tier"] == "new"


async def test_a_pod_that_is_made_again_has_no_reservation(w: World) -> None:
    """Its uid may be that of the pod before, for which the node was reserved."""
    (reserved,) = (await reserve(w, job())).results
    await w.ask(DeleteObject(kind="Pod", namespace="default", name="job"))
    assert await w.stored("GroupReservation", "default", "job") is None
    again = changed(nodeSelector={"no": "such"})
    again["metadata"]["uid"] = reserved.uid
    await w.apply(again)
    await take(w, "Commit")
    assert await w.nodes_of_pods() == {"job": None}


async def test_a_pod_that_takes_the_place_of_a_reserved_one_has_no_reservation(w: World) -> None:
    await reserve(w, job())
    other = changed(nodeSelector={"no": "such"})
    other["metadata"]["uid"] = "another"
    await w.apply(other)
    assert await w.stored("GroupReservation", "default", "job") is None


async def test_a_reserved_pod_that_is_evicted_is_bound_and_terminating(w: World) -> None:
    """Whoever confirms what has stopped looks at the pods of nodes."""
    await reserve(w, job())
    await w.ask(EvictPod(namespace="default", name="job"))
    await take(w, "Commit")
    placed = await w.stored("Pod", "default", "job")
    assert placed is not None
    assert placed["spec"]["nodeName"] == "n1"
    assert "deletionTimestamp" in placed["metadata"]


async def test_a_reserved_pod_that_has_ended_gets_no_node(w: World) -> None:
    await reserve(w, job())
    ended = job()
    ended["status"] = {"phase": "Succeeded"}
    await w.apply(ended)
    await take(w, "Commit")
    assert await w.nodes_of_pods() == {"job": None}
    assert await w.stored("GroupReservation", "default", "job") is None


@pytest.mark.parametrize("is_placed", [False, True])
async def test_a_pod_that_somebody_else_has_stored_is_not_reserved(
    w: World, *, is_placed: bool
) -> None:
    """It would be deleted if the group was given up."""
    if is_placed:
        await w.place(job())
    else:
        await w.ask(PutConfig(config={"placePendingPods": False}))
        await w.apply(job())
    before = await w.stored("Pod", "default", "job")
    answer = await reserve(w, job(), pod("other").request(cpu="1"))
    assert [(each.outcome, each.reason) for each in answer.results] == [
        ("AlreadyPlaced", None) if is_placed else ("Denied", STORED_MEANWHILE),
        ("GroupRefused", None),
    ]
    assert await w.stored("GroupReservation", "default", "other") is None
    assert await w.stored("SplitGroup", "", "g") is None
    await take(w, "Release")
    assert await w.stored("Pod", "default", "job") == before


async def test_a_pod_that_is_stored_in_the_same_batch_is_not_reserved(w: World) -> None:
    await w.ask(PutConfig(config={"placePendingPods": False}))
    _, answer = await all_of(w.apply(job()), reserve(w, job()))
    assert [(each.outcome, each.reason) for each in answer.results] == [
        ("Denied", STORED_MEANWHILE)
    ]
    await take(w, "Release")
    assert await w.nodes_of_pods() == {"job": None}


async def test_what_was_reserved_before_is_told_as_reserved(w: World) -> None:
    await reserve(w, job())
    (again,) = (await reserve(w, job())).results
    assert (again.outcome, again.reason) == ("Denied", RESERVED_REASON)
