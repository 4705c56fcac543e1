"""An orchestrator of jobs: it keeps everything in Moorage but the results, and may be killed at any moment.

examples/orchestrator.py jobs --url URL --jobs 1000 --folder F    runs jobs until all have ended
examples/orchestrator.py agents --url URL --nodes 100 --folder F  simulates the nodes that run them
"""

import argparse
import asyncio
import math
import os
import signal
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from moorage import AsyncCache, AsyncClient, Change, Retries
from moorage.batches import batched
from moorage.types import Pod

NAMESPACE = "jobs"
LABELS = {"app": "job"}
PODS_PER_REQUEST = 500
REPORTS_PER_REQUEST = 1_000
LEASE_SECONDS = 0.5
LOST_EVERY = 50
"""One node of so many dies as soon as it runs something."""
NODE_LOST = ("node.kubernetes.io/unreachable", "node.kubernetes.io/not-ready")


def job(number: int) -> dict[str, Any]:
    """Make the pod of a job. Its name and spec follow from the number, so it cannot be created twice."""
    spread = {
        "topologyKey": "topology.kubernetes.io/zone",
        "maxSkew": 1,
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": LABELS},
    }
    gone = [
        {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 0}
        for key in NODE_LOST
    ]
    requests = {"requests": {"cpu": "1"}}
    return {
        "kind": "Pod",
        "metadata": {"namespace": NAMESPACE, "name": f"job-{number}", "labels": LABELS},
        "spec": {
            "containers": [{"name": "main", "image": "example.com/job:1", "resources": requests}],
            "tolerations": gone,
            "topologySpreadConstraints": [spread],
        },
    }


class Journal:
    """Names in a file that survive a crash; what stands there twice counts once."""

    def __init__(self, path: Path) -> None:
        self.names, length = read_journal(path)
        self._path = path
        with path.open("a") as file:
            file.truncate(length)

    def add(self, names: Iterable[str]) -> None:
        """Write names, and return when they are on the disk."""
        new = [name for name in names if name not in self.names]
        self.names.update(new)
        with self._path.open("a") as file:
            file.write("".join(f"{name}\n" for name in new))
            file.flush()
            os.fsync(file.fileno())


def read_journal(path: Path) -> tuple[set[str], int]:
    """Return the names in a journal, and its length without a line that a crash cut off."""
    text = path.read_text() if path.exists() else ""
    whole, newline, _ = text.rpartition("\n")
    return set(whole.split()), len(whole + newline)


class Follower:
    """Follows the pods of jobs: one task reads changes, another one works on all that have come."""

    def __init__(self, moorage: AsyncClient) -> None:
        self.moorage = moorage
        selector = ",".join(f"{key}={value}" for key, value in LABELS.items())
        self.pods = AsyncCache(moorage.pods, namespace=NAMESPACE, label_selector=selector)
        self._changes: asyncio.Queue[Change[Pod]] = asyncio.Queue()

    async def follow(self) -> None:
        """Read changes, whatever becomes of servers and connections."""
        async for change in self.pods.changes():
            self._changes.put_nowait(change)

    async def changed(self) -> list[Change[Pod]]:
        """Wait for a change, and return all that have come."""
        changes = [await self._changes.get()]
        while not self._changes.empty():
            changes.append(self._changes.get_nowait())
        return changes

    async def end(self, pods: Iterable[Pod]) -> None:
        """Delete pods in bulk: these, and not others that have got their names meanwhile."""
        lines = [{"delete": {"kind": "Pod", "metadata": identity(pod)}} for pod in pods]
        async for result in self.moorage.apply_lines(lines):
            assert result["result"] in {"Deleted", "NotFound", "Conflict"}, result


def identity(pod: Pod) -> dict[str, Any]:
    """Return what tells a pod from all others, also from those of its name."""
    metadata = pod["metadata"]
    return {key: metadata[key] for key in ("namespace", "name", "uid")}


def phase(pod: Pod) -> str:
    """Return a pod's phase; that of one that is to stop, or has failed, is Lost."""
    reached = (pod.get("status") or {}).get("phase") or "Pending"
    is_leaving = pod["metadata"].get("deletionTimestamp") is not None
    return "Lost" if reached == "Failed" or (is_leaving and reached != "Succeeded") else reached


class Orchestrator(Follower):
    """Has every job run to its end, and writes its name to the results then."""

    def __init__(self, moorage: AsyncClient, jobs: int, results: Journal) -> None:
        super().__init__(moorage)
        self._jobs = {f"job-{number}": number for number in range(jobs)}
        self._results = results

    async def run(self) -> None:
        """Run all jobs, those that were asked for before a crash as well."""
        await self.moorage.namespaces.put({"metadata": {"name": NAMESPACE}})
        await self.pods.refresh()
        # What is neither here nor in the results was never asked for, or its pod was just deleted.
        here = {pod["metadata"]["name"] for pod in self.pods}
        await self._start(self._jobs.keys() - here - self._results.names)
        async with asyncio.TaskGroup() as group:
            following = group.create_task(self.follow())
            while len(self._results.names) < len(self._jobs) or len(self.pods):
                await self._work(await self.changed())
            following.cancel()

    async def _work(self, changes: Sequence[Change[Pod]]) -> None:
        """End what is over: first the result is on the disk, then the pod goes, then its successor comes."""
        latest = {change.object["metadata"]["name"]: change for change in changes}
        there = {name: each.object for name, each in latest.items() if each.type != "Deleted"}
        done = [name for name, pod in there.items() if phase(pod) == "Succeeded"]
        self._results.add(done)
        over = [
            pod
            for name, pod in there.items()
            if phase(pod) == "Lost" or name in self._results.names
        ]
        await self.end(over)
        gone = latest.keys() - there.keys() | {pod["metadata"]["name"] for pod in over}
        await self._start(gone - self._results.names)

    async def _start(self, names: Iterable[str]) -> None:
        """Have pods placed, or queued until there is room. To ask twice does nothing twice."""
        wanted = sorted(names, key=self._jobs.__getitem__)
        for batch in batched((job(self._jobs[name]) for name in wanted), PODS_PER_REQUEST):
            answer = await self.moorage.place(batch, on_unschedulable="Queue")
            assert {each["outcome"] for each in answer["results"]} <= {
                "Placed",
                "AlreadyPlaced",
                "Queued",
            }, answer


class Agents(Follower):
    """The agents of all nodes in one process: they start what is placed on their nodes, and report."""

    def __init__(self, moorage: AsyncClient, nodes: int, cpus: int, ended: Journal) -> None:
        super().__init__(moorage)
        self._alive = {f"node-{number}" for number in range(nodes)}
        self._mortal = {f"node-{number}" for number in range(0, nodes, LOST_EVERY)}
        self._cpus = cpus
        self._ended = ended
        self._running: dict[str, Pod] = {}

    async def run(self) -> None:
        """Be there until the process is ended."""
        nodes = [self._node(name) for name in sorted(self._alive)]
        async for result in self.moorage.apply_lines(nodes):
            assert result["result"] in {"Created", "Changed", "Unchanged"}, result
        await self.moorage.report_nodes(self._alive)
        async with asyncio.TaskGroup() as group:
            group.create_task(self._renew_leases())
            group.create_task(self.follow())
            group.create_task(self._work())

    def _node(self, name: str) -> dict[str, Any]:
        zone = "abc"[int(name.rpartition("-")[2]) % 3]
        labels = {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": zone}
        ready = {"type": "Ready", "status": "True"}
        room = {"cpu": str(self._cpus), "pods": "110"}
        status = {"allocatable": room, "conditions": [ready]}
        return {"kind": "Node", "metadata": {"name": name, "labels": labels}, "status": status}

    async def _renew_leases(self) -> None:
        while True:
            await self.moorage.report_nodes(self._alive)
            await asyncio.sleep(LEASE_SECONDS)

    async def _work(self) -> None:
        while True:
            started = [pod for each in await self.changed() if (pod := self._started(each))]
            self._check_room()
            self._lose({str(pod["spec"].get("nodeName")) for pod in started} & self._mortal)
            here = [pod for pod in started if pod["spec"]["nodeName"] in self._alive]
            await self._report(here, "Running")
            self._ended.add(pod["metadata"]["name"] for pod in here)
            await self._report(here, "Succeeded")

    def _started(self, change: Change[Pod]) -> Pod | None:
        """Take a change; return the pod if it is one to start now."""
        pod, name = change.object, change.object["metadata"]["name"]
        if change.type == "Deleted" or phase(pod) in {"Lost", "Succeeded"}:
            self._running.pop(name, None)
            return None
        if pod["spec"].get("nodeName") not in self._alive or phase(pod) != "Pending":
            return None
        self._running[name] = pod
        return pod

    def _check_room(self) -> None:
        used = Counter(pod["spec"]["nodeName"] for pod in self._running.values())
        assert max(used.values(), default=0) <= self._cpus, "a node is to run more than it can"

    def _lose(self, nodes: set[str]) -> None:
        """Let nodes die with all that they run: nobody hears of them or of their pods again."""
        self._alive -= nodes
        self._mortal -= nodes

    async def _report(self, pods: Sequence[Pod], reached: str) -> None:
        """Report the phase of many pods at once; one that is gone meanwhile does not keep the others."""
        for batch in batched(pods, REPORTS_PER_REQUEST):
            reports = [{**identity(pod), "status": {"phase": reached}} for pod in batch]
            for result in (await self.moorage.report_statuses(reports))["results"]:
                assert result["result"] in {"Changed", "Unchanged", "NotFound", "Conflict"}, result


async def main(given: argparse.Namespace) -> None:
    """Be the orchestrator, or the agents."""
    async with AsyncClient(given.url, retries=Retries(seconds_max=math.inf)) as moorage:
        if given.role == "agents":
            ended = Journal(given.folder / "ended")
            await Agents(moorage, given.nodes, given.cpus, ended).run()
        else:
            results = Journal(given.folder / "results")
            await Orchestrator(moorage, given.jobs, results).run()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("role", choices=["jobs", "agents"])
    parser.add_argument("--url", required=True, help="the server")
    parser.add_argument("--folder", type=Path, required=True, help="where the journals are")
    parser.add_argument("--jobs", type=int, default=1_000, help="how many jobs to run")
    parser.add_argument("--nodes", type=int, default=100, help="how many nodes to simulate")
    parser.add_argument("--cpus", type=int, default=4, help="how many jobs a node runs at once")
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    asyncio.run(main(parser.parse_args()))
