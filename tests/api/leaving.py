"""A client that leaves before it is answered."""

import asyncio
from typing import Any

import msgspec

from tests.api.harness import AS_JSON

Json = dict[str, Any]


class LeavingClient:
    """A client of the application itself, which leaves when it is told to."""

    def __init__(self, app: Any, path: str, body: Json, **headers: str) -> None:
        self.left = asyncio.Event()
        self.status = 0
        content = msgspec.json.encode(body)
        fields = {"host": "localhost", **AS_JSON, **headers, "content-length": str(len(content))}
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "scheme": "http",
            "method": "POST",
            "path": path,
            "raw_path": path.encode(),
            "root_path": "",
            "query_string": b"",
            "headers": [
                (name.replace("_", "-").encode(), v.encode()) for name, v in fields.items()
            ],
            "client": None,
            "server": None,
        }
        self._incoming = iter([{"type": "http.request", "body": content}])
        self.request: asyncio.Task[None] = asyncio.create_task(
            app(scope, self._receive, self._send)
        )

    async def _receive(self) -> Json:
        for message in self._incoming:
            return message
        await self.left.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Json) -> None:
        self.status = message.get("status", self.status)
