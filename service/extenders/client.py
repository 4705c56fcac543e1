"""The HTTP client of one extender, with a timeout and a limit on the size of answers."""

import asyncio
import ssl
from base64 import b64decode
from collections.abc import Callable
from typing import TypeVar

import httpx
import msgspec

from service.extenders.circuit_breaker import CircuitBreaker
from service.model.cluster.extender_config import Extender
from service.settings import InvalidSettings, Settings

T = TypeVar("T")

_CONNECTIONS_MAX = 32
"""The maximum number of concurrent calls to one extender; others wait, within their timeouts."""


_FAILURES = (httpx.HTTPError, httpx.InvalidURL, msgspec.MsgspecError, ValueError, OSError)


class ExtenderFailed(Exception):  # noqa: N818 - a sentence about an extender, no bug
    """An extender could not be called, or gave no usable answer; the text says why."""


class ExtenderClient:
    """The client of one configured extender."""

    def __init__(
        self,
        extender: Extender,
        settings: Settings,
        monotonic: Callable[[], float],
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._extender = extender
        self._settings = settings
        self._bytes_max = settings.extender_answer_bytes_max
        self._breaker = CircuitBreaker(
            settings.extender_failures_max, settings.extender_pause_seconds, monotonic
        )
        self._pause_seconds = settings.extender_pause_seconds
        self._transport = transport
        self._client: httpx.AsyncClient | None = None

    async def call(self, verb: str, body: bytes, decoder: msgspec.json.Decoder[T]) -> T:
        """Send a message, and return the decoded answer.

        Raises:
            ExtenderFailed: the answer is late, too long, or malformed.
        """
        if not self._breaker.admits():
            raise ExtenderFailed(
                f"it failed too often and is left alone for {self._pause_seconds:g} s"
            )
        try:
            raw = await self._answer(verb, body)
            answer = decoder.decode(raw)
        except asyncio.CancelledError:
            self._breaker.canceled()
            raise
        except TimeoutError:
            self._breaker.failed()
            seconds = f"{self._extender.timeout_seconds:g} s"
            raise ExtenderFailed(f"no answer to {verb} within {seconds}") from None
        except _FAILURES as error:
            self._breaker.failed()
            raise ExtenderFailed(f"{verb} failed ({type(error).__name__})") from error
        except ExtenderFailed:
            self._breaker.failed()
            raise
        self._breaker.succeeded()
        return answer

    async def close(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.aclose()

    async def _answer(self, verb: str, body: bytes) -> bytes:
        url = f"{self._extender.url_prefix.rstrip('/')}/{verb}"
        if self._client is None:
            self._client = self._connected()
        async with asyncio.timeout(self._extender.timeout_seconds):
            tls = self._extender.tls_config
            extensions = (
                {"sni_hostname": tls.server_name} if tls is not None and tls.server_name else {}
            )
            request = self._client.stream("POST", url, content=body, extensions=extensions)
            async with request as response:
                if response.status_code != httpx.codes.OK:
                    raise ExtenderFailed(f"{verb} was answered with status {response.status_code}")
                answer = bytearray()
                async for part in response.aiter_raw():
                    answer += part
                    if len(answer) > self._bytes_max:
                        raise ExtenderFailed(
                            f"the answer to {verb} is over {self._bytes_max} bytes"
                        )
                return bytes(answer)

    def _connected(self) -> httpx.AsyncClient:
        """Return a client that calls no other host: it follows no redirects or proxy variables."""
        headers = {"content-type": "application/json", "accept-encoding": "identity"}
        return httpx.AsyncClient(
            verify=_context_of(self._extender, self._settings),
            headers=headers,
            timeout=None,  # noqa: S113 - the whole call has one
            follow_redirects=False,
            trust_env=False,
            limits=httpx.Limits(max_connections=_CONNECTIONS_MAX),
            transport=self._transport,
        )


def require_client_certificate(settings: Settings) -> None:
    """Check the client certificate for extenders at the start of a server.

    Raises:
        InvalidSettings: only one of certificate and key is set, or they cannot be used.
    """
    certificate, key = settings.extender_certificate, settings.extender_key
    if (certificate is None) != (key is None):
        raise InvalidSettings(
            "MOORAGE_EXTENDER_CERTIFICATE and MOORAGE_EXTENDER_KEY are only useful together."
        )
    try:
        _load_client_certificate(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), settings)
    except OSError as error:
        raise InvalidSettings(
            f"MOORAGE_EXTENDER_CERTIFICATE and MOORAGE_EXTENDER_KEY cannot be used: {error}."
        ) from None


def _load_client_certificate(context: ssl.SSLContext, settings: Settings) -> None:
    if settings.extender_certificate is not None:
        # Without a password, OpenSSL would ask for one on the terminal.
        context.load_cert_chain(
            settings.extender_certificate, settings.extender_key, password=lambda: b""
        )


def _context_of(extender: Extender, settings: Settings) -> ssl.SSLContext | bool:
    if not extender.url_prefix.startswith("https://"):
        return False
    tls = extender.tls_config
    pem = b64decode(tls.ca_data).decode("ascii") if tls is not None and tls.ca_data else None
    context = ssl.create_default_context(cadata=pem)
    if tls is not None and tls.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    _load_client_certificate(context, settings)
    return context
