"""Groups in several clusters that race with kills, lost answers and others: what all logs say in the end.

A run is repeatable from its seed. The logs of all clusters are judged without the engine.
"""

import asyncio
import random
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from service.model.core.errors import MoorageError, StorageUnavailable
from service.model.log.commit import Change
from service.scheduler.controllers.group_recovery import SplitGroupController
from service.scheduler.decide.context import at_once
from service.scheduler.decide.placing.group_reservations import advance_group
from service.scheduler.dispatch import DECISIONS
from service.scheduler.multi_cluster.cluster_bids import (
    ClusterQuery,
    MultiClusterRequest,
    Unit,
)
from service.scheduler.protocol.intents import AdvanceGroup, ApplyObjects, DeleteObject, PutConfig
from service.scheduler.protocol.limits import Limits
from service.scheduler.protocol.placements import PlacementAnswer
from service.scheduler.protocol.split_groups import GroupAnswer
from service.scheduler.replica.replica import Replica
from tests.builders import HOST, matching, node, pod
from tests.concurrency.plan_run import PlanRun
from tests.scheduler.world import World, world
from tests.seeds import chance, examples

CLUSTERS = ("default", "east", "west")
CPU = 4
GROUPS = 5
ROUNDS = 25
END_SECONDS = 120
STANDING = 0.08
"""How often a request stands still before or after a step."""
LIMITS = Limits(request_seconds_max=20)


class Asks:
    """Asks clusters as the API does, each time some planner that lives; it may stand still before or after."""

    def __init__(self, run: "Run", pods: list[Any], worker: int) -> None:
        self._run, self._pods, self._worker = run, pods, worker

    async def place(self, ask: ClusterQuery) -> PlacementAnswer:
        manifests = [self._pods[each] for each in ask.indices]
        intent = self._run.w.placing(
            *manifests,
            all_or_nothing=not ask.alone,
            dry_run=ask.dry_run,
            compare=ask.dry_run,
            queue=ask.queue,
            leases=ask.leases,
            reserving=ask.reserving,
            without_groups=ask.alone or ask.reserving is not None,
        )
        await self._stand(ask.reserving)
        answer = await self._run.submit(ask.cluster, intent, self._worker)
        await self._stand(ask.reserving)
        assert isinstance(answer, PlacementAnswer)
        return answer

    async def advance(self, cluster: str, step: AdvanceGroup) -> GroupAnswer:
        await self._stand(step)
        answer = await self._run.submit(cluster, step, self._worker)
        await self._stand(step)
        assert isinstance(answer, GroupAnswer)
        return answer

    async def _stand(self, changing: object) -> None:
        """Stand still, sometimes, for less or longer than leases last, or as if killed."""
        run = self._run
        if changing is None or run.over.is_set() or run.choices.random() >= STANDING:
            return
        seconds = run.choices.choice((3, 20, 50, None))
        waits = [asyncio.create_task(run.over.wait())]
        if seconds is not None:
            waits.append(asyncio.create_task(run.w.clock.sleep(seconds)))
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for each in waits:
            each.cancel()
        if run.over.is_set():
            raise StorageUnavailable("Its server was killed.")


class Run(PlanRun):
    """One history: groups, single pods, kills and troubles, as chance has it."""

    def __init__(self, w: World, choices: random.Random) -> None:
        super().__init__(w, choices)
        self.groups = {f"g{number}": self._pods_of(f"g{number}") for number in range(GROUPS)}
        self.acknowledged: set[str] = set()
        self._tasks: list[asyncio.Task[None]] = []
        self._singles = 0
        self.logs: list[list[Change]] = []
        """The logs of all clusters, as they were in the end."""
        self.over = asyncio.Event()
        """Set at the end, when whoever stands still is taken away."""

    async def begin(self) -> None:
        for cluster in CLUSTERS[1:]:
            await self.w.schedulers[0].submit(cluster, PutConfig(config={}))
        for cluster in CLUSTERS:
            nodes = [
                node(name).label({HOST: name}).allocatable(cpu=str(CPU), pods="40")
                for name in (f"{cluster}-0", f"{cluster}-1")
            ]
            apply = ApplyObjects(manifests=self.w.parsed(*nodes))
            await self.w.schedulers[0].submit(cluster, apply)

    async def go(self) -> None:
        kills = {self.choices.randrange(2, ROUNDS) for _ in range(2)}
        for number in range(ROUNDS):
            if number in kills:
                self.kill()
            if self.choices.random() < 0.25:
                trouble = self.choices.choice(("lose the answer", "refuse", "hold"))
                self.w.store.trouble.append(trouble)
            if self.choices.random() < 0.5:
                self._begin(self.choices.choice(list(self.groups)))
            else:
                await self._single()
            await self.w.others(self.choices.choice((1, 10, 40, 200)))
            await self.w.pass_time(self.choices.choice((0, 0.1, 1, 6, 20)))

    async def end(self) -> None:
        """Without trouble; some groups are asked for again, and the others have to end by themselves."""
        self.w.store.trouble.clear()
        await self.w.store.release_held()
        for name in list(self.groups):
            if self.choices.random() < 0.5:
                self._begin(name)
        for _ in range(END_SECONDS):
            await self.w.pass_time(1)
        numbers = range(1, len(CLUSTERS) + 1)
        self.logs = [list(self.w.store.clusters[each].changes) for each in numbers]
        self.over.set()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def submit(self, cluster: str, intent: Any, worker: int) -> Any:
        """Ask a planner, as a rule the one that places; the pods of its answer have to be the very same."""
        living = worker if worker in self._living else self.choices.choice(self._living)
        if self.choices.random() < 0.3:
            living = self.choices.choice(self._living)
        return await self.w.schedulers[living].submit(cluster, intent)

    def _pods_of(self, name: str) -> list[Any]:
        kind = self.choices.choice(("big", "apart", "spread"))
        made = [
            pod(f"{name}-{number}").label(app=name).request(cpu="1")
            for number in range(self.choices.choice((3, 5, 9)))
        ]
        if kind == "apart":
            return [each.require_anti_affinity(HOST, matching(app=name)) for each in made[:5]]
        if kind == "spread":
            return [each.spread(1, "moorage.dev/cluster", matching(app=name)) for each in made]
        return made

    def _begin(self, name: str) -> None:
        self._tasks.append(asyncio.create_task(self._place(name)))

    async def _place(self, name: str) -> None:
        pods, worker = self.groups[name], self.choices.choice(self._living)
        unit = Unit(
            indices=range(len(pods)),
            names=[("default", each["metadata"]["name"]) for each in pods],
            is_group=True,
        )
        parsed = self.w.placing(*pods)
        asked = MultiClusterRequest(
            clusters=CLUSTERS,
            units=[unit],
            split_groups=True,
            pods=[each.pod for each in parsed.pods],
        )
        with suppress(MoorageError):
            answer = await self.w.schedulers[worker].place_over_clusters(
                asked, Asks(self, pods, worker)
            )
            outcomes = {each.outcome for each in answer.results}
            if outcomes <= {"Placed", "AlreadyPlaced"}:
                self.acknowledged.add(name)

    async def _single(self) -> None:
        cluster = self.choices.choice(CLUSTERS)
        worker = self.choices.choice(self._living)
        self._singles += 1
        if self.choices.random() < 0.6:
            made = pod(f"single-{self._singles}").request(cpu=self.choices.choice(("1", "2")))
            made["spec"]["priority"] = self.choices.choice((0, 1000))
            intent: Any = self.w.placing(made)
        else:
            gone = f"single-{self.choices.randrange(1, self._singles + 1)}"
            intent = DeleteObject(kind="Pod", namespace="default", name=gone)
        with suppress(MoorageError):
            await self.w.schedulers[worker].submit(cluster, intent)


class Judge:
    """Reads the log of one cluster, and notes what is wrong after any commit."""

    def __init__(self, cluster: str) -> None:
        self.cluster = cluster
        self.pods: dict[str, Any] = {}
        self.reserved: dict[str, Any] = {}
        self.groups: dict[str, Any] = {}
        self.bound: set[str] = set()
        """The pods that ever had a node here."""

    def wrongs(self, changes: list[Change]) -> Iterator[str]:
        for number, change in enumerate(changes):
            self._note(change)
            is_last = number + 1 == len(changes) or changes[number + 1].verb == "Put"
            if is_last and change.kind in ("Pod", "GroupReservation"):
                yield from self._overfull(change.revision)

    def _note(self, change: Change) -> None:
        kinds = {"Pod": self.pods, "GroupReservation": self.reserved, "SplitGroup": self.groups}
        objects = kinds.get(change.kind)
        if objects is None:
            return
        if change.verb == "Delete":
            del objects[change.name]
            return
        objects[change.name] = msgspec.json.decode(change.body)
        if change.kind == "Pod" and objects[change.name]["spec"].get("nodeName"):
            self.bound.add(change.name)

    def _overfull(self, revision: int) -> Iterator[str]:
        used: dict[str, int] = defaultdict(int)
        apart: dict[tuple[str, str], int] = defaultdict(int)
        for name, each in self.pods.items():
            where = each["spec"].get("nodeName")
            if where is None and name in self.reserved:
                where = self.reserved[name]["node_name"]
            if where is None:
                continue
            used[where] += int(each["spec"]["containers"][0]["resources"]["requests"]["cpu"])
            if "affinity" in each["spec"]:
                apart[where, each["metadata"]["labels"]["app"]] += 1
        for where, cpus in used.items():
            if cpus > CPU:
                yield f"{self.cluster} {revision}: {where} has {cpus} cpus in use"
        for (where, app), pods in apart.items():
            if pods > 1:
                yield f"{self.cluster} {revision}: {pods} pods of {app} are on {where}"


def wrongs(run: Run) -> Iterator[str]:
    """What is wrong with a whole history, with all clusters."""
    judges = []
    for cluster, changes in zip(CLUSTERS, run.logs, strict=True):
        judge = Judge(cluster)
        yield from judge.wrongs(changes)
        for kind, left in (("reservation", judge.reserved), ("group", judge.groups)):
            if left:
                yield f"{cluster}: a {kind} is left over: {sorted(left)}"
        judges.append(judge)
    for name, pods in run.groups.items():
        names = {each["metadata"]["name"] for each in pods}
        there = [each for judge in judges for each in judge.pods if each in names]
        bound = [each for judge in judges for each in judge.bound if each in names]
        if len(set(there)) != len(there):
            yield f"{name}: a pod is in two clusters"
        if len(set(bound)) not in (0, len(names)) or set(bound) != set(there):
            yield f"{name}: {len(set(bound))} of {len(names)} were bound, {len(there)} are there"
        if name in run.acknowledged and len(bound) != len(names):
            yield f"{name}: was acknowledged, and is not there"
        counts = [sum(each in names for each in judge.pods) for judge in judges]
        if "topologySpreadConstraints" in pods[0]["spec"] and max(counts) - min(counts) > 1:
            yield f"{name}: has {counts} pods in the clusters"


async def history(seed: int) -> Run:
    choices = chance(seed)
    async with world(workers=3, seed=seed, limits=LIMITS) as w:
        run = Run(w, choices)
        await run.begin()
        await run.go()
        await run.end()
        return run


async def found(seeds: range = range(8)) -> list[str]:
    """What is wrong with some histories."""
    return [each for seed in seeds for each in wrongs(await history(seed))]


@pytest.mark.parametrize("seed", range(6))
async def test_whatever_is_killed_a_group_is_whole_or_absent(seed: int) -> None:
    assert list(wrongs(await history(seed))) == []


@pytest.mark.exploration
@pytest.mark.parametrize("seed", range(100, 100 + examples(30)))
async def test_many_histories_of_groups_in_several_clusters(seed: int) -> None:
    assert list(wrongs(await history(seed))) == []


async def test_who_ends_no_groups_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SplitGroupController, "tick", lambda _: None)
    assert any("left over" in each for each in await found())


async def test_who_counts_no_reservations_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Replica, "counted", lambda _, manifest: manifest.pod)
    assert any("in use" in each for each in await found(range(24, 28)))


async def test_who_gives_up_what_is_committed_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the home's word, a part of a group goes while the other part is bound."""

    def deaf(context: Any, intent: AdvanceGroup) -> GroupAnswer:
        step = "Release" if intent.step == "Bind" else intent.step
        return advance_group(context, replace(intent, step=step))

    monkeypatch.setitem(DECISIONS, AdvanceGroup, at_once(deaf))
    assert any("were bound" in each for each in await found())
