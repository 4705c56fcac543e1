"""Real worker processes over one PostgreSQL: what groups E, J, N and O say of races and outages.

The letters and numbers are rows of `docs/requirements.md`. Nothing here hopes for a race: a lock on
the head holds up all commits until each worker has decided, so that all but one have to decide again.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Iterator
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path
from typing import Any

import asyncpg
import httpx
import pytest

from service.server.local_server import temporary_folder
from service.store.db.connector import data_source_name
from service.store.embedded import EmbeddedPostgres
from tests.api.harness import CLUSTER, Harness, problem
from tests.api.live import live_server
from tests.api.story import path_of, tell
from tests.builders import PodBuilder, matching, namespace, node, pod, requirement
from tests.processes import PLAIN_HTTP, copy_data
from tests.waiting import once

HOST = "kubernetes.io/hostname"
WAITING = """SELECT count(*) FROM pg_stat_activity
    WHERE wait_event_type = 'Lock' AND datname = current_database()"""
Answer = dict[str, Any]


@pytest.fixture(scope="module")
def server_urls(module_database_url: str) -> Iterator[list[str]]:
    """Two worker processes, which share nothing but the database."""
    with ExitStack() as stack:
        yield [stack.enter_context(live_server(module_database_url)) for _ in range(2)]


@pytest.fixture
async def workers(server_urls: list[str]) -> AsyncIterator[list[Harness]]:
    """A way to each worker, and a cluster that is deleted when the test is over."""
    async with AsyncExitStack() as stack:
        clients = [
            await stack.enter_async_context(httpx.AsyncClient(base_url=url, **PLAIN_HTTP))
            for url in server_urls
        ]
        (await clients[0].put(CLUSTER, json={"config": {}})).raise_for_status()
        yield [over(client) for client in clients]
        await clients[0].delete(CLUSTER)


def over(client: httpx.AsyncClient) -> Harness:
    """What tests say to a server of which they have nothing but the address."""
    return Harness(app=None, client=client, store=None, scheduler=None, budget=None)


async def decided_at_once(url: str, *requests: Awaitable[Answer]) -> list[Answer]:
    """The answers to requests that are all decided before any is committed, in their order."""
    holding, looking = [await asyncpg.connect(data_source_name(url)) for _ in range(2)]

    async def is_waiting(count: int) -> bool:
        return bool(await looking.fetchval(WAITING) == count)

    async with asyncio.TaskGroup() as tasks:
        asked = []
        async with holding.transaction():
            await holding.execute("SELECT FROM head FOR UPDATE")
            for number, request in enumerate(requests, start=1):
                asked.append(tasks.create_task(_answer(request)))
                await once(lambda count=number: is_waiting(count))
    await asyncio.gather(holding.close(), looking.close())
    return [each.result() for each in asked]


async def _answer(request: Awaitable[Answer]) -> Answer:
    return await request


def node_names(answers: list[Answer]) -> list[str]:
    return [result["nodeName"] for answer in answers for result in answer["results"]]


# Group E: races


async def test_two_workers_place_first_pods_in_one_domain(
    workers: list[Harness], module_database_url: str
) -> None:
    """E04: each alone would be placed in a zone of its own; the second one follows the first."""
    await tell(workers[0], *(node(zone).label(zone=zone) for zone in ("z0", "z1")))
    own = pod("s").label(service="S").require_affinity("zone", matching(service="S"))
    answers = await decided_at_once(
        module_database_url,
        *(
            worker.place(own.named(f"s-{zone}").prefer_node(100, requirement("zone", "In", zone)))
            for worker, zone in zip(workers, ("z0", "z1"), strict=True)
        ),
    )
    assert [each["attempts"] for each in answers] == [1, 2]
    assert node_names(answers) == ["z0", "z0"]


async def test_two_workers_exempt_one_pod_of_a_controller(
    workers: list[Harness], module_database_url: str
) -> None:
    """E06: both decide while none is placed, and each alone would be exempt."""
    await tell(workers[0], *(node(zone).label(zone=zone) for zone in ("z0", "z1")))
    own = pod("s").owned_by("ReplicaSet", "r")
    own = own.require_affinity("zone", matching(app="web"), firstPodExempt=True)
    answers = await decided_at_once(
        module_database_url,
        *(worker.place(own.named(f"s-{number}")) for number, worker in enumerate(workers)),
    )
    assert [each["attempts"] for each in answers] == [1, 2]
    assert [name is None for name in node_names(answers)] == [False, True]


@pytest.mark.parametrize(
    "rule",
    [
        pod("s").label(service="S").require_anti_affinity(HOST, matching(service="S")),
        pod("s").label(service="S").spread(1, HOST),
    ],
    ids=["anti-affinity", "spread"],
)
async def test_two_workers_break_no_rule_between_their_pods(
    workers: list[Harness], module_database_url: str, rule: PodBuilder
) -> None:
    """E05: both pods want the same node, and both workers decide while it is free."""
    await tell(workers[0], *(node(name).label({HOST: name}) for name in ("n1", "n2")))
    wanting = rule.prefer_node(100, requirement(HOST, "In", "n1"))
    answers = await decided_at_once(
        module_database_url,
        *(worker.place(wanting.named(f"s-{number}")) for number, worker in enumerate(workers)),
    )
    assert [each["attempts"] for each in answers] == [1, 2]
    assert node_names(answers) == ["n1", "n2"]


# Group N: what was decided on an old state


async def test_what_another_worker_changed_is_never_overwritten_or_ignored(
    workers: list[Harness], module_database_url: str
) -> None:
    """N05: a stale write is refused; a stale placement is decided again, and says on which state."""
    first, second = workers
    story = await tell(first, node("n1"))
    stale = (await story.read(node("n1")))["metadata"]["resourceVersion"]
    await (await tell(second)).put(node("n1").label(zone="a"))
    refused = await first.client.put(
        f"{CLUSTER}/nodes/n1", json=node("n1"), headers={"if-match": f'"{stale}"'}
    )
    assert problem(refused, 412) == "PreconditionFailed"
    won, lost = await decided_at_once(
        module_database_url, first.place(pod("a")), second.place(pod("b"))
    )
    assert (won["attempts"], lost["attempts"]) == (1, 2)
    assert won["results"][0]["plannedRevision"] < won["revision"]
    assert lost["results"][0]["plannedRevision"] == won["revision"] < lost["revision"]


# Group J: namespaces


async def test_a_namespace_that_changes_meanwhile_is_seen_whole_or_not_at_all(
    workers: list[Harness], module_database_url: str
) -> None:
    """J08: the worker decided about all pods with the old label; each goes by the new one."""
    first, second = workers
    team = matching(team="red")
    await tell(
        first,
        *(node(name).label({HOST: name}) for name in ("n1", "n2", "n3", "n4")),
        namespace("shop"),
        pod("q", "shop").label(app="q").on("n1"),
        pod("q-2", "shop").label(app="q").on("n2"),
    )
    careful = pod("p", "bank").require_anti_affinity(
        HOST, matching(app="q"), namespaceSelector=team
    )
    wanting = careful.prefer_node(100, requirement(HOST, "In", "n1", "n2"))

    async def relabel() -> Answer:
        answer = await first.put("namespaces/shop", namespace("shop").label(team="red"))
        return dict(answer.json())

    relabelled, placed = await decided_at_once(
        module_database_url,
        relabel(),
        second.place(*(wanting.named(f"p-{number}") for number in range(4))),
    )
    assert placed["attempts"] == 2
    assert set(node_names([placed])) <= {"n3", "n4"}
    revision = int(relabelled["metadata"]["resourceVersion"])
    planned = [result["plannedRevision"] for result in placed["results"]]
    assert planned == list(range(revision, revision + 4)), "each on top of the one before"


# Group O: without a database


@pytest.fixture
async def outage(ready_made: Path) -> AsyncIterator[tuple[Harness, EmbeddedPostgres]]:
    """A server, and the PostgreSQL that it uses and does not look after."""
    with temporary_folder() as folder:
        copy_data(ready_made, folder / "data")
        postgres = EmbeddedPostgres(folder / "data")
        url = await asyncio.to_thread(postgres.start)
        try:
            with live_server(url) as address:
                async with httpx.AsyncClient(base_url=address, **PLAIN_HTTP) as client:
                    yield over(client), postgres
        finally:
            await asyncio.to_thread(postgres.stop)


async def test_while_the_database_is_stopped_nothing_is_half_placed(
    outage: tuple[Harness, EmbeddedPostgres],
) -> None:
    """O08, O01: 503 and when to ask again; afterwards all is as before, and the errors counted."""
    server, postgres = outage
    story = await tell(server, node("n1"))
    running, wanted = pod("running"), [pod("a"), pod("b")]
    assert await story.place(running) == ["n1"]
    assert await story.place(pod("c").node_selector(zone="none")) == [None]
    await asyncio.to_thread(postgres.stop)
    answer = await server.client.post(f"{CLUSTER}/placements", json={"pods": wanted})
    assert problem(answer, 503) == "StorageUnavailable"
    assert int(answer.headers["retry-after"]) > 0
    await asyncio.to_thread(postgres.start)

    async def are_absent() -> bool:
        paths = [f"{CLUSTER}/{path_of(each)}" for each in wanted]
        codes = {(await server.client.get(path)).status_code for path in paths}
        assert codes <= {404, 503}
        return codes == {404}

    await once(are_absent)
    assert (await story.read(running))["spec"]["nodeName"] == "n1"
    assert await story.place(*wanted) == ["n1", "n1"]
    text = (await server.client.get("/metrics")).text
    told = {result: f'result="{result}"}} {count}.0' for result, count in COUNTED.items()}
    lines = [each for each in text.splitlines() if each.startswith("scheduler_schedule_attempts")]
    assert all(any(line.endswith(end) for line in lines) for end in told.values()), lines


COUNTED = {"scheduled": 3, "unschedulable": 1, "error": 2}
"""The pods that were tried in the story above, by result."""
