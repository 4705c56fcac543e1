"""Sends requests to one server, with retries where they help."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
from tenacity import Retrying, retry_if_exception

from moorage.errors import (
    ConnectionLostError,
    TimedOutError,
    UnreachableError,
    error_of_answer,
)
from moorage.requests import Request
from moorage.retries import Retries, Sleep

CONNECT_SECONDS_MAX = 5.0
STREAM_SILENCE_SECONDS_MAX = 60.0
"""A stream silent for longer is abandoned; the server sends data every few seconds."""


class Connection:
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
        transport: httpx.BaseTransport | None = None,
        sleep: Sleep = time.sleep,
    ) -> None:
        self.url = url.rstrip("/")
        self.retries = retries
        self.sleep = sleep
        self._http = httpx.Client(
            base_url=self.url,
            headers={"Authorization": f"Bearer {token}"} if token else {},
            timeout=httpx.Timeout(timeout_seconds, connect=CONNECT_SECONDS_MAX),
            transport=transport,
            # Plain HTTP uses no certificates, and loading them takes longer than most requests.
            verify=not self.url.lower().startswith("http://"),
        )

    def close(self) -> None:
        """Close all connections."""
        self._http.close()

    def send(self, request: Request) -> httpx.Response:
        """Send a request with the client's retries, and return the answer."""
        return self.repeating(request)(self._send_once, request)

    def repeating(self, request: Request) -> Retrying:
        """Return a retrier that repeats a function while another try is worthwhile."""
        return Retrying(
            retry=retry_if_exception(self.retries.again(request)),
            wait=self.retries.pause,
            stop=self.retries.is_over,
            sleep=self.sleep,
            reraise=True,
        )

    def _send_once(self, request: Request) -> httpx.Response:
        with self._transport_errors():
            answer = self._http.send(self._made(request))
        if answer.is_error:
            raise _failure(answer)
        return answer

    @contextmanager
    def stream(self, request: Request) -> Iterator[Iterator[bytes]]:
        """Open an answer of any length, without retries, and yield an iterator over its pieces.

        The iterator raises NoAnswerError if the answer breaks off or its next piece takes over a
        minute.
        """
        silence = httpx.Timeout(STREAM_SILENCE_SECONDS_MAX, connect=CONNECT_SECONDS_MAX)
        made = self._made(request, silence)
        with self._transport_errors():
            answer = self._http.send(made, stream=True)
            try:
                if answer.is_error:
                    raise _failure(answer)
                yield answer.iter_bytes()
            finally:
                answer.close()

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


def _failure(answer: httpx.Response) -> Exception:
    content = answer.read()
    wanted = answer.headers.get("Retry-After")
    return error_of_answer(answer.status_code, answer.reason_phrase, content, wanted)
