"""Callers over HTTP that write everything down, and the log read back from PostgreSQL."""

import asyncio
import hashlib
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from itertools import count
from typing import Any, NamedTuple

import httpx
import msgspec

from service.model.log.commit import LogPage
from service.scheduler.replica.loading import load
from service.store.postgres import PostgresStore
from tests.concurrency.checker.claims import MARK
from tests.concurrency.checker.history import Action, Call, History
from tests.processes import PLAIN_HTTP
from tests.waiting import WAIT_SECONDS

PAGE_CHANGES = 10_000
PATH = "/v1/clusters/default"
ASK_AGAIN_SECONDS = 0.1


class HangUp(NamedTuple):
    """A caller ends its connection before it is answered, and asks another server at once."""

    after_seconds: float


class Notebook:
    """The calls of all callers of a run."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self._numbers = count()
        self._operations = count(1)

    def next_operation(self) -> int:
        return next(self._operations)

    def next_number(self) -> int:
        return next(self._numbers)


class Caller:
    """One client, which asks the servers in turn and, with a key, until it is answered."""

    def __init__(
        self,
        notebook: Notebook,
        name: str,
        urls: Sequence[str],
        token: str,
        *,
        cluster: str = "default",
        servers: Sequence[httpx.AsyncClient] = (),
    ) -> None:
        """`servers` are those at the `urls`, if others use the same connections."""
        self._notebook = notebook
        self._name = name
        self._path = f"/v1/clusters/{cluster}"
        options = {"headers": bearer(token), "limits": httpx.Limits(max_keepalive_connections=1)}
        self._servers = [*servers] or [
            httpx.AsyncClient(base_url=url, **PLAIN_HTTP, **options)  # HTTP
            for url in urls
        ]

    async def close(self) -> None:
        for server in self._servers:
            await server.aclose()

    async def place(
        self,
        pods: Sequence[dict[str, Any]],
        *,
        group: bool = False,
        seconds: float = WAIT_SECONDS,
        hang_up: HangUp | None = None,
    ) -> Call:
        """Place pods, asking again for so long while the outcome is not known."""
        request = {"pods": pods, "policy": "AllOrNothing" if group else "BestEffort"}
        asked = {
            "pods": [("Pod", p["metadata"]["namespace"], p["metadata"]["name"]) for p in pods],
            "group": group,
            "dry_run": False,
            "queue": False,
        }
        return await self._until_answered(
            "place",
            asked,
            ("POST", "/placements"),
            request,
            seconds,
            manifests=pods,
            hang_up=hang_up,
        )

    async def try_out(self, pod: Mapping[str, Any]) -> tuple[str | None, int | None]:
        """The node that a pod would get and its score, if any; changes nothing."""
        content = msgspec.json.encode({"pods": [pod], "dryRun": True})
        told = await self._told(("POST", "/placements"), content, None)
        assert told["outcome"] == "ok", told
        (result,) = told["body"]["results"]
        return result.get("nodeName"), result.get("score")

    async def put_namespace(self, name: str, *, seconds: float = WAIT_SECONDS) -> Call:
        """Create a namespace."""
        item = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        return await self.put(item, seconds=seconds)

    async def put(self, manifest: Mapping[str, Any], *, seconds: float = WAIT_SECONDS) -> Call:
        """Create or change an object without a namespace, marked as the doing of this call."""
        operation, metadata = self._notebook.next_operation(), manifest["metadata"]
        annotations = {"annotations": {MARK: str(operation)}}
        item = {**manifest, "metadata": {**metadata, **annotations}}
        request = {"apiVersion": "v1", "kind": "List", "items": [item]}
        asked = {"objects": [(manifest["kind"], "", metadata["name"])], "dry_run": False}
        return await self._until_answered(
            "apply", asked, ("POST", "/apply"), request, seconds, operation=operation
        )

    async def delete_namespace(self, name: str, *, seconds: float = WAIT_SECONDS) -> Call:
        """Delete a namespace with everything in it; asked a second time, it may be gone."""
        asked = {"object": ("Namespace", "", name), "dry_run": False}
        return await self._until_answered(
            "delete", asked, ("DELETE", f"/namespaces/{name}"), None, seconds
        )

    async def delete_pod(self, namespace: str, name: str, *, seconds: float = WAIT_SECONDS) -> Call:
        """Delete a pod; asked a second time, it may be gone."""
        asked = {"object": ("Pod", namespace, name), "dry_run": False}
        path = f"/namespaces/{namespace}/pods/{name}"
        return await self._until_answered("delete", asked, ("DELETE", path), None, seconds)

    async def _until_answered(
        self,
        action: Action,
        asked: dict[str, Any],
        target: tuple[str, str],
        request: dict[str, Any] | None,
        seconds: float,
        *,
        manifests: Sequence[dict[str, Any]] = (),
        operation: int | None = None,
        hang_up: HangUp | None = None,
    ) -> Call:
        operation = operation or self._notebook.next_operation()
        deadline, attempts = time.monotonic() + seconds, 0
        content = b"" if request is None else msgspec.json.encode(request)
        key = f"key-{operation}" if target[0] == "POST" else None
        while True:
            number, called = self._notebook.next_number(), time.monotonic()
            patience = None if hang_up is None or attempts else hang_up.after_seconds
            told = await self._told(target, content, key, patience)
            call = Call(
                number=number,
                client=self._name,
                operation=operation,
                action=action,
                asked=asked,
                manifests=manifests,
                key=key,
                request_hash=hashlib.sha256(content).hexdigest(),
                called=called,
                returned=time.monotonic(),
                recorded=key is not None and attempts > 0 and told["outcome"] == "ok",
                **told,
            )
            self._notebook.calls.append(call)
            is_gone = action == "delete" and attempts > 0 and call.status == "NotFound"
            if call.outcome == "ok" or is_gone or time.monotonic() > deadline:
                return call
            attempts += 1
            self._servers.append(self._servers.pop(0))
            at_once = patience is not None and told["status"] == "ReadTimeout"
            await asyncio.sleep(0 if at_once else ASK_AGAIN_SECONDS)

    async def _told(
        self,
        target: tuple[str, str],
        content: bytes,
        key: str | None,
        patience: float | None = None,
    ) -> dict[str, Any]:
        method, path = target
        headers = {"Content-Type": "application/json"} if content else {}
        if key is not None:
            headers["Idempotency-Key"] = key
        try:
            response = await self._servers[0].request(
                method,
                self._path + path,
                content=content,
                headers=headers,
                timeout=httpx.Timeout(WAIT_SECONDS, read=patience or WAIT_SECONDS),
            )
        except httpx.HTTPError as error:
            return {"outcome": "unknown", "status": type(error).__name__}
        body = msgspec.json.decode(response.content)
        if response.status_code == httpx.codes.OK:
            revision = int(response.headers["Moorage-Revision"])
            # What a delete shows is a rendering of what the log has, which is not compared.
            shown = None if method == "DELETE" else body
            return {"outcome": "ok", "status": "ok", "revision": revision, "body": shown}
        if response.status_code == httpx.codes.INTERNAL_SERVER_ERROR:
            return {"outcome": "unknown", "status": f"InternalError {body}"}
        return {"outcome": _outcome(body["code"]), "status": body["code"]}


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def _outcome(code: str) -> Any:
    return "unknown" if code == "OutcomeUnknown" else "fail"


async def read_history(
    url: str, calls: Sequence[Call], *, granted: int, cluster: str = "default"
) -> History:
    """What PostgreSQL has after a run, and the calls that led to it in the order of their begin.

    What was written up to the revision `granted` was there before.
    """
    store = PostgresStore(url)
    try:
        cluster_id = await store.clusters.find(cluster)
        pages = [page async for page in _pages(store, cluster_id)]
        snapshot = await load(store, cluster_id)
    finally:
        await store.close()
    return History(
        calls=sorted(calls, key=lambda call: call.number),
        commits=[commit for page in pages for commit in page.commits],
        changes=[change for page in pages for change in page.changes],
        head=(pages[-1].head.revision, pages[-1].head.tip),
        rows={tuple(row.key): (row.revision, row.body) for row in snapshot.rows},
        granted=granted,
        storage_fails=True,
    )


async def _pages(store: PostgresStore, cluster_id: int) -> AsyncIterator[LogPage]:
    """The whole log, which is quiet."""
    revision, tip = 0, None
    while True:
        page = await store.log.read(cluster_id, revision, tip, PAGE_CHANGES)
        assert isinstance(page, LogPage)
        yield page
        if page.revision == page.head.revision:
            return
        revision, tip = page.revision, page.tip
