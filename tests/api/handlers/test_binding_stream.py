"""The stream of bindings over HTTP: which records it has, and that none is missing or twice."""

from typing import Any

import pytest

from service.model.core.errors import Compacted, HistoryReplaced
from service.model.log.commit import Change
from service.scheduler.watching import BindingSelection
from tests.api.conftest import MakeHarness
from tests.api.following import ended, stream, watched
from tests.api.harness import CLUSTER, Harness, pod, problem
from tests.seeds import chance

BINDINGS = f"{CLUSTER}/bindings"
LINES = {"accept": "application/x-ndjson"}
SHOP = f"{CLUSTER}/namespaces/shop/pods"
NEVER_TRIED = {"schedulerName": "other"}
"""Of pods that are to stay as they are."""
RECORD_BYTES_MAX = 160


async def records(harness: Harness, since: int = 0, **parameters: Any) -> list[dict[str, Any]]:
    """All records of what is in the log already; the bookmark after them is checked."""
    told = await ended(harness, since, LINES, path=BINDINGS, **parameters)
    assert told.headers[b"content-type"] == b"application/x-ndjson"
    *given, bookmark = told.lines
    head = await harness.store.log.head(await harness.store.clusters.find("default"))
    assert bookmark == {"revision": head.revision, "action": "Bookmark"}
    return given


def actions(given: list[dict[str, Any]]) -> list[tuple[str, str, str]]:
    return [(each["action"], each["name"], each["nodeName"]) for each in given]


async def put_on(harness: Harness, node: str | None, name: str = "p", **more: Any) -> None:
    """Say that a pod is on a node, as an orchestrator does that has seen it there."""
    spec = {"nodeName": node} if node else {}
    await harness.put(f"namespaces/shop/pods/{name}", pod(name, **spec, **NEVER_TRIED) | more)


async def report(harness: Harness, phase: str, reason: str | None = None) -> None:
    status = {"phase": phase} | ({"reason": reason} if reason else {})
    answer = await harness.client.patch(f"{SHOP}/p", json={"status": status})
    assert answer.status_code == 200, answer.text


async def test_the_life_of_a_pod_is_a_record_for_each_thing_to_act_on(over_each_store: Harness):
    harness = over_each_store
    await harness.put_node("node-7")
    placed = await harness.place(pod("p"))
    await harness.client.patch(f"{SHOP}/p", json={"metadata": {"labels": {"more": "text"}}})
    await report(harness, "Running")
    assert (await harness.client.post(f"{SHOP}/p/eviction")).status_code == 201
    await report(harness, "Unknown", "Stopping")
    await report(harness, "Failed", "Killed")
    await harness.client.delete(f"{SHOP}/p")

    given = await records(harness)

    why = {"reason": "EvictionByEvictionAPI"}
    about = {
        "namespace": "shop",
        "name": "p",
        "uid": placed["results"][0]["uid"],
        "nodeName": "node-7",
    }
    assert given == [
        {"revision": placed["revision"], "action": "Placed", **about},
        {"revision": placed["revision"] + 3, "action": "Terminating", **about, **why},
        {"revision": placed["revision"] + 5, "action": "Failed", **about, **why},
        {"revision": placed["revision"] + 6, "action": "Deleted", **about, **why},
    ]


async def test_the_reason_of_an_end_is_that_of_its_status(harness: Harness):
    await put_on(harness, "n1")
    await report(harness, "Succeeded", "Done")
    assert [(each["action"], each.get("reason")) for each in await records(harness)] == [
        ("Placed", None),
        ("Succeeded", "Done"),
    ]


async def test_pods_without_a_node_have_no_records(over_each_store: Harness):
    await put_on(over_each_store, None)
    await report(over_each_store, "Failed")
    await over_each_store.client.delete(f"{SHOP}/p")
    await over_each_store.put_node("n1")
    assert await records(over_each_store) == []


async def test_a_pod_that_arrives_placed_and_ended_or_marked_is_told_as_what_it_is(
    harness: Harness,
):
    await put_on(harness, "n1", "ended", status={"phase": "Succeeded"})
    marked = pod("marked", nodeName="n1", **NEVER_TRIED)
    marked["metadata"]["deletionTimestamp"] = "2026-05-04T08:00:00Z"
    await harness.put("namespaces/shop/pods/marked", marked)
    assert actions(await records(harness)) == [
        ("Succeeded", "ended", "n1"),
        ("Terminating", "marked", "n1"),
    ]


async def test_a_move_is_one_record_and_an_end_for_who_watches_the_node_that_is_left(
    over_each_store: Harness,
):
    harness = over_each_store
    for node in ("n1", "n1", "n2"):
        await put_on(harness, node)
    await put_on(harness, "n1", "other")
    await harness.put("namespaces/more/pods/p", pod("p", "more", nodeName="n2", **NEVER_TRIED))
    await harness.client.delete(f"{SHOP}/p")

    given = await records(harness)

    placed = ("Placed", "p", "n1")
    assert actions(given) == [
        placed,
        ("Placed", "p", "n2"),
        ("Placed", "other", "n1"),
        ("Placed", "p", "n2"),
        ("Deleted", "p", "n2"),
    ]
    assert [each.get("previousNodeName") for each in given] == [None, "n1", None, None, None]
    assert actions(await records(harness, nodeName="n1")) == [
        placed,
        ("Unplaced", "p", "n1"),
        ("Placed", "other", "n1"),
    ]
    of_shop = await records(harness, nodeName="n2", namespace="shop")
    assert of_shop == [
        each for each in given if (each["nodeName"], each["namespace"]) == ("n2", "shop")
    ]


async def test_who_watches_one_node_is_told_at_once(over_each_store: Harness):
    harness = over_each_store
    async with stream(harness, LINES, path=BINDINGS, nodeName="n1") as told:
        await told.until_lines(1)
        await put_on(harness, "n2", "elsewhere")
        await put_on(harness, "n1")
        await put_on(harness, "n2")
        await told.until_lines(3)
    bookmark, *given = told.lines
    assert bookmark["action"] == "Bookmark"
    assert actions(given) == [("Placed", "p", "n1"), ("Unplaced", "p", "n1")]


async def random_life(harness: Harness, seed: int, count: int) -> None:
    rng = chance(seed)
    for _ in range(count):
        path, roll = f"namespaces/shop/pods/p{rng.randrange(5)}", rng.random()
        stored = (await harness.client.get(f"{CLUSTER}/{path}")).status_code == 200
        if not stored or roll < 0.4:
            node = rng.choice([None, "n1", "n2", "n3"]) if not stored else rng.choice(["n1", "n2"])
            await put_on(harness, node, path[-2:])
        elif roll < 0.6:
            await harness.client.delete(f"{CLUSTER}/{path}")
        elif roll < 0.75:
            await harness.client.post(f"{CLUSTER}/{path}/eviction")
        else:
            phase = rng.choice(["Running", "Succeeded", "Failed"])
            await harness.client.patch(f"{CLUSTER}/{path}", json={"status": {"phase": phase}})


Seen = dict[str, tuple[str, bool, str]]
"""What one knows of each pod with a node: its node, whether it is to be stopped, its end if it has ended."""


def taken(state: Seen, record: dict[str, Any]) -> None:
    """Take a record in, as an orchestrator does."""
    name, node = record["name"], record["nodeName"]
    before = state.get(name)
    match record["action"]:
        case "Placed":
            is_back = before is not None and before[2] != ""  # It had ended, which was a mistake.
            assert before is None or is_back or before[0] == record["previousNodeName"] != node
            state[name] = (node, False, "")
        case "Terminating":
            state[name] = (node, True, "")
        case "Succeeded" | "Failed":
            state[name] = (node, False, record["action"])
        case _:
            assert before is not None
            assert before[0] == node
            del state[name]


async def stored(harness: Harness) -> Seen:
    items = (await harness.client.get(f"{CLUSTER}/pods")).json()["items"]
    state = Seen()
    for item in items:
        phase = item.get("status", {}).get("phase", "")
        ended = phase if phase in {"Succeeded", "Failed"} else ""
        marked = "deletionTimestamp" in item["metadata"] and not ended
        if node := item["spec"].get("nodeName"):
            state[item["metadata"]["name"]] = (node, marked, ended)
    return state


async def test_records_add_up_to_what_is_stored_wherever_a_stream_begins(over_each_store: Harness):
    harness = over_each_store
    state, since = Seen(), 0
    for seed in range(6):
        await random_life(harness, seed, 15)
        given = await records(harness, since)
        revisions = [each["revision"] for each in given]
        assert revisions == sorted(set(revisions))
        for each in given:
            taken(state, each)
        assert state == await stored(harness)
        since = (await harness.store.log.head(1)).revision

    whole = await records(harness)
    assert {each["action"] for each in whole} >= {"Placed", "Terminating", "Failed", "Deleted"}
    for begin in (each["revision"] for each in whole[::9]):
        assert await records(harness, begin) == [e for e in whole if e["revision"] > begin]


async def test_events_carry_the_same_records(over_each_store: Harness):
    await random_life(over_each_store, seed=3, count=12)

    *events, bookmark = await watched(over_each_store, 0, path=BINDINGS)

    assert [each.data for each in events] == await records(over_each_store)
    assert bookmark.type == "BOOKMARK"
    assert all(
        (each.id, each.type) == (str(each.data["revision"]), each.data["action"].upper())
        for each in events
    )


async def test_a_record_is_small_and_sent_as_it_comes(harness: Harness):
    await harness.put_node("ip-10-0-12-7")
    answer = await harness.place(pod("web-7d9c5b6f4-x2x9k"))
    asked = {**LINES, "accept-encoding": "zstd, gzip"}
    told = await ended(harness, answer["revision"] - 1, asked, path=BINDINGS)
    assert b"content-encoding" not in told.headers
    assert len(told.text.split("\n")[0]) <= RECORD_BYTES_MAX


@pytest.mark.parametrize(
    "parameters",
    [
        {"since": "1"},
        {"sinceRevision": "x"},
        {"nodeName": ""},
        {"kind": "Pod"},
        {"timeoutSeconds": "0"},
    ],
)
async def test_what_cannot_be_read_is_refused(harness: Harness, parameters: dict[str, str]):
    answer = await harness.client.get(BINDINGS, params=parameters)
    assert problem(answer, 400) == "MalformedRequest"


async def test_a_compacted_revision_is_gone_and_one_to_come_is_not_reached(
    over_each_store: Harness,
):
    for node in ("n1", "n2", "n1"):
        await put_on(over_each_store, node)
    await over_each_store.store.housekeeping.compact(1, keep_changes=1, keep_seconds=0)
    client = over_each_store.client
    assert problem(await client.get(f"{BINDINGS}?sinceRevision=1"), 410) == "Compacted"
    assert problem(await client.get(f"{BINDINGS}?sinceRevision=99"), 503) == "RevisionNotReached"
    assert problem(await client.get("/v1/clusters/none/bindings"), 404) == "NotFound"


async def test_a_problem_is_the_last_line(harness: Harness):
    async with stream(harness, LINES, path=BINDINGS) as told:
        await told.until_lines(1)
        harness.scheduler.watching.feeds[1].end(HistoryReplaced("Another history."))
        await told.task
    assert [each.get("action") for each in told.lines] == ["Bookmark", None]
    assert told.lines[-1]["code"] == "HistoryReplaced"


async def test_bookmarks_pass_over_what_makes_no_record(make_harness: MakeHarness):
    harness = await make_harness(watch_bookmark_seconds=0.02)
    async with stream(harness, LINES, path=BINDINGS, sinceRevision=1) as told:
        await put_on(harness, None)
        head = (await harness.store.log.head(1)).revision
        while told.lines[-1:] != [{"revision": head, "action": "Bookmark"}]:
            await told.until_lines(len(told.lines) + 1)
    assert {each["action"] for each in told.lines} == {"Bookmark"}


def test_what_the_log_does_not_say_is_not_guessed():
    """A server of an earlier version made the change."""
    change = Change(
        revision=7,
        verb="Put",
        kind="Pod",
        namespace="shop",
        name="p",
        uid="u",
        body=b"{}",
        node_name="n1",
    )
    with pytest.raises(Compacted):
        BindingSelection().record(change)
