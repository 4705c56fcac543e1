"""A cluster that is made again under its name: nobody takes its revisions for those of the one before."""

from typing import Any

import pytest

from tests.api.following import stream
from tests.api.harness import Harness, node, pod, problem

OTHER = "/v1/clusters/other"
STREAMS = ("watch", "bindings")
SSE = {"accept": "text/event-stream"}
LINES = {"accept": "application/x-ndjson"}
PODS = f"{OTHER}/namespaces/shop/pods"


async def made(harness: Harness) -> int:
    """The revision of a new cluster, with the name of one that may have been deleted."""
    answer = await harness.client.put(OTHER, json={"config": {"placePendingPods": False}})
    assert answer.status_code == 201, answer.text
    assert answer.json()["revision"] == int(answer.headers["moorage-revision"])
    return int(answer.headers["moorage-revision"])


async def filled(harness: Harness, pods: int) -> int:
    """The revision of the cluster with a node and some pods on it."""
    await harness.client.put(f"{OTHER}/nodes/n1", json=node("n1"))
    for number in range(pods):
        manifest = pod(f"p{number}", nodeName="n1")
        answer = await harness.client.put(f"{PODS}/p{number}", json=manifest)
        assert answer.status_code == 201, answer.text
    return int((await harness.client.get(OTHER)).headers["moorage-revision"])


async def deleted(harness: Harness) -> None:
    assert (await harness.client.delete(OTHER)).status_code == 200


async def refusal(harness: Harness, path: str, headers: dict[str, str] | None = None) -> str:
    return problem(await harness.client.get(f"{OTHER}/{path}", headers=headers), 410)


async def test_no_revision_comes_twice(over_each_store: Harness) -> None:
    assert await made(over_each_store) == 1
    before = 1
    for _ in range(10):
        last = await filled(over_each_store, 2)
        assert last > before
        await deleted(over_each_store)
        before = await made(over_each_store)
        assert before > last + 1


@pytest.mark.parametrize("length", ["shorter", "longer"])
async def test_whoever_stands_in_the_log_of_the_one_before_lists_again(
    over_each_store: Harness, length: str
) -> None:
    """Neither is an old position one to come, nor does a stream begin in the middle of the new log."""
    harness = over_each_store
    await made(harness)
    last = await filled(harness, 3)
    await deleted(harness)
    first = await made(harness)
    if length == "longer":
        await filled(harness, last)
    for position in (0, 1, last - 1, last):
        for each in STREAMS:
            path, told = f"{each}?timeoutSeconds=1", {"last-event-id": str(position)}
            assert await refusal(harness, f"{path}&sinceRevision={position}") == "Compacted"
            assert await refusal(harness, path, told) == "Compacted"
        for path in ("nodes", "nodes/n1", "namespaces/shop/pods", "namespaces/shop/pods/p0"):
            assert await refusal(harness, f"{path}?revision={position}") == "Compacted"
    async with stream(harness, SSE, path=f"{OTHER}/watch", sinceRevision=first - 1) as watch:
        (begin, *_) = await watch.until(1)
    assert (begin.type, begin.id) == ("ADDED", str(first))


async def test_entity_tags_of_the_one_before_match_nothing(over_each_store: Harness) -> None:
    harness = over_each_store
    await made(harness)
    await filled(harness, 1)
    tags = {
        path: (await harness.client.get(path)).headers["etag"]
        for path in (OTHER, f"{OTHER}/nodes/n1", f"{PODS}/p0")
    }
    await deleted(harness)
    await made(harness)
    await filled(harness, 1)
    for path, tag in tags.items():
        stale = await harness.client.delete(path, headers={"if-match": tag})
        assert problem(stale, 412) == "PreconditionFailed"
        read = await harness.client.get(path, headers={"if-none-match": tag})
        assert read.status_code == 200


async def test_pages_of_the_one_before_do_not_go_on_unnoticed(over_each_store: Harness) -> None:
    """Those of a revision are gone; those of the present keep their revision, from which no watch begins."""
    harness = over_each_store
    await made(harness)
    last = await filled(harness, 3)
    path = f"{PODS}?limit=1"
    past = (await harness.client.get(f"{path}&revision={last}")).json()["metadata"]["continue"]
    present = (await harness.client.get(path)).json()["metadata"]["continue"]
    await deleted(harness)
    await made(harness)
    await filled(harness, 3)
    gone = await harness.client.get(f"{path}&continue={past}")
    assert problem(gone, 410) == "Compacted"
    page = (await harness.client.get(f"{path}&continue={present}")).json()["metadata"]
    assert page["resourceVersion"] == str(last)
    assert await refusal(harness, f"watch?sinceRevision={last}") == "Compacted"


@pytest.mark.parametrize("parameters", [{}, {"nodeName": "n1", "kind": "Pod"}], ids=["all", "node"])
async def test_streams_of_the_one_before_end_with_its_name(
    over_each_store: Harness, parameters: dict[str, Any]
) -> None:
    harness = over_each_store
    await made(harness)
    await filled(harness, 1)
    bindings = {name: value for name, value in parameters.items() if name != "kind"}
    async with (
        stream(harness, path=f"{OTHER}/watch", **parameters) as watch,
        stream(harness, LINES, path=f"{OTHER}/bindings", **bindings) as lines,
    ):
        await lines.until_lines(1)
        await deleted(harness)
        await made(harness)
        await filled(harness, 1)
        await watch.task
        await lines.task
    for told in (watch.events[-1].data, lines.lines[-1]):
        assert (told["code"], told["detail"]) == (
            "NotFound",
            "There is no cluster 'other' any more.",
        )
    assert len(lines.lines) == 2
