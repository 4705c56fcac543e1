"""Sends requests to one server, with retries where they help."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import httpx
from tenacity import AsyncRetrying, retry_if_exception

from moorage.errors import (
    ConnectionLostError,
    TimedOutError,
    UnreachableError,
    error_of_answer,
)
from moorage.requests import Request
from moorage.retries import AsyncSleep, Retries

CONNECT_SECONDS_MAX = 5.0
STREAM_SILENCE_SECONDS_MAX = 60.0
"""A stream silent for longer is abandoned; the server sends data every few seconds."""


class AsyncConnection:
    """Sends requests, and returns answers with status 2xx or 304.

    Raises (from every call):
        ProblemError: the server refused, or was in trouble for too long.
        NoAnswerError: there was no answer, or an incomplete one.
    """

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        timeout_seconds: float = 60.0,
        retries: Retries,
        transport: httpx.AsyncBaseTransport | None = None,
        sleep: AsyncSleep = asyncio.sleep,
    ) -> None:
        self.url = url.rstrip("/")
        self.retries = retries
        self.sleep = sleep
        self._http = httpx.AsyncClient(
            base_url=self.url,
            headers={"Authorization": f"Bearer {token}"} if token else {},
            timeout=httpx.Timeout(timeout_seconds, connect=CONNECT_SECONDS_MAX),
            transport=transport,
            # Plain HTTP uses no certificates, and loading them takes longer than most requests.
            verify=not self.url.lower().startswith("http://"),
        )

    async def aclose(self) -> None:
        """Close all connections."""
        await self._http.aclose()

    async def send(self, request: Request) -> httpx.Response:
        """Send a request with the client's retries, and return the answer."""
        return await self.repeating(request)(self._send_once, request)

    def repeating(self, request: Request) -> AsyncRetrying:
        """Return a retrier that repeats a function while another try is worthwhile."""
        return AsyncRetrying(
            retry=retry_if_exception(self.retries.again(request)),
            wait=self.retries.pause,
            stop=self.retries.is_over,
            sleep=self.sleep,
            reraise=True,
        )

    async def _send_once(self, request: Request) -> httpx.Response:
        with self._transport_errors():
            answer = await self._http.send(self._made(request))
        if answer.is_error:
            raise await _failure(answer)
        return answer

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[AsyncIterator[bytes]]:
        """Open an answer of any length, without retries, and yield an iterator over its pieces.

        The iterator raises NoAnswerError if the answer breaks off or its next piece takes over a
        minute.
        """
        silence = httpx.Timeout(STREAM_SILENCE_SECONDS_MAX, connect=CONNECT_SECONDS_MAX)
        made = self._made(request, silence)
        with self._transport_errors():
            answer = await self._http.send(made, stream=True)
            try:
                if answer.is_error:
                    raise await _failure(answer)
                yield answer.aiter_bytes()
            finally:
                await answer.aclose()

    def _made(self, request: Request, timeout: httpx.Timeout | None = None) -> httpx.Request:
        return self._http.build_request(
            request.method,
            request.path,
            params=dict(request.params),
            content=request.content,
            headers=dict(request.headers),
            timeout=timeout or self._http.timeout,
        )

    @contextmanager
    def _transport_errors(self) -> Iterator[None]:
        try:
            yield
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.UnsupportedProtocol) as error:
            raise UnreachableError(f"No server answers at {self.url}: {error}") from None
        except httpx.TimeoutException:
            raise TimedOutError(f"{self.url} did not answer in time.") from None
        except httpx.TransportError as error:
            raise ConnectionLostError(f"The connection to {self.url} broke: {error}") from None


async def _failure(answer: httpx.Response) -> Exception:
    content = await answer.aread()
    wanted = answer.headers.get("Retry-After")
    return error_of_answer(answer.status_code, answer.reason_phrase, content, wanted)
