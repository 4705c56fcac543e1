"""Clients: they ask, are answered or not, ask again, and write everything down."""

import asyncio
import hashlib
import random
from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec

from service.model.core.errors import MoorageError, OutcomeUnknown
from service.scheduler.protocol.answers import ComputedAnswer, ObjectAnswer, RecordedAnswer
from service.scheduler.protocol.intents import (
    ApplyObjects,
    DeleteObject,
    EvictPod,
    Idempotency,
    PatchConfig,
    PlacePods,
    Preconditions,
    PutObject,
    ReadComputed,
    ReadTopology,
)
from service.scheduler.protocol.placements import PodRef
from tests.concurrency.checker.history import Call
from tests.concurrency.simulation import workload
from tests.concurrency.simulation.choices import ACTOR
from tests.concurrency.simulation.database import Database
from tests.concurrency.simulation.eventloop import SimulatedLoop
from tests.concurrency.simulation.workers import Worker
from tests.concurrency.simulation.workload import NAMESPACES, marked

ACTIONS = (
    ("place", 46),
    ("place group", 10),
    ("relabel node", 14),
    ("relabel namespace", 6),
    ("delete pod", 9),
    ("evict pod", 3),
    ("confirm eviction", 5),
    ("put quota", 4),
    ("delete quota", 1),
    ("read quotas", 2),
    ("delete node", 4),
    ("delete namespace", 1),
    ("apply nodes", 3),
    ("configure", 5),
    ("read topology", 4),
    ("get", 5),
)
PATIENCE_SECONDS = 60.0


class Operation(msgspec.Struct, kw_only=True):
    """What a client wants; it may have to ask several times."""

    number: int
    action: str
    asked: dict[str, Any]
    key: str | None = None
    manifests: list[dict[str, Any]] = []
    """The pods to be placed."""
    objects: list[dict[str, Any]] = []
    """Those to be put or applied."""
    revisions_behind: int | None = None
    """If a put expects a revision: by how much that is older than the object's when it is asked."""

    def intent(self) -> Any:
        return _INTENTS[self.action](self)

    def __str__(self) -> str:
        key = f" under {self.key}" if self.key else ""
        return f"{self.action} {_told_shortly(self.asked)}{key}"


def _told_shortly(asked: dict[str, Any]) -> str:
    """Objects by their names, and what is set."""
    keys = [asked["object"]] if "object" in asked else asked.get("pods", asked.get("objects", []))
    names = ", ".join("/".join(filter(None, each)) for each in keys)
    options = {n: v for n, v in asked.items() if v and n not in ("object", "objects", "pods")}
    told = ", ".join(n if v is True else f"{n}={v}" for n, v in options.items())
    return " ".join(filter(None, (names, told and f"({told})")))


def _told(call: Call) -> str:
    at = "" if call.revision is None else f" at revision {call.revision}"
    if call.action != "place" or call.outcome != "ok":
        return f"{call.status}{at}"
    results = (
        f"{each['name']} {each.get('nodeName') or each['outcome']}" for each in call.body["results"]
    )
    return f"{call.status}{at}: {', '.join(results)}"


def _placement(operation: Operation) -> PlacePods:
    asked = operation.asked
    if not operation.manifests:
        _, inside, name = asked["pods"][0]
        preemption = "Evict" if asked.get("evict") else "Never"
        return PlacePods(
            pod_refs=(PodRef(namespace=inside, name=name),),
            preemption=preemption,
            preemption_scope=asked.get("scope", "Node"),
        )
    return PlacePods(
        pods=workload.parsed_pods(operation.manifests),
        all_or_nothing=asked["group"],
        queue=asked["queue"],
        dry_run=asked["dry_run"],
        preemption="Evict" if asked.get("evict") else "Never",
        preemption_scope=asked.get("scope", "Node"),
    )


def _put(operation: Operation) -> PutObject:
    wanted = Preconditions(resource_version=operation.asked["resource_version"])
    return PutObject(manifest=workload.parsed(operation.objects[0]), preconditions=wanted)


def _deletion(operation: Operation) -> DeleteObject:
    kind, inside, name = operation.asked["object"]
    return DeleteObject(kind=kind, namespace=inside, name=name)


def _eviction(operation: Operation) -> EvictPod:
    _, inside, name = operation.asked["object"]
    return EvictPod(namespace=inside, name=name)


_INTENTS: dict[str, Callable[[Operation], Any]] = {
    "place": _placement,
    "put": _put,
    "apply": lambda own: ApplyObjects(manifests=tuple(map(workload.parsed, own.objects))),
    "delete": _deletion,
    "evict": _eviction,
    "config": lambda own: PatchConfig(patch_type="merge", patch=own.asked),
    "topology": lambda own: ReadTopology(key=own.asked["topology_key"]),
    "quotas": lambda own: ReadComputed(kind="ResourceQuota"),
    "get": lambda own: None,
}


def _priority_of(manifest: dict[str, Any]) -> int:
    """Return a priority, the same whenever a pod of that name is asked for."""
    return int(sum(map(ord, manifest["metadata"]["name"]))) % 3 * 5


class Crowd:
    """What all clients share: the names that they fight over, and their common notebook."""

    def __init__(self, database: Database, source: random.Random, workers: list[Worker]) -> None:
        self.database = database
        self.choices = database.choices
        self.random = source
        self.workers = workers
        self.calls: list[Call] = []
        self.zones = source.choice((2, 3))
        self.nodes = [f"n{index}" for index in range(source.randrange(3, 8))]
        self.apps = [f"app-{index}" for index in range(source.randrange(2, 4))]
        self.shapes = [
            *source.sample(range(workload.LASTING.start), 4),
            *source.sample(workload.LASTING, source.choice((1, 3, 5))),
        ]
        self.actions = dict(ACTIONS)
        if source.random() < 0.3:
            # What is placed does not stay right for long, and may soon be right again.
            self.nodes = self.nodes[:3]
            self.actions |= {"relabel node": 50, "delete pod": 2, "delete node": 1}
        self.pods: list[tuple[str, str]] = []
        """Namespace and name of what was ever asked for."""
        self.probed: list[int] = self.choices.take("probes", [0, 1, 2], lambda: self.shapes[:3])
        """Shapes of pods that workers are asked about at the end."""
        self.preempting: random.Random | None = None
        """Where pods have priorities, and placements may evict others."""
        self.by_domains = False
        """Whether the others may be on any node."""
        self._operations = 0
        self._keys: list[Operation] = []

    def alive(self) -> list[Worker]:
        """Return the workers that let requests in."""
        return [worker for worker in self.workers if worker.alive and not worker.draining]

    def one_of(self, workers: list[Worker], name: str, source: random.Random) -> Worker:
        """The choice of a worker is a decision; plainly, or if it is not there, it is the first."""
        slot = self.choices.take(name, None, lambda: source.choice(workers).place.slot)
        return next((each for each in workers if each.place.slot == slot), workers[0])

    def wanted(self, name: str, make: Callable[[], Operation]) -> Operation | None:
        """What somebody asks for is a decision too; plainly it is nothing."""
        made: list[Operation] = []
        taken = self.choices.take(f"{name}/ask", None, lambda: _noted(made, make()))
        if made or taken is None:
            return made[0] if made else None
        return self._again(taken)

    def _again(self, taken: dict[str, Any]) -> Operation:
        operation = msgspec.convert(taken, Operation)
        asked = operation.asked = dict(operation.asked)
        for name in ("pods", "objects"):
            if name in asked:
                asked[name] = [tuple(each) for each in asked[name]]
        if "object" in asked:
            asked["object"] = tuple(asked["object"])
        if "resource_version" in asked:
            asked["resource_version"] = self._expected(operation)
        return operation

    def _expected(self, operation: Operation) -> str | None:
        objects = self.database.store.states[1].objects
        present = objects.get(operation.asked["object"])
        if present is None or operation.revisions_behind is None:
            return None
        return str(present.revision - operation.revisions_behind)

    def next_number(self) -> int:
        self._operations += 1
        return self._operations

    def operation(self, action: str) -> Operation:
        make: dict[str, Callable[[int], Operation]] = {
            "place": self._place,
            "place group": self._place_group,
            "relabel node": lambda n: self._put(n, "Node"),
            "relabel namespace": lambda n: self._put(n, "Namespace"),
            "delete pod": self._delete_pod,
            "evict pod": self._evict_pod,
            "confirm eviction": self._confirm_eviction,
            "put quota": self._put_quota,
            "delete quota": lambda n: self._delete(n, *self._some_quota()),
            "read quotas": self._read_quotas,
            "delete node": lambda n: self._delete(n, "Node", "", self.random.choice(self.nodes)),
            "delete namespace": lambda n: self._delete(n, "Namespace", "", NAMESPACES[1]),
            "apply nodes": self._apply,
            "configure": self._configure,
            "read topology": self._read_topology,
            "get": self._get,
        }
        return make[action](self.next_number())

    def without_queue(self) -> Operation:
        """Leave pending pods alone, so that every placement is some client's; pods of deleted nodes end."""
        settings = {"placePendingPods": False, "deletedNodePods": "Fail"}
        return self._patching(self.next_number(), settings)

    def evicting_soon(self) -> Operation:
        """A run is short: what has to go must go within it."""
        settings = {
            "affinityViolationGraceSeconds": self.random.choice((0, 1, 2)),
            "antiAffinityVictim": self.random.choice(("RuleOwner", "LowestPriority")),
            "evictionsPerMinute": self.random.choice((2, 60, 60)),
            "orphanGraceSeconds": 1,
        }
        return self._patching(self.next_number(), settings)

    def protecting(self) -> Operation:
        """Each namespace has a budget, so that evictions have to wait for pods that come."""
        manifests = [workload.budget_manifest(each) for each in NAMESPACES]
        keys = [(each["kind"], each["metadata"]["namespace"], "kept") for each in manifests]
        asked = {"objects": keys}
        number = self.next_number()
        marked_ones = [marked(each, number) for each in manifests]
        return Operation(number=number, action="apply", asked=asked, objects=marked_ones)

    def admitting_hermits(self) -> Operation:
        settings = {"restrictAllNamespacesAntiAffinity": False}
        return self._patching(self.next_number(), settings)

    def _patching(self, number: int, settings: dict[str, Any]) -> Operation:
        patch = settings | workload.numbered(number)
        return Operation(number=number, action="config", asked=patch)

    def manifest(self, kind: str) -> Any:
        if kind == "Node":
            name = self.random.choice(self.nodes)
            return workload.node_manifest(self.random, name, self.zones)
        return workload.namespace_manifest(self.random, self.random.choice(NAMESPACES[:2]))

    def reused_key(self) -> Operation | None:
        """Another request under a key that was used before, which has to be refused."""
        keyed = [each for each in self._keys if each.key]
        if not keyed or self.random.random() > 0.03:
            return None
        other = self._place(self.next_number())
        other.key = self.random.choice(keyed).key
        return other

    def _place(self, number: int) -> Operation:
        pick = self.random
        if self.pods and pick.random() < 0.12:
            return self._place_stored(number)
        shape, app = pick.choice(self.shapes), pick.choice(self.apps)
        inside = pick.choices(NAMESPACES, (6, 3, 1))[0]
        manifests = [
            marked(workload.pod_manifest(shape, app, f"{app}-s{shape}-{each}", inside), number)
            for each in pick.sample(range(14), pick.choice((1, 1, 1, 2, 3)))
        ]
        return self._placing(number, manifests)

    def _place_group(self, number: int) -> Operation:
        pick = self.random
        kind, app = pick.randrange(workload.GROUPS), pick.choice(self.apps)
        name = f"{app}-g{kind}-{pick.randrange(3)}"
        manifests = workload.group_manifests(kind, app, name, NAMESPACES[0])
        return self._placing(number, [marked(each, number) for each in manifests], group=True)

    def _placing(self, number: int, manifests: list[Any], *, group: bool = False) -> Operation:
        pick = self.random
        names = [(each["metadata"]["namespace"], each["metadata"]["name"]) for each in manifests]
        self.pods.extend(names)
        queue, dry_run = pick.random() < 0.3, pick.random() < 0.05
        asked = {
            "pods": [("Pod", *each) for each in names],
            "group": group,
            "dry_run": dry_run,
            "queue": queue,
        }
        if self.preempting is not None and not group:
            asked["evict"] = self.preempting.random() < 0.7
            asked |= self._scope()
            for each in manifests:
                each["spec"] = each["spec"] | {"priority": _priority_of(each)}
        operation = Operation(number=number, action="place", asked=asked, manifests=manifests)
        if pick.random() < 0.4:
            operation.key = f"key-{number}"
            self._keys.append(operation)
        return operation

    def _place_stored(self, number: int) -> Operation:
        name = self.random.choice(self.pods)
        asked = {"pods": [("Pod", *name)], "group": False, "dry_run": False, "queue": False}
        if self.preempting is not None:
            asked |= {"evict": True} | self._scope()
        return Operation(number=number, action="place", asked=asked)

    def _scope(self) -> dict[str, str]:
        return {"scope": "Domains"} if self.by_domains else {}

    def _put(self, number: int, kind: str) -> Operation:
        manifest = marked(self.manifest(kind), number)
        return self._putting(number, manifest, (kind, "", manifest["metadata"]["name"]))

    def _put_quota(self, number: int) -> Operation:
        key = self._some_quota()
        manifest = workload.quota_manifest(self.random, key[2], key[1])
        return self._putting(number, marked(manifest, number), key)

    def _some_quota(self) -> tuple[str, str, str]:
        return "ResourceQuota", self.random.choice(NAMESPACES[:2]), self.random.choice(("q0", "q1"))

    def _putting(self, number: int, manifest: Any, key: tuple[str, str, str]) -> Operation:
        asked = {"object": key, "resource_version": None}
        operation = Operation(number=number, action="put", asked=asked, objects=[manifest])
        if self.random.random() < 0.2:
            present = key in self.database.store.states[1].objects
            operation.revisions_behind = self.random.choice((0, 0, 1)) if present else None
            asked["resource_version"] = self._expected(operation)
        return operation

    def _delete_pod(self, number: int) -> Operation:
        name = self.random.choice(self.pods) if self.pods else ("shop", "none")
        return self._delete(number, "Pod", *name)

    def _delete(self, number: int, kind: str, inside: str, name: str) -> Operation:
        asked = {"object": (kind, inside, name)}
        return Operation(number=number, action="delete", asked=asked)

    def _evict_pod(self, number: int) -> Operation:
        inside, name = self.random.choice(self.pods) if self.pods else ("shop", "none")
        asked = {"object": ("Pod", inside, name)}
        return Operation(number=number, action="evict", asked=asked)

    def _confirm_eviction(self, number: int) -> Operation:
        """Confirm an eviction, as an orchestrator does that has stopped the pod."""
        marked = [
            key
            for key, row in self.database.store.states[1].objects.items()
            if key.kind == "Pod" and b"deletionTimestamp" in row.body
        ]
        if not marked:
            return self._delete_pod(number)
        return self._delete(number, *self.random.choice(sorted(marked)))

    def _read_quotas(self, number: int) -> Operation:
        return Operation(number=number, action="quotas", asked={})

    def _apply(self, number: int) -> Operation:
        manifests = [
            marked(self.manifest("Node"), number),
            marked(self.manifest("Namespace"), number),
        ]
        keys = [(each["kind"], "", each["metadata"]["name"]) for each in manifests]
        return Operation(number=number, action="apply", asked={"objects": keys}, objects=manifests)

    def gather(self, source: random.Random) -> Operation:
        """A member or two of a pod group, the group itself, or one member less."""
        number, name = self.next_number(), source.choice(("gang-0", "gang-1"))
        if source.random() < 0.2:
            return self._delete(number, "Pod", NAMESPACES[0], f"{name}-m{source.randrange(6)}")
        if source.random() < 0.25:
            manifests = [workload.pod_group_manifest(source, name, NAMESPACES[0])]
        else:
            manifests = [workload.member_manifest(source, name, NAMESPACES[0])]
        manifests = [marked(each, number) for each in manifests]
        keys = [(each["kind"], NAMESPACES[0], each["metadata"]["name"]) for each in manifests]
        return Operation(number=number, action="apply", asked={"objects": keys}, objects=manifests)

    def seclude(self, source: random.Random) -> Operation:
        """A pod that tolerates nobody, a quota on what such pods take, or what that is now."""
        number, inside = self.next_number(), source.choice(NAMESPACES[:2])
        name = f"hermit-{source.randrange(5)}"
        match source.choices(
            ("place", "delete", "quota", "read", "configure"), (50, 15, 15, 15, 5)
        ):
            case ["place"]:
                manifest = marked(workload.hermit_manifest(source, name, inside), number)
                return self._placing(number, [manifest])
            case ["delete"]:
                return self._delete(number, "Pod", inside, name)
            case ["quota"]:
                manifest = marked(workload.hermit_quota(source, "hermits", inside), number)
                return self._putting(number, manifest, ("ResourceQuota", inside, "hermits"))
            case ["read"]:
                return self._read_quotas(number)
        basis = source.choice(("Largest", "Average"))
        return self._patching(number, {"opportunityCostBasis": basis})

    def _configure(self, number: int) -> Operation:
        return self._patching(number, workload.config_patch(self.random))

    def _read_topology(self, number: int) -> Operation:
        return Operation(number=number, action="topology", asked={"topology_key": workload.ZONE})

    def _get(self, number: int) -> Operation:
        inside, name = self.random.choice(self.pods) if self.pods else ("shop", "none")
        asked = {"object": ("Pod", inside, name)}
        return Operation(number=number, action="get", asked=asked)


def _noted(made: list[Operation], operation: Operation) -> dict[str, Any]:
    made.append(operation)
    return msgspec.to_builtins(operation)  # type: ignore[no-any-return]


class Client:
    """One caller, asking one thing after the other."""

    def __init__(self, crowd: Crowd, name: str, *, cluster: str = "default") -> None:
        self._crowd = crowd
        self._choices = crowd.choices
        self._name = name
        self._cluster = cluster
        self._random = crowd.random
        self._worker: Worker | None = None
        self._mean_pause = crowd.random.choice((0.0, 0.01, 0.05))

    async def run(self, operations: int) -> None:
        names, weights = list(self._crowd.actions), list(self._crowd.actions.values())

        def some_operation() -> Operation:
            action = self._random.choices(names, weights)[0]
            return self._crowd.reused_key() or self._crowd.operation(action)

        def some_pause() -> float:
            if self._mean_pause and self._random.random() < 0.5:
                return self._random.expovariate(1 / self._mean_pause)
            return 0.0

        await self._go_on(operations, some_operation, some_pause)

    async def gather(self, source: random.Random, operations: int) -> None:
        """Have pod groups grow and shrink while others work."""
        make = partial(self._crowd.gather, source)
        await self._go_on(operations, make, partial(source.expovariate, 20))

    async def seclude(self, source: random.Random, operations: int) -> None:
        """Have pods come and go that want to be alone."""
        make = partial(self._crowd.seclude, source)
        await self._go_on(operations, make, partial(source.expovariate, 20))

    async def _go_on(
        self, operations: int, make: Callable[[], Operation], pause: Callable[[], float]
    ) -> None:
        """Ask one thing after the other, each not before it was asked in the run of the seed."""
        ACTOR.set(self._name)
        loop = self._crowd.database.loop
        for number in range(operations):
            name = f"{self._name}/{number}"
            if (operation := self._crowd.wanted(name, make)) is None:
                continue
            starts = self._choices.take(f"{name}/starts", 0.0, loop.time)
            if starts > loop.time():
                await loop.until(starts)
            await self.perform(operation, name)
            rested = self._choices.take(f"{name}/rests until", 0.0, lambda: _rested(loop, pause()))
            if rested:
                await loop.until(rested)

    async def perform(self, operation: Operation, name: str, attempts: int = 4) -> None:
        """Ask until the outcome is known, or patience ends."""
        for attempt in range(attempts):
            asking = f"{name}/{attempt}"
            call = await self.ask(operation, asking)
            asks_again = call.outcome == "unknown" or call.status in _ASK_AGAIN
            if not asks_again and not (
                operation.key and self._choices.does(f"{asking}/again", self._random, 0.15)
            ):
                break
            if self._choices.does(f"{asking}/gives up", self._random, 0.1):
                break

    async def ask(self, operation: Operation, name: str) -> Call:
        """What is done for this request is done under its `name`."""
        ACTOR.set(name)
        crowd, loop = self._crowd, self._crowd.database.loop
        number, called = len(crowd.calls), loop.steps
        crowd.calls.append(None)  # type: ignore[arg-type] - it is filled when it returns
        head_called = crowd.database.head_of(1)
        told = await self._told(operation, name)
        call = Call(
            number=number,
            client=self._name,
            operation=operation.number,
            action=operation.action,  # type: ignore[arg-type]
            asked=operation.asked,
            manifests=operation.manifests,
            key=operation.key,
            request_hash=request_hash(operation).hex(),
            called=called,
            returned=loop.steps,
            head_called=head_called,
            head_returned=crowd.database.head_of(1),
            **told,
        )
        crowd.calls[number] = call
        loop.tell(f"{name} is told {_told(call)}")
        return call

    async def _told(self, operation: Operation, name: str) -> dict[str, Any]:
        if operation.action == "get":
            return await self._get(operation)
        worker = await self._some_worker(name)
        loop = self._crowd.database.loop
        loop.tell(f"{name} asks {worker.process.name} to {operation}")
        reply = worker.ask(self._cluster, operation.intent(), _idempotency(operation))
        patiences = (PATIENCE_SECONDS,) * 6 + (0.05,)
        patience = self._choices.take(
            f"{name}/patience", PATIENCE_SECONDS, lambda: self._random.choice(patiences)
        )
        await asyncio.wait({reply}, timeout=patience)
        if not reply.done():
            worker.forget(reply)
            loop.tell(f"{name} hangs up")
            return {"outcome": "unknown", "status": "GaveUp"}
        return self._read(reply)

    def _read(self, reply: asyncio.Future[Any]) -> dict[str, Any]:
        try:
            answer = reply.result()
        except ConnectionResetError:
            self._worker = None
            return {"outcome": "unknown", "status": "Reset"}
        except OutcomeUnknown as error:
            return {"outcome": "unknown", "status": error.code}
        except MoorageError as error:
            return {"outcome": "fail", "status": error.code}
        except Exception as error:  # noqa: BLE001 - a bug of the product: 500
            return {"outcome": "unknown", "status": f"InternalError {error!r}"}
        recorded = isinstance(answer, RecordedAnswer)
        return {
            "outcome": "ok",
            "status": "ok",
            "revision": answer.revision,
            "body": _body(answer),
            "recorded": recorded,
        }

    async def _get(self, operation: Operation) -> dict[str, Any]:
        """Single objects are read from the tables."""
        database = self._crowd.database
        await asyncio.sleep(database.travel_seconds())
        read = await database.store.objects.get(1, *operation.asked["object"])
        row = read.row
        found = None if row is None else {"resourceVersion": row.revision, "object": row.body}
        await asyncio.sleep(database.travel_seconds())
        told = {"revision": read.head.revision, "body": found}
        if found is None:
            return told | {"outcome": "fail", "status": "NotFound"}
        return told | {"outcome": "ok", "status": "ok"}

    async def _some_worker(self, name: str) -> Worker:
        left = self._worker is None or not self._worker.alive or self._worker.draining
        if left or self._choices.does(f"{name}/leaves", self._random, 0.2):
            while not self._crowd.alive():  # noqa: ASYNC110 - as clients do
                await asyncio.sleep(0.1)
            alive = self._crowd.alive()
            self._worker = self._crowd.one_of(alive, f"{name}/goes to", self._random)
        return self._worker


def _rested(loop: SimulatedLoop, pause: float) -> float:
    return loop.time() + pause if pause else 0.0


_ASK_AGAIN = ("StorageUnavailable", "Overloaded", "IdempotencyKeyInProgress")


def request_hash(operation: Operation) -> bytes:
    return hashlib.sha256(repr(operation.asked).encode()).digest()[:8]


def _idempotency(operation: Operation) -> Idempotency[Any] | None:
    if operation.key is None:
        return None
    return Idempotency(
        operation="placePods",
        key=operation.key,
        request_hash=request_hash(operation),
        encode=msgspec.json.encode,
    )


def _body(answer: Any) -> Any:
    if isinstance(answer, RecordedAnswer):
        return msgspec.json.decode(answer.answer)
    if isinstance(answer, ObjectAnswer):
        return {
            "resourceVersion": answer.resource_version,
            "created": answer.created,
            "object": answer.body,
        }
    if isinstance(answer, ComputedAnswer):
        return [
            {
                "namespace": each.namespace,
                "name": each.name,
                "resourceVersion": each.resource_version,
                "object": each.body,
            }
            for each in answer.objects
        ]
    return msgspec.json.decode(msgspec.json.encode(answer))
