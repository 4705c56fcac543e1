"""Signs one message as Standard Webhooks says, and sends it to the address that was checked."""

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
"""How much of an answer is read, at most: nothing in it is of interest."""
_GONE = 410

Result = Literal["acknowledged", "failed"]


def new_secret() -> str:
    """Make a key to sign with."""
    return "whsec_" + b64encode(secrets.token_bytes(SECRET_BYTES)).decode()


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a message."""

    status: int | None = None
    """The status that the receiver answered; None if it did not answer."""
    error: str | None = None
    """Why the message does not count as delivered; None if it does."""

    @property
    def is_gone(self) -> bool:
        """Whether the receiver wants no more messages."""
        return self.status == _GONE


class WebhookMeter(Protocol):
    """What is counted of deliveries."""

    def webhook_sent(self, result: Result) -> None:
        """Count a message of records."""
        ...

    def webhook_lag(self, seconds: float) -> None:
        """Note how old the last record of a message was when the receiver acknowledged it."""
        ...


class Sender:
    """Sends messages. Nothing that a receiver does takes longer than the setting says, or more memory."""

    def __init__(self, settings: Settings, now: Callable[[], datetime]) -> None:
        self._settings = settings
        self._networks = webhook_networks(settings)
        self._now = now
        self._client: httpx.AsyncClient | None = None
        self._opening = asyncio.Lock()

    async def send(self, row: WebhookRow, identifier: str, body: bytes) -> Reply:
        """Send one message, and return what came of it. It raises nothing.

        `identifier` is the `webhook-id`: a repetition has the same.
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
        """Close what is open."""
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
        """The client. It keeps no connection, since another host may have the same address.

        Certificates are read in a thread, because requests would wait for that.
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
        signatures = [Webhook(each).sign(identifier, now, text) for each in keys]
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
