"""Sign a message as Standard Webhooks specifies, and send it to the checked address."""

import asyncio
import secrets
from base64 import b64encode
from collections.abc import Callable
from datetime import datetime
from typing import Literal, Protocol
from urllib.parse import urlsplit

import httpx
import msgspec
from standardwebhooks import Webhook

from service.api.webhooks.destinations import AddressRefused, checked_address
from service.model.webhooks import WebhookRow
from service.settings import Settings, webhook_networks

SECRET_BYTES = 32
ANSWER_BYTES_MAX = 4 * 1024
"""The maximum bytes of an answer that are read; its content is not used."""
_GONE = 410

Result = Literal["acknowledged", "failed"]


def new_secret() -> str:
    """Generate a signing key."""
    return "whsec_" + b64encode(secrets.token_bytes(SECRET_BYTES)).decode()


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of sending a message."""

    status: int | None = None
    """The receiver's status, or None if it did not answer."""
    error: str | None = None
    """Why the message does not count as delivered, or None if it does."""

    @property
    def is_gone(self) -> bool:
        """Whether the receiver wants no more messages (status 410)."""
        return self.status == _GONE


class WebhookMeter(Protocol):
    """Counts deliveries."""

    def webhook_sent(self, result: Result) -> None:
        """Count a message."""
        ...

    def webhook_lag(self, seconds: float) -> None:
        """Observe how old the last record of a message was when the receiver acknowledged it."""
        ...


class Sender:
    """Sends messages within a time limit and bounded memory, whatever the receiver does."""

    def __init__(self, settings: Settings, now: Callable[[], datetime]) -> None:
        self._settings = settings
        self._networks = webhook_networks(settings)
        self._now = now
        self._client: httpx.AsyncClient | None = None
        self._opening = asyncio.Lock()

    async def send(self, row: WebhookRow, identifier: str, body: bytes) -> Reply:
        """Send one message and return the outcome; raise nothing.

        `identifier` is the `webhook-id`, which stays the same when a message is repeated.
        """
        seconds = self._settings.webhook_timeout_seconds
        try:
            async with asyncio.timeout(seconds):
                status = await self._answered(row, identifier, body)
        except TimeoutError:
            return Reply(error=f"There was no answer within {seconds:g} seconds.")
        except AddressRefused as refused:
            return Reply(error=str(refused))
        except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:
            return Reply(error=f"{type(error).__name__}: {error}"[:200])
        if httpx.codes.is_success(status):
            return Reply(status=status)
        also = " Redirects are not followed." if httpx.codes.is_redirect(status) else ""
        return Reply(status=status, error=f"The receiver answered {status}.{also}")

    async def close(self) -> None:
        """Close open connections."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def _answered(self, row: WebhookRow, identifier: str, body: bytes) -> int:
        parts = urlsplit(row.url)
        if parts.scheme != "https" and not self._settings.webhook_http:
            raise AddressRefused("The URL has to begin with https://.")
        address = await checked_address(row.url, self._networks)
        url = httpx.URL(row.url)
        headers = {
            **self._signed(row, identifier, body),
            "host": url.netloc.decode("ascii"),
            "content-type": "application/json",
            "user-agent": "moorage-webhook",
        }
        client = await self._opened()
        request = client.build_request(
            "POST",
            url.copy_with(host=address),
            headers=headers,
            content=body,
            extensions={
                "sni_hostname": parts.hostname,
                "timeout": httpx.Timeout(self._settings.webhook_timeout_seconds).as_dict(),
            },
        )
        answer = await client.send(request, stream=True)
        try:
            await _drained(answer)
        finally:
            await answer.aclose()
        return answer.status_code

    async def _opened(self) -> httpx.AsyncClient:
        """Return the client, which keeps no connections: another host may have the same address.

        Certificates are loaded in a thread, since loading them would delay requests.
        """
        async with self._opening:
            if self._client is None:
                self._client = httpx.AsyncClient(
                    verify=await asyncio.to_thread(httpx.create_ssl_context),
                    trust_env=False,
                    follow_redirects=False,
                    limits=httpx.Limits(max_keepalive_connections=0),
                )
            return self._client

    def _signed(self, row: WebhookRow, identifier: str, body: bytes) -> dict[str, str]:
        now = self._now()
        text = body.decode()
        keys = row.secrets(now)
        signatures = [Webhook(key).sign(identifier, now, text) for key in keys]
        return {
            "webhook-id": identifier,
            "webhook-timestamp": str(int(now.timestamp())),
            "webhook-signature": " ".join(signatures),
        }


async def _drained(answer: httpx.Response) -> None:
    read = 0
    async for piece in answer.aiter_raw():
        read += len(piece)
        if read >= ANSWER_BYTES_MAX:
            return
