"""Many servers behind a balancer: `python -m tests.concurrency.many_servers --servers 4 --clusters 100`.

Servers on addresses of this machine share a PostgreSQL and forward requests to each other. Callers
place pods in all clusters; each request goes to a server chosen by chance, as a balancer does that
knows nothing of clusters, and to another one if that does not answer within two seconds. Meanwhile
one server is killed, and started again; another one stands still for a while; and one is told to
stop (SIGTERM). Each time is a phase, of which the report says how many races were lost, how many pods
were placed, how long a placement took at most, and which server has how many clusters. In the end the
log of each cluster is checked: everything acknowledged is stored once, and no rule is broken.

With `--apart` the servers do not forward to each other.
"""

import argparse
import asyncio
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

import asyncpg
import httpx
import msgspec

from service.server.local_server import LocalServer, temporary_folder
from service.store.embedded import EmbeddedPostgres
from tests.concurrency.callers import Caller, Notebook, bearer, read_history
from tests.concurrency.checker import check
from tests.concurrency.checker.counting import check_by_counting
from tests.concurrency.checker.history import Call
from tests.concurrency.faults.site import connect, start_all
from tests.concurrency.race import metrics
from tests.concurrency.racing import SETUP, TOKEN, member, nodes
from tests.processes import family, own_address, signal_all
from tools.ledger import Campaign, add_ledger

SECRET = "what-only-these-servers-know-of-all"
FIRST_PORT = 20_000
ANSWER_SECONDS_MAX = 2.0
"""After so long the balancer asks another server."""
PODS = 5
"""The number of pods of one request."""
CHECKED_BY_REFERENCE = 5
"""Placements of each cluster that the reference implementation evaluates, which takes long."""
_HOLDERS = """
    SELECT c.name, l.holder FROM lease AS l JOIN cluster AS c USING (cluster_id)
    WHERE l.name LIKE 'requests@%' AND l.until > clock_timestamp()
"""


class Phase(msgspec.Struct, frozen=True):
    """What was done in one part of the run."""

    name: str
    seconds: float
    placements: int
    lost: float
    """The share of commits that lost a race, of 1."""
    waits: list[float]
    """How long each placement took from the first request to its answer, in order."""
    longest: float
    """The longest of them in clusters that were upset, else in all."""
    clusters: list[int]
    """How many clusters each server has, those with fewest first."""

    def __str__(self) -> str:
        rate = self.placements / self.seconds
        p50, p99 = (self.waits[int(len(self.waits) * each)] * 1000 for each in (0.5, 0.99))
        return (
            f"| {self.name} | {self.seconds:.0f} | {rate:,.0f} | {p50:,.0f} | {p99:,.0f} "
            f"| {self.longest:.1f} | {self.lost:.2%} | {' '.join(map(str, self.clusters))} |"
        )


HEAD = (
    "| phase | s | placements/s | p50 ms | p99 ms | longest s | races lost | clusters of servers |\n"
    "|---|--:|--:|--:|--:|--:|--:|---|"
)


class Balancer:
    """Callers that place pods in any cluster, at any server."""

    def __init__(self, urls: Sequence[str], clusters: Sequence[str], chance: random.Random) -> None:
        self._chance = chance
        self._numbers = dict.fromkeys(clusters, 0)
        self._servers = [
            httpx.AsyncClient(
                base_url=url, verify=False, timeout=ANSWER_SECONDS_MAX, headers=bearer(TOKEN)
            )
            for url in urls
        ]
        self.notebooks = {cluster: Notebook() for cluster in clusters}
        self.over = asyncio.Event()

    async def keep_asking(self, name: str) -> None:
        """Place groups of pods, of which two requests share each, until all is over."""
        while not self.over.is_set():
            cluster = self._chance.choice(list(self._numbers))
            number = self._numbers[cluster]
            self._numbers[cluster] += 1
            servers = self._chance.sample(self._servers, len(self._servers))
            notebook = self.notebooks[cluster]
            caller = Caller(notebook, name, (), TOKEN, cluster=cluster, servers=servers)
            pods = [dict(member(number // 2, number % 2 * PODS + i)) for i in range(PODS)]
            await caller.place(pods)

    async def close(self) -> None:
        for each in self._servers:
            await each.aclose()

    def waits(self, since: float, clusters: Sequence[str] | None = None) -> list[float]:
        """How long placements took that were first asked for since then, in these clusters or all."""
        chosen = self.notebooks if clusters is None else clusters
        return sorted(
            took for cluster in chosen for took in _waits(self.notebooks[cluster].calls, since)
        )


def _waits(calls: Sequence[Call], since: float) -> Iterator[float]:
    first: dict[int, float] = {}
    for call in calls:
        asked = first.setdefault(call.operation, call.called)
        if call.outcome == "ok" and asked >= since:
            yield call.returned - asked


class Stage:
    """The servers, and what befalls them."""

    def __init__(self, servers: Sequence[LocalServer], connection: asyncpg.Connection) -> None:
        self.servers = servers
        self._connection = connection

    async def holders(self) -> dict[str, str]:
        """The address of the worker that has each cluster."""
        rows = await self._connection.fetch(_HOLDERS)
        return {row["name"]: row["holder"].rpartition("@")[2] for row in rows}

    async def clusters_of(self, index: int) -> list[str]:
        """The clusters that a server has."""
        return [name for name, at in (await self.holders()).items() if _index(at) == index]

    async def numbers(self) -> list[int]:
        found = Counter(_index(at) for at in (await self.holders()).values())
        return sorted(found[index] for index in range(len(self.servers)))

    def send(self, index: int, number: signal.Signals) -> None:
        """Send a signal to all processes of a server."""
        process = self.servers[index].process
        assert process is not None
        signal_all(family(process.pid), number)


def _address(index: int) -> str:
    return f"{own_address()}:{FIRST_PORT + 100 * index}"


def _index(address: str) -> int:
    return (int(address.rpartition(":")[2] or 0) - FIRST_PORT) // 100


@asynccontextmanager
async def stage(options: argparse.Namespace) -> AsyncIterator[tuple[Stage, str]]:
    """Start PostgreSQL and the servers."""
    async with AsyncExitStack() as stack:
        folder = stack.enter_context(temporary_folder())
        postgres = EmbeddedPostgres(folder / "data")
        stack.push_async_callback(asyncio.to_thread, postgres.stop)
        url = await asyncio.to_thread(postgres.start)
        common = {"MOORAGE_TOKEN": TOKEN, "MOORAGE_DATABASE_URL": url}
        servers = [
            LocalServer(
                folder / f"server-{index}",
                workers=options.workers,
                quiet=not options.loud,
                environment=common
                if options.apart
                else common
                | {"MOORAGE_PEER_ADDRESS": _address(index), "MOORAGE_PEER_SECRET": SECRET},
            )
            for index in range(options.servers)
        ]
        await start_all(servers, stack)
        connection = await connect(url)
        stack.push_async_callback(connection.close)
        yield Stage(servers, connection), url


async def _set_up(urls: Sequence[str], clusters: Sequence[str]) -> None:
    """Create the clusters, one after the other at each server."""
    async with httpx.AsyncClient(headers=bearer(TOKEN), timeout=60) as client:
        for number, cluster in enumerate(clusters):
            path = f"{urls[number % len(urls)]}/v1/clusters/{cluster}"
            (await client.put(path, json={"config": {}})).raise_for_status()
            items = {"apiVersion": "v1", "kind": "List", "items": nodes()}
            (await client.post(f"{path}/apply", json=items)).raise_for_status()


async def run(options: argparse.Namespace) -> tuple[list[Phase], int, int]:
    """The phases, how many pods were acknowledged, and how many violations were found."""
    chance = random.Random(options.seed)
    clusters = [f"c{number:03}" for number in range(options.clusters)]
    async with stage(options) as (made, url):
        urls = [server.url for server in made.servers]
        await _set_up(urls, clusters)
        balancer = Balancer(urls, clusters, chance)
        asking = [
            asyncio.create_task(balancer.keep_asking(f"caller-{number}"))
            for number in range(options.callers)
        ]
        phases = [each async for each in _phases(made, balancer, options)]
        balancer.over.set()
        await asyncio.gather(*asking)
        await balancer.close()
        print("everything is checked", flush=True)
        violations = 0
        for cluster, notebook in balancer.notebooks.items():
            for each in await _violations(url, notebook.calls, cluster):
                violations += 1
                print(f"  {cluster}: {each}", flush=True)
    calls = [call for each in balancer.notebooks.values() for call in each.calls]
    return phases, sum(call.pods_placed for call in calls), violations


async def _phases(
    made: Stage, balancer: Balancer, options: argparse.Namespace
) -> AsyncIterator[Phase]:
    killed, stopped, ended = (number % len(made.servers) for number in (1, 2, 3))
    everyone = set(range(len(made.servers)))

    async def phase(
        name: str, living: set[int], upset: Sequence[str] | None = None, since: float | None = None
    ) -> Phase:
        return await _phase(name, made, balancer, options.seconds, living, upset, since)

    yield await phase("begin", everyone)
    yield await phase("calm", everyone)
    upset, since = await made.clusters_of(killed), time.monotonic()
    await asyncio.to_thread(made.servers[killed].kill)
    yield await phase("one is killed", everyone - {killed}, upset or None, since)
    starting = asyncio.create_task(asyncio.to_thread(made.servers[killed].start))
    yield await phase("it is started again", everyone - {killed})
    await starting
    yield await phase("calm again", everyone)
    upset, since = await made.clusters_of(stopped), time.monotonic()
    made.send(stopped, signal.SIGSTOP)
    yield await phase("one stands still", everyone - {stopped}, upset or None, since)
    made.send(stopped, signal.SIGCONT)
    yield await phase("it goes on", everyone - {stopped})
    upset, since = await made.clusters_of(ended), time.monotonic()
    stopping = asyncio.create_task(asyncio.to_thread(made.servers[ended].stop))
    yield await phase("one is told to stop", everyone - {ended}, upset or None, since)
    await stopping


async def _phase(
    name: str,
    made: Stage,
    balancer: Balancer,
    seconds: float,
    living: set[int],
    upset: Sequence[str] | None,
    since: float | None,
) -> Phase:
    urls = [made.servers[index].url for index in sorted(living)]
    begun = time.monotonic() if since is None else since
    before = await asyncio.to_thread(metrics.counted, urls, TOKEN)
    await asyncio.sleep(begun + seconds - time.monotonic())
    counted = await asyncio.to_thread(metrics.counted, urls, TOKEN)
    took = time.monotonic() - begun
    commits, lost = (counted[each] - before[each] for each in (metrics.COMMITS, metrics.LOST))
    placements = sum(
        call.pods_placed
        for each in balancer.notebooks.values()
        for call in each.calls
        if call.returned >= begun
    )
    waits = balancer.waits(begun)
    longest = max(balancer.waits(begun, upset), default=0.0)
    share = lost / max(1.0, commits + lost)
    found = Phase(name, took, placements, share, waits, longest, await made.numbers())
    print(found, flush=True)
    return found


async def _violations(url: str, calls: Sequence[Call], cluster: str) -> list[str]:
    history = await read_history(url, calls, granted=SETUP, cluster=cluster)
    every = max(1, len(history.changes) // CHECKED_BY_REFERENCE)
    found = [*check_by_counting(history).violations, *check(history, placements_every=every)]
    stored = {
        (key[1], key[2]): msgspec.json.decode(body)["metadata"]["uid"]
        for key, (_, body) in history.rows.items()
        if key[0] == "Pod"
    }
    lost = [
        result["name"]
        for call in calls
        if call.outcome == "ok"
        for result in call.body["results"]
        if result["outcome"] == "Placed"
        and stored.get((result["namespace"], result["name"])) != result["uid"]
    ]
    return [*map(str, found), *(f"{name} was acknowledged, and is not stored" for name in lost)]


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.concurrency.many_servers",
        description="Have servers forward to each other behind a balancer; kill and stop some of them.",
    )
    parser.add_argument("--servers", type=int, default=4)
    parser.add_argument("--workers", type=int, default=1, help="of each server")
    parser.add_argument("--clusters", type=int, default=100)
    parser.add_argument("--callers", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=20, help="of each phase")
    parser.add_argument("--apart", action="store_true", help="servers do not forward to each other")
    parser.add_argument("--loud", action="store_true", help="show what the servers log")
    parser.add_argument(
        "--seed", type=int, default=random.SystemRandom().randrange(10**9), help="of the choices"
    )
    add_ledger(parser)
    options = parser.parse_args()
    campaign = Campaign("many servers", options.ledger)
    print(f"seed {options.seed}\n{HEAD}", flush=True)
    phases, placements, violations = asyncio.run(run(options))
    print(f"{placements:,} pods acknowledged, {violations} violations")
    campaign.add(
        seeds=f"{options.seed}, {options.servers} servers, {options.clusters} clusters",
        faults=3,
        placements=placements,
        violations=violations,
        seconds=sum(each.seconds for each in phases),
    )
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
