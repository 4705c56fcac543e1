"""Callers over HTTP that write everything down, and the log read back from PostgreSQL."""

import asyncio
import hashlib
import time
from collections.abc import Sequence
from itertools import count
from typing import Any

import httpx
import msgspec

from service.model.log import LogPage
from service.store.postgres import PostgresStore
from tests.concurrency.checker.history import Call, History

RETRY_STATUSES = (408, 409, 429, 503)
PATH = "/v1/clusters/default"
ASK_AGAIN_SECONDS = 0.1


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

    def __init__(self, notebook: Notebook, name: str, urls: Sequence[str], token: str) -> None:
        self._notebook = notebook
        self._name = name
        options = {"headers": bearer(token), "limits": httpx.Limits(max_keepalive_connections=1)}
        self._servers = [httpx.AsyncClient(base_url=url, timeout=30, **options) for url in urls]

    async def close(self) -> None:
        for server in self._servers:
            await server.aclose()

    async def place(
        self, pods: Sequence[dict[str, Any]], *, group: bool = False, seconds: float = 60.0
    ) -> Call:
        """Place pods, asking again for so long while the outcome is not known."""
        operation, deadline = self._notebook.next_operation(), time.monotonic() + seconds
        request = {"pods": pods, "policy": "AllOrNothing" if group else "BestEffort"}
        asked = {
            "pods": [("Pod", p["metadata"]["namespace"], p["metadata"]["name"]) for p in pods],
            "group": group,
            "dry_run": False,
            "queue": False,
        }
        attempts = 0
        while True:
            call = await self._place_once(operation, request, asked, is_retry=attempts > 0)
            if call.outcome == "ok" or time.monotonic() > deadline:
                return call
            attempts += 1
            self._servers.append(self._servers.pop(0))
            await asyncio.sleep(ASK_AGAIN_SECONDS)

    async def _place_once(
        self, operation: int, request: dict[str, Any], asked: dict[str, Any], *, is_retry: bool
    ) -> Call:
        number, called, key = self._notebook.next_number(), time.monotonic(), f"key-{operation}"
        told = await self._told(request, key)
        call = Call(
            number=number,
            client=self._name,
            operation=operation,
            action="place",
            asked=asked,
            manifests=request["pods"],
            key=key,
            request_hash=hashlib.sha256(msgspec.json.encode(request)).hexdigest(),
            called=called,
            returned=time.monotonic(),
            recorded=is_retry and told["outcome"] == "ok",
            **told,
        )
        self._notebook.calls.append(call)
        return call

    async def _told(self, request: dict[str, Any], key: str) -> dict[str, Any]:
        try:
            response = await self._servers[0].post(
                f"{PATH}/placements", json=request, headers={"Idempotency-Key": key}
            )
        except httpx.HTTPError as error:
            return {"outcome": "unknown", "status": type(error).__name__}
        body = response.json()
        if response.status_code == httpx.codes.OK:
            revision = int(response.headers["Moorage-Revision"])
            return {"outcome": "ok", "status": "ok", "revision": revision, "body": body}
        if response.status_code == httpx.codes.INTERNAL_SERVER_ERROR:
            return {"outcome": "unknown", "status": f"InternalError {body}"}
        return {"outcome": _outcome(body["code"]), "status": body["code"]}


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def _outcome(code: str) -> Any:
    return "unknown" if code == "OutcomeUnknown" else "fail"


async def read_history(url: str, calls: Sequence[Call], *, granted: int) -> History:
    """What PostgreSQL has after a run, and the calls that led to it in the order of their begin.

    What was written up to the revision `granted` was there before.
    """
    store = PostgresStore(url)
    try:
        cluster_id = await store.find_cluster("default")
        page = await store.read_log(cluster_id, 0, None, 1_000_000)
        assert isinstance(page, LogPage)
        snapshot = await store.load(cluster_id)
    finally:
        await store.close()
    return History(
        calls=sorted(calls, key=lambda call: call.number),
        commits=list(page.commits),
        changes=list(page.changes),
        head=(page.head.revision, page.head.tip),
        rows={tuple(row.key): (row.revision, row.body) for row in snapshot.rows},
        granted=granted,
        storage_fails=True,
    )
