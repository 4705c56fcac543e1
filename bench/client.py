"""A load generator that costs little: HTTP/1.1 on a connection that is kept open."""

import asyncio
import json
from types import TracebackType
from typing import Any, Self


class Connection:
    """A keep-alive connection, for one request at a time."""

    def __init__(self, host: str, port: int, token: str | None = None) -> None:
        self._host, self._port = host, port
        self._credentials = f"Authorization: Bearer {token}\r\n" if token else ""

    async def __aenter__(self) -> Self:
        self._reader, self._writer = await asyncio.open_connection(self._host, self._port)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._writer.close()

    async def post(
        self, path: str, body: bytes, content_type: str = "application/json"
    ) -> tuple[int, bytes]:
        """Send a POST; return status and body of the answer."""
        return await self._send("POST", path, body, content_type)

    async def put(self, path: str, body: bytes) -> tuple[int, bytes]:
        """Send a PUT with JSON; return status and body of the answer."""
        return await self._send("PUT", path, body, "application/json")

    async def patch(self, path: str, body: bytes) -> tuple[int, bytes]:
        """Send a PATCH with a merge patch; return status and body of the answer."""
        return await self._send("PATCH", path, body, "application/json")

    async def get(self, path: str) -> tuple[int, bytes]:
        """Send a GET; return status and body of the answer."""
        return await self._send("GET", path, b"", "application/json")

    async def delete(self, path: str) -> tuple[int, bytes]:
        """Send a DELETE; return status and body of the answer."""
        return await self._send("DELETE", path, b"", "application/json")

    async def _send(
        self, method: str, path: str, body: bytes, content_type: str
    ) -> tuple[int, bytes]:
        head = (
            f"{method} {path} HTTP/1.1\r\nHost: {self._host}\r\nContent-Type: {content_type}\r\n"
            f"Content-Length: {len(body)}\r\n{self._credentials}\r\n"
        )
        self._writer.write(head.encode() + body)
        head_lines = (await self._reader.readuntil(b"\r\n\r\n")).split(b"\r\n")
        status = int(head_lines[0].split()[1])
        headers = dict(line.lower().split(b": ", 1) for line in head_lines[1:] if line)
        if b"content-length" in headers:
            return status, await self._reader.readexactly(int(headers[b"content-length"]))
        return status, await self._chunks()

    async def _chunks(self) -> bytes:
        parts = []
        while True:
            size = int((await self._reader.readline()).strip(), 16)
            parts.append(await self._reader.readexactly(size))
            await self._reader.readexactly(2)
            if not size:
                return b"".join(parts)

    async def post_json(self, path: str, value: object) -> Any:
        """Send a POST with JSON, and return the decoded answer.

        Raises:
            RuntimeError: the status is not 200.
        """
        return json.loads(await self.post_encoded(path, json.dumps(value).encode()))

    async def post_encoded(self, path: str, body: bytes) -> bytes:
        """Send a POST with encoded JSON, and return the answer as it is.

        Raises:
            RuntimeError: the status is not 200.
        """
        status, answer = await self.post(path, body)
        if status != 200:
            raise RuntimeError(f"{path}: {status} {answer[:500]!r}")
        return answer
