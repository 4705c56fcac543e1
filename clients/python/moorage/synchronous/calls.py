"""The base of all groups of calls: the connection, the cluster, and raw requests."""

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from moorage.requests import Params, Request, path_of
from moorage.synchronous.connection import Connection

Method = Literal["GET", "PUT", "POST", "PATCH", "DELETE"]


class Calls:
    """Sends requests about one cluster.

    Raises (from every call):
        ProblemError: the server refused, or was in trouble for too long.
        NoAnswerError: there was no answer.
    """

    def __init__(self, connection: Connection, cluster: str) -> None:
        self._connection = connection
        self.cluster = cluster

    def path(self, *parts: str) -> str:
        """Return a path in this cluster: `path("pods")` is `/v1/clusters/default/pods`."""
        return path_of(self.cluster, *parts)

    def request(
        self,
        method: Method,
        path: str,
        *,
        params: Params | None = None,
        body: object = None,
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        """Send a request that no other method covers, and return the decoded answer.

        GETs, and requests with an `Idempotency-Key` header, are retried if necessary.
        """
        given = dict(headers or {})
        if body is not None:
            given.setdefault("Content-Type", "application/json")
        return self._asked(
            Request(
                method=method,
                path=path,
                params={key: str(value) for key, value in (params or {}).items()},
                headers=given,
                content=None if body is None else msgspec.json.encode(body),
                repeatable=method == "GET" or "Idempotency-Key" in given,
            )
        )

    def _asked(self, request: Request) -> Any:
        answer = self._connection.send(request)
        return msgspec.json.decode(answer.content) if answer.content else None
