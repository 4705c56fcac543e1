"""Clients: they ask, are answered or not, ask again, and write everything down."""

import asyncio
import hashlib
import random
from collections.abc import Callable
from typing import Any

import msgspec

from service.model.errors import MoorageError, OutcomeUnknown
from service.scheduler.answers import ComputedAnswer, ObjectAnswer, RecordedAnswer
from service.scheduler.intents import (
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
from service.scheduler.placements import PodRef
from tests.concurrency.checker.history import Call
from tests.concurrency.simulation import workload
from tests.concurrency.simulation.database import Database
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
    intent: Any
    key: str | None = None
    manifests: list[dict[str, Any]] = []


class Crowd:
    """What all clients share: the names that they fight over, and their common notebook."""

    def __init__(self, database: Database, source: random.Random, workers: list[Worker]) -> None:
        self.database = database
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
        self._operations = 0
        self._keys: list[Operation] = []

    def alive(self) -> list[Worker]:
        """Those that let requests in."""
        return [worker for worker in self.workers if worker.alive and not worker.draining]

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
        """Leave pending pods alone, so that every placement is some client's."""
        return self._patching(self.next_number(), {"placePendingPods": False})

    def evicting_soon(self) -> Operation:
        """A run is short: what has to go must go within it."""
        settings = {
            "affinityViolationGraceSeconds": self.random.choice((0, 1, 2)),
            "antiAffinityVictim": self.random.choice(("RuleOwner", "LowestPriority")),
            "evictionsPerMinute": self.random.choice((2, 60, 60)),
        }
        return self._patching(self.next_number(), settings)

    def admitting_hermits(self) -> Operation:
        settings = {"restrictAllNamespacesAntiAffinity": False}
        return self._patching(self.next_number(), settings)

    def _patching(self, number: int, settings: dict[str, Any]) -> Operation:
        patch = settings | workload.numbered(number)
        intent = PatchConfig(patch_type="merge", patch=patch)
        return Operation(number=number, action="config", asked=patch, intent=intent)

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
        intent = PlacePods(
            pods=workload.parsed_pods(manifests),
            all_or_nothing=group,
            queue=queue,
            dry_run=dry_run,
        )
        asked = {
            "pods": [("Pod", *each) for each in names],
            "group": group,
            "dry_run": dry_run,
            "queue": queue,
        }
        operation = Operation(
            number=number, action="place", asked=asked, intent=intent, manifests=manifests
        )
        if pick.random() < 0.4:
            operation.key = f"key-{number}"
            self._keys.append(operation)
        return operation

    def _place_stored(self, number: int) -> Operation:
        name = self.random.choice(self.pods)
        intent = PlacePods(pod_refs=(PodRef(namespace=name[0], name=name[1]),))
        asked = {"pods": [("Pod", *name)], "group": False, "dry_run": False, "queue": False}
        return Operation(number=number, action="place", asked=asked, intent=intent)

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
        wanted = None
        if self.random.random() < 0.2:
            present = self.database.store._clusters[1].objects.get(key)  # type: ignore[call-overload]
            wanted = str(present.revision - self.random.choice((0, 0, 1))) if present else None
        intent = PutObject(
            manifest=workload.parsed(manifest),
            preconditions=Preconditions(resource_version=wanted),
        )
        asked = {"object": key, "resource_version": wanted}
        return Operation(number=number, action="put", asked=asked, intent=intent)

    def _delete_pod(self, number: int) -> Operation:
        name = self.random.choice(self.pods) if self.pods else ("shop", "none")
        return self._delete(number, "Pod", *name)

    def _delete(self, number: int, kind: str, inside: str, name: str) -> Operation:
        intent = DeleteObject(kind=kind, namespace=inside, name=name)
        asked = {"object": (kind, inside, name)}
        return Operation(number=number, action="delete", asked=asked, intent=intent)

    def _evict_pod(self, number: int) -> Operation:
        inside, name = self.random.choice(self.pods) if self.pods else ("shop", "none")
        intent = EvictPod(namespace=inside, name=name)
        asked = {"object": ("Pod", inside, name)}
        return Operation(number=number, action="evict", asked=asked, intent=intent)

    def _confirm_eviction(self, number: int) -> Operation:
        """As an orchestrator does that has stopped the pod."""
        marked = [
            key
            for key, row in self.database.store._clusters[1].objects.items()
            if key.kind == "Pod" and b"deletionTimestamp" in row.body
        ]
        if not marked:
            return self._delete_pod(number)
        return self._delete(number, *self.random.choice(sorted(marked)))

    def _read_quotas(self, number: int) -> Operation:
        return Operation(
            number=number, action="quotas", asked={}, intent=ReadComputed(kind="ResourceQuota")
        )

    def _apply(self, number: int) -> Operation:
        manifests = [
            marked(self.manifest("Node"), number),
            marked(self.manifest("Namespace"), number),
        ]
        keys = [(each["kind"], "", each["metadata"]["name"]) for each in manifests]
        intent = ApplyObjects(manifests=tuple(map(workload.parsed, manifests)))
        return Operation(number=number, action="apply", asked={"objects": keys}, intent=intent)

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
        intent = ApplyObjects(manifests=tuple(map(workload.parsed, manifests)))
        return Operation(number=number, action="apply", asked={"objects": keys}, intent=intent)

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
        intent = ReadTopology(key=workload.ZONE)
        asked = {"topology_key": workload.ZONE}
        return Operation(number=number, action="topology", asked=asked, intent=intent)

    def _get(self, number: int) -> Operation:
        inside, name = self.random.choice(self.pods) if self.pods else ("shop", "none")
        asked = {"object": ("Pod", inside, name)}
        return Operation(number=number, action="get", asked=asked, intent=None)


class Client:
    """One caller, asking one thing after the other."""

    def __init__(self, crowd: Crowd, name: str, *, cluster: str = "default") -> None:
        self._crowd = crowd
        self._name = name
        self._cluster = cluster
        self._random = crowd.random
        self._worker: Worker | None = None
        self._mean_pause = crowd.random.choice((0.0, 0.01, 0.05))

    async def run(self, operations: int) -> None:
        names, weights = list(self._crowd.actions), list(self._crowd.actions.values())
        for _ in range(operations):
            action = self._random.choices(names, weights)[0]
            operation = self._crowd.reused_key() or self._crowd.operation(action)
            await self.perform(operation)
            if self._mean_pause and self._random.random() < 0.5:
                await asyncio.sleep(self._random.expovariate(1 / self._mean_pause))

    async def gather(self, source: random.Random, operations: int) -> None:
        """Have pod groups grow and shrink while others work."""
        for _ in range(operations):
            await self.perform(self._crowd.gather(source))
            await asyncio.sleep(source.expovariate(20))

    async def seclude(self, source: random.Random, operations: int) -> None:
        """Have pods come and go that want to be alone."""
        for _ in range(operations):
            await self.perform(self._crowd.seclude(source))
            await asyncio.sleep(source.expovariate(20))

    async def perform(self, operation: Operation, attempts: int = 4) -> Call | None:
        """Ask until the outcome is known, or patience ends."""
        call = None
        for _ in range(attempts):
            call = await self.ask(operation)
            asks_again = call.outcome == "unknown" or call.status in _ASK_AGAIN
            if not asks_again and not (operation.key and self._random.random() < 0.15):
                break
            if self._random.random() < 0.1:
                break
        return call

    async def ask(self, operation: Operation) -> Call:
        crowd, loop = self._crowd, self._crowd.database.loop
        number, called = len(crowd.calls), loop.steps
        crowd.calls.append(None)  # type: ignore[arg-type] - it is filled when it returns
        head_called = crowd.database.head_of(1)
        told = await self._told(operation)
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
        return call

    async def _told(self, operation: Operation) -> dict[str, Any]:
        if operation.action == "get":
            return await self._get(operation)
        worker = await self._some_worker()
        reply = worker.ask(self._cluster, operation.intent, _idempotency(operation))
        patience = self._random.choice((PATIENCE_SECONDS,) * 6 + (0.05,))
        await asyncio.wait({reply}, timeout=patience)
        if not reply.done():
            worker.forget(reply)
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
        read = await database.store.get_object(1, *operation.asked["object"])
        row = read.row
        found = None if row is None else {"resourceVersion": row.revision, "object": row.body}
        await asyncio.sleep(database.travel_seconds())
        told = {"revision": read.head.revision, "body": found}
        if found is None:
            return told | {"outcome": "fail", "status": "NotFound"}
        return told | {"outcome": "ok", "status": "ok"}

    async def _some_worker(self) -> Worker:
        left = self._worker is None or not self._worker.alive or self._worker.draining
        if left or self._random.random() < 0.2:
            while not self._crowd.alive():  # noqa: ASYNC110 - as clients do
                await asyncio.sleep(0.1)
            self._worker = self._random.choice(self._crowd.alive())
        return self._worker


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
