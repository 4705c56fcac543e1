"""Callers over HTTP who plan, commit, drain, release, preempt, place and stop pods at the same time."""

import asyncio
import random
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from itertools import count
from typing import Any

import httpx
import msgspec

from tests.concurrency.callers import bearer
from tests.concurrency.checker.plans import PlanCall
from tests.concurrency.checker.releases import is_ready
from tests.concurrency.plans import workload
from tests.processes import PLAIN_HTTP
from tests.reference.view import Manifest, is_terminating, labels_of, name_of, spec_of
from tests.waiting import WAIT_SECONDS

AGAIN_SECONDS = 0.1
LOOK_SECONDS = 0.05
PATIENCE_SECONDS = 8.0
"""How long a drain or a release goes on before its caller turns to something else."""
REMOVED_MAX, REPLACED_MAX = 4, 8
"""How many pods one plan marks, or replaces, at most."""
URGENT_MAX = 4
READY = {"conditions": [{"type": "Ready", "status": "True"}]}
_ASK_AGAIN = {429, 500, 502, 503, 504}

Answer = tuple[int, Any]
"""The status code and the body; 0 and None while nothing is known."""


class Asker:
    """One caller, who asks the servers in turn until one answers."""

    def __init__(self, urls: Sequence[str], token: str, cluster: str) -> None:
        self._path = f"/v1/clusters/{cluster}"
        options = {"headers": bearer(token), "limits": httpx.Limits(max_keepalive_connections=4)}
        self._servers = [
            httpx.AsyncClient(base_url=url, **PLAIN_HTTP, **options)  # HTTP
            for url in urls
        ]

    async def close(self) -> None:
        for each in self._servers:
            await each.aclose()

    async def ask(
        self, method: str, path: str, body: Any = None, *, key: str | None = None
    ) -> Answer:
        """Ask until the outcome is known; with a key, whatever was asked before takes effect once."""
        headers = {} if key is None else {"Idempotency-Key": key}
        content = b"" if body is None else msgspec.json.encode(body)
        if body is not None:
            headers["Content-Type"] = "application/json"
        deadline = time.monotonic() + WAIT_SECONDS
        while time.monotonic() < deadline:
            with suppress(httpx.HTTPError):
                answer = await self._servers[0].request(
                    method, self._path + path, content=content, headers=headers
                )
                told = msgspec.json.decode(answer.content) if answer.content else None
                in_progress = told is not None and told.get("code") == "IdempotencyKeyInProgress"
                if not in_progress and answer.status_code not in _ASK_AGAIN:
                    return answer.status_code, told
            self._servers.append(self._servers.pop(0))
            await asyncio.sleep(AGAIN_SECONDS)
        return 0, None

    async def pods(self) -> list[Manifest]:
        """All pods, at a server chosen by who was asked last; none if nobody answers."""
        code, told = await self.ask("GET", "/pods")
        return list(told["items"]) if code == httpx.codes.OK else []


class PlanRound:
    """One cluster, on which everybody plans until so many steps were seen to be committed."""

    def __init__(self, cluster: str, urls: Sequence[str], token: str, *, seed: str) -> None:
        self.calls: list[PlanCall] = []
        self.steps = 0
        """Of plans that were committed at once, and those that kept plans have told of."""
        self._cluster, self._urls, self._token = cluster, list(urls), token
        self._chance = random.Random(seed)
        self._names: Counter[str] = Counter()
        self._over = asyncio.Event()
        self._versions = count(1)
        self._drained: set[str] = set()

    async def set_up(self) -> int:
        """Make the cluster with its pods; the revision after that."""
        asker = self._asker()
        try:
            code, told = await asker.ask("PUT", "", {"config": {}})
            assert code in {httpx.codes.OK, httpx.codes.CREATED}, told
            items = [*workload.nodes(), *workload.fixtures()]
            body = {"apiVersion": "v1", "kind": "List", "items": items}
            code, told = await asker.ask("POST", "/apply", body, key="set-up")
            assert code == httpx.codes.OK, told
            await self._place(asker, {**workload.WANTED, workload.RELEASED: workload.REPLICAS})
            return int(told["revision"])
        finally:
            await asker.close()

    async def run(self, steps: int) -> None:
        """Until so many steps are committed."""
        await self.run_while(lambda: self.steps < steps)

    async def run_while(self, goes_on: Any) -> None:
        """Until `goes_on` says no; what is begun is ended."""
        actors = [
            self._replace_jobs,
            self._replace_databases,
            self._remove,
            self._remove,
            self._preempt,
            self._drain,
            self._drain,
            self._drain,
            self._drain,
            self._release,
            self._keep_running,
            self._keep_running,
        ]
        askers = [self._asker() for _ in actors]
        try:
            async with asyncio.TaskGroup() as group:
                for index, (act, asker) in enumerate(zip(actors, askers, strict=True)):
                    group.create_task(self._repeat(act, asker, index))
                while goes_on():  # noqa: ASYNC110 - what it asks is told by many
                    await asyncio.sleep(LOOK_SECONDS)
                self._over.set()
        finally:
            for each in askers:
                await each.close()

    async def _repeat(self, act: Any, asker: Asker, index: int) -> None:
        while not self._over.is_set():
            await act(asker, index)
            await asyncio.sleep(0)

    def _asker(self) -> Asker:
        urls = self._chance.sample(self._urls, len(self._urls))
        return Asker(urls, self._token, self._cluster)

    def _new_name(self, app: str) -> str:
        self._names[app] += 1
        return f"{app}-{self._names[app]}"

    # Plans that are committed at once

    async def _commit(self, asker: Asker, plan: dict[str, Any], **about: Any) -> PlanCall:
        """Commit a plan; half of the callers look at it before, and insist on what they saw."""
        steps = None
        if self._chance.random() < 0.5:
            code, seen = await asker.ask("POST", "/plans", plan)
            if code != httpx.codes.OK or not seen["complete"] or not seen["steps"]:
                await asyncio.sleep(LOOK_SECONDS)
                return PlanCall(number=-1, outcome="Planned")
            known = ("action", "namespace", "name", "from", "to")
            steps = [{name: each[name] for name in known if name in each} for each in seen["steps"]]
        call = PlanCall(
            number=len(self.calls),
            expected=None if steps is None else tuple(each["name"] for each in steps),
            **about,
        )
        self.calls.append(call)
        body = plan if steps is None else {**plan, "steps": steps}
        code, told = await asker.ask("POST", "/plan-commits", body, key=f"plan-{call.number}")
        if code == httpx.codes.OK:
            call.outcome, call.revision = told["status"], told["revision"]
            call.steps = tuple(each["name"] for each in told["steps"])
        elif code:
            call.outcome = told["code"]
        if call.outcome == "Committed":
            self.steps += len(call.steps) + len(call.removed)
        else:
            await asyncio.sleep(LOOK_SECONDS)
        return call

    async def _replacing(self, asker: Asker, app: str, old: Sequence[str]) -> None:
        names = tuple(self._new_name(app) for _ in old)
        plan = {
            "changes": [{"op": "RemovePods", "namespace": "default", "names": list(old)}],
            "goal": {"type": "Place", "pods": [workload.member(app, name) for name in names]},
        }
        await self._commit(asker, plan, removed=tuple(old), placed=names)

    async def _replace_jobs(self, asker: Asker, _index: int) -> None:
        await self._replace_some(asker, "job", self._chance.randint(1, REPLACED_MAX))

    async def _replace_databases(self, asker: Asker, _index: int) -> None:
        await self._replace_some(asker, "db", 1)

    async def _replace_some(self, asker: Asker, app: str, most: int) -> None:
        there = _staying(await asker.pods(), app)
        if there:
            await self._replacing(asker, app, self._chance.sample(there, min(most, len(there))))

    async def _remove(self, asker: Asker, _index: int) -> None:
        app, number = (
            self._chance.choice(("web", "job", "cache")),
            self._chance.randint(1, REMOVED_MAX),
        )
        goal = {
            "type": "Remove",
            "namespace": "default",
            "selector": {"matchLabels": {"app": app}},
            "count": number,
        }
        await self._commit(asker, {"goal": goal, "bounds": {"respectBudgets": True}}, count=number)

    async def _preempt(self, asker: Asker, _index: int) -> None:
        """Have room made for a pod, or be told who would have to go and commit that."""
        name = self._new_name("urgent")
        pod = workload.member("urgent", name)
        proposes = self._chance.random() < 0.5
        mode = "Propose" if proposes else "Evict"
        body = {"pods": [pod], "preemption": mode, "dryRun": proposes}
        code, told = await asker.ask("POST", "/placements", body, key=f"preempt-{name}")
        proposal = told["results"][0].get("preemption") if code == httpx.codes.OK else None
        if proposes and proposal:
            await self._commit_proposal(asker, proposal)
        await asyncio.sleep(LOOK_SECONDS)

    async def _commit_proposal(self, asker: Asker, proposal: dict[str, Any]) -> None:
        names = (self._new_name("urgent"),)
        victims = tuple(each["name"] for each in proposal["victims"])
        plan = {
            "changes": [{"op": "RemovePods", "namespace": "default", "names": list(victims)}],
            "goal": {"type": "Place", "pods": [workload.member("urgent", names[0])]},
        }
        await self._commit(asker, plan, removed=victims, placed=names)

    # Plans that are kept

    async def _drain(self, asker: Asker, _index: int) -> None:
        free = [each for each in workload.DRAINED if each not in self._drained]
        node_name = self._chance.choice(free)
        self._drained.add(node_name)
        try:
            await asker.ask("POST", f"/nodes/{node_name}/drain")
            await self._watch(asker, f"drain-{node_name}")
            await asker.ask("DELETE", f"/plans/drain-{node_name}")
            await asker.ask("POST", f"/nodes/{node_name}/uncordon")
        finally:
            self._drained.discard(node_name)

    async def _release(self, asker: Asker, _index: int) -> None:
        plan = workload.release(next(self._versions))
        name = plan["metadata"]["name"]
        await asker.ask("PUT", f"/plans/{name}", plan)
        if not await self._watch(asker, name):
            await asker.ask("POST", f"/plans/{name}/cancel")
        await asker.ask("DELETE", f"/plans/{name}")

    async def _watch(self, asker: Asker, name: str) -> bool:
        """Whether a plan has succeeded before long; now and then it is paused, and goes on."""
        deadline, done = time.monotonic() + PATIENCE_SECONDS, 0
        while time.monotonic() < deadline and not self._over.is_set():
            await asyncio.sleep(LOOK_SECONDS)
            code, plan = await asker.ask("GET", f"/plans/{name}")
            if code != httpx.codes.OK:
                return False
            status = plan.get("status") or {}
            told = status.get("evicted", 0) + status.get("placed", 0)
            self.steps, done = self.steps + told - done, told
            if status.get("phase") == "Succeeded":
                return True
            if self._chance.random() < 0.05:
                await asker.ask("POST", f"/plans/{name}/pause")
                await asker.ask("POST", f"/plans/{name}/resume")
        return False

    # What goes on beside plans

    async def _keep_running(self, asker: Asker, index: int) -> None:
        """As an orchestrator does: stop who is to leave, report who runs, start who is missing."""
        pods = await asker.pods()
        own = [each for each in pods if sum(map(ord, name_of(each))) % 2 == index % 2]
        leaving = [name_of(each) for each in own if is_terminating(each)]
        await asyncio.gather(*(self._stop(asker, each) for each in leaving))
        starting = [
            name_of(each)
            for each in own
            if not is_ready(each)
            and not is_terminating(each)
            and "nodeName" in spec_of(each)
            and labels_of(each).get("app") == workload.RELEASED
        ]
        if starting:
            items = [{"namespace": "default", "name": name, "status": READY} for name in starting]
            await asker.ask("POST", "/pods/statuses", {"items": items})
        if index % 2:
            await self._start_missing(asker, pods)
        await asyncio.sleep(LOOK_SECONDS)

    async def _stop(self, asker: Asker, name: str) -> None:
        await asker.ask("DELETE", f"/namespaces/default/pods/{name}")

    async def _start_missing(self, asker: Asker, pods: Sequence[Manifest]) -> None:
        there = Counter(labels_of(each).get("app") for each in pods if not is_terminating(each))
        missing = {app: most - there[app] for app, most in workload.WANTED.items()}
        await self._place(asker, missing)
        urgent = _staying(pods, "urgent")
        for name in urgent[:-URGENT_MAX]:
            await self._stop(asker, name)

    async def _place(self, asker: Asker, missing: dict[str, int]) -> None:
        names = [(app, self._new_name(app)) for app, most in missing.items() for _ in range(most)]
        if names:
            body = {"pods": [workload.member(app, name) for app, name in names]}
            await asker.ask("POST", "/placements", body, key=f"place-{names[0][1]}")


def _staying(pods: Sequence[Manifest], app: str) -> list[str]:
    """The pods of an application that are not about to leave, the oldest first."""
    names = [
        name_of(each)
        for each in pods
        if labels_of(each).get("app") == app and not is_terminating(each)
    ]
    return sorted(names, key=lambda name: int(name.rpartition("-")[2]))
