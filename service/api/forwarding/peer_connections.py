"""Connections between workers of different servers: HTTP over TCP or TLS, upgraded to frames.

A worker that forwards requests opens one connection to each worker of another server. It begins as
an HTTP request that asks for another protocol (RFC 9110, 7.8) and proves with the servers' shared
secret that it comes from a server; with certificates, both sides also authenticate by TLS. The
frames of `service.api.forwarding.transport` follow. No other client is accepted, so clients can
neither forward a request nor claim who makes it.
"""

import asyncio
import hashlib
import hmac
import logging
import socket
import ssl
from asyncio import StreamReader, StreamWriter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from http import HTTPStatus
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

import h11

from service.api.forwarding.peer_names import (
    Address,
    address_in,
    id_in,
    name_of,
    parse_address,
    server_in,
)
from service.api.forwarding.retry import Unreachable
from service.runtime.certificate_files import CertificateFiles
from service.runtime.keepalive import keep_alive
from service.settings import InvalidSettings, Settings

PROTOCOL = "moorage-forwarding-2"
"""The protocol and its version, raised with every change of frames, since versions may coexist."""
HANDSHAKE_SECONDS_MAX = 2.0
"""How long a connection may take to authenticate."""
HANDSHAKES_MAX = 100
"""How many connections may be authenticating at once; further ones are closed."""
GONE_MAX = 1_000
"""How many ended workers are remembered."""
REFUSED_SECONDS = 10.0
"""How long a worker counts as ended after a refused connection, which a middlebox may cause."""
VANISHED_SECONDS = 10
"""How long sent data may remain unacknowledged by the other machine."""
SPARE_PORTS = 1
"""Ports in addition to one for each worker, since a worker may start before another has ended."""
RENEWAL_LOOK_SECONDS = 5.0
"""How often a worker checks whether its certificate files have changed."""
TOLD_SECONDS = 10.0
"""The minimum time between log lines about refused connections."""

_END = b"\r\n\r\n"
_log = logging.getLogger(__name__)
_VERSION = metadata.version("moorage-server")

Serve = Callable[[StreamReader, StreamWriter], Awaitable[None]]


class Certificates(NamedTuple):
    """TLS contexts for both directions; each requires the peer's certificate."""

    listening: ssl.SSLContext
    connecting: ssl.SSLContext


class Servers:
    """The workers of other servers: how this worker accepts them, and how it reaches them."""

    def __init__(
        self,
        own_id: str,
        first: Address,
        workers: int,
        *,
        server_id: str,
        secret: str,
        host: str | None = None,
        certificates: Certificates | None = None,
    ) -> None:
        """Reserve a port: that of `first`, the server's first worker, or one of those after it.

        `server_id` is shared by all workers of this server and no others, not even those of a
        server that had its address before. `host` is the address to listen on, if different.

        Raises:
            OSError: none of the ports is free, or this machine has no such address.
        """
        ports = range(first.port, first.port + workers + SPARE_PORTS)
        self._secret = secret
        self._certificates = certificates
        self._socket = _listening(host or first.host, ports)
        self._own_id, self._server_id = own_id, server_id
        self.own = name_of(own_id, server_id, Address(first.host, self._socket.getsockname()[1]))
        """This worker's name."""
        self._gone: dict[str, float] = {}
        """Maps each ended worker to the time until which it counts as ended."""
        self._server: asyncio.Server | None = None
        self._accept: Serve | None = None
        self._handshakes = 0
        self._told_at = float("-inf")

    def is_here(self, name: str) -> bool:
        """Return whether a worker belongs to this server, and so listens in the private folder."""
        return server_in(name) in {None, self._server_id}

    def is_gone(self, name: str) -> bool:
        """Return whether a worker of another server is known to have ended."""
        return self._gone.get(name, float("-inf")) > asyncio.get_running_loop().time()

    async def listen(self, serve: Serve) -> None:
        """Accept and serve connections from workers of other servers."""

        async def accept(reader: StreamReader, writer: StreamWriter) -> None:
            _notice_a_vanished_machine(writer)
            if await self._is_let_in(reader, writer):
                await serve(reader, writer)
            writer.close()

        self._accept = accept
        self._server = await self._listen()

    async def renew(self, certificates: Certificates) -> None:
        """Use other certificates for new connections, without closing or missing a connection."""
        self._certificates = certificates
        before = self._server
        if before is not None:
            self._server = await self._listen()
            before.close()

    def stop_listening(self) -> None:
        """Accept no new connections; open connections stay open."""
        self._socket.close()
        if self._server is not None:
            self._server.close()

    async def connect(self, name: str) -> tuple[StreamReader, StreamWriter]:
        """Open a connection to a worker of another server, ready for frames.

        Raises:
            Unreachable: the worker has ended, rejects this server, or has another version.
            OSError: the connection failed.
        """
        address = address_in(name)
        assert address is not None
        tls = None if self._certificates is None else self._certificates.connecting
        try:
            reader, writer = await asyncio.open_connection(*address, ssl=tls)
        except ConnectionRefusedError:
            self._forget(name, REFUSED_SECONDS)
            raise
        except ValueError:  # the host name is invalid
            raise Unreachable from None
        _notice_a_vanished_machine(writer)
        try:
            status = await self._introduce(id_in(name), address, reader, writer)
        except (h11.ProtocolError, ValueError):
            writer.close()
            self._tell("Another server cannot be spoken to.", address.text, 0)
            raise Unreachable from None
        except BaseException:
            writer.close()
            raise
        if status == HTTPStatus.SWITCHING_PROTOCOLS:
            return reader, writer
        writer.close()
        if status == HTTPStatus.GONE:
            self._forget(name, float("inf"))
        else:
            self._tell("Another server does not let this one in.", address.text, status)
        raise Unreachable

    async def _listen(self) -> asyncio.Server:
        assert self._accept is not None
        tls = None if self._certificates is None else self._certificates.listening
        return await asyncio.start_server(
            self._accept,
            sock=self._socket.dup(),
            ssl=tls,
            ssl_handshake_timeout=None if tls is None else HANDSHAKE_SECONDS_MAX,
        )

    async def _introduce(
        self, worker_id: str, address: Address, reader: StreamReader, writer: StreamWriter
    ) -> int:
        """Request the protocol upgrade; return the status of the answer."""
        connection = h11.Connection(h11.CLIENT)
        request = h11.Request(
            method="GET",
            target=f"/{worker_id}",
            headers=[
                ("Host", address.text),
                ("Connection", "Upgrade"),
                ("Upgrade", PROTOCOL),
                ("Moorage-Version", _VERSION),
                ("Authorization", f"Bearer {self._secret}"),
            ],
        )
        writer.write(connection.send(request) or b"")
        connection.send(h11.EndOfMessage())
        answer = await _read_head(connection, reader)
        if not isinstance(answer, h11.InformationalResponse | h11.Response):
            raise Unreachable
        return answer.status_code

    def _forget(self, name: str, seconds: float) -> None:
        """Record for `seconds` that a worker has ended."""
        self._gone.pop(name, None)
        self._gone[name] = asyncio.get_running_loop().time() + seconds
        if len(self._gone) > GONE_MAX:
            del self._gone[next(iter(self._gone))]

    async def _is_let_in(self, reader: StreamReader, writer: StreamWriter) -> bool:
        if self._handshakes >= HANDSHAKES_MAX:
            return False
        self._handshakes += 1
        connection = h11.Connection(h11.SERVER)
        try:
            async with asyncio.timeout(HANDSHAKE_SECONDS_MAX):
                status = self._judge(await _read_head(connection, reader))
                writer.write(_answer(connection, status))
                await writer.drain()
        except (OSError, EOFError, TimeoutError, Unreachable, h11.RemoteProtocolError):
            return False
        finally:
            self._handshakes -= 1
        if status == HTTPStatus.UNAUTHORIZED:
            self._tell("A connection was refused.", writer.get_extra_info("peername"), status)
        return status == HTTPStatus.SWITCHING_PROTOCOLS

    def _judge(self, request: object) -> HTTPStatus:
        if not isinstance(request, h11.Request):
            return HTTPStatus.BAD_REQUEST
        headers = dict(request.headers)
        if not _is_equal(headers.get(b"authorization", b""), f"Bearer {self._secret}".encode()):
            return HTTPStatus.UNAUTHORIZED
        asked = headers.get(b"upgrade"), headers.get(b"moorage-version")
        if asked != (PROTOCOL.encode(), _VERSION.encode()):
            return HTTPStatus.UPGRADE_REQUIRED
        if request.target != f"/{self._own_id}".encode():
            return HTTPStatus.GONE
        return HTTPStatus.SWITCHING_PROTOCOLS

    def _tell(self, sentence: str, address: object, status: int) -> None:
        now = asyncio.get_running_loop().time()
        if now >= self._told_at + TOLD_SECONDS:
            self._told_at = now
            _log.warning(sentence, extra={"address": str(address), "status": int(status)})


def servers_of(settings: Settings, own_id: str) -> Servers | None:
    """Return the other servers in the settings, or None if servers do not forward to each other.

    Raises:
        InvalidSettings: the address cannot be listened on, or a certificate cannot be used.
    """
    if settings.peer_address is None:
        return None
    try:
        return Servers(
            own_id,
            parse_address(settings.peer_address),
            settings.workers,
            server_id=settings.server_id or own_id,
            secret=settings.peer_secret or "",
            host=settings.peer_host,
            certificates=certificates_of(settings),
        )
    except OSError as error:
        raise InvalidSettings(
            f"MOORAGE_PEER_ADDRESS: {settings.peer_address} and the ports after it cannot be listened on: {error}."
        ) from None


def certificates_of(settings: Settings) -> Certificates | None:
    """Return the peers' certificates that the settings name, or None.

    Raises:
        InvalidSettings: a file cannot be read, or is not a certificate or key.
    """
    if settings.peer_certificate is None or settings.peer_authorities is None:
        return None
    try:
        listening, connecting = (
            ssl.create_default_context(purpose, cafile=settings.peer_authorities)
            for purpose in (ssl.Purpose.CLIENT_AUTH, ssl.Purpose.SERVER_AUTH)
        )
        for context in (listening, connecting):
            context.load_cert_chain(settings.peer_certificate, settings.peer_key)
    except (OSError, ValueError) as error:  # an SSLError is an OSError, too
        raise InvalidSettings(
            f"MOORAGE_PEER_CERTIFICATE, MOORAGE_PEER_KEY or MOORAGE_PEER_AUTHORITIES: {error}."
        ) from None
    listening.verify_mode = ssl.CERT_REQUIRED
    return Certificates(listening, connecting)


class ReplacedCertificates:
    """Makes a worker use renewed certificates for new connections."""

    def __init__(self, servers: Servers, settings: Settings) -> None:
        self._servers = servers
        self._settings = settings
        named = settings.peer_certificate, settings.peer_key, settings.peer_authorities
        self._files = CertificateFiles(Path(file) for file in named if file is not None)

    async def run(self) -> None:
        """Check for renewed certificates until canceled."""
        while True:
            await self.look()
            await asyncio.sleep(RENEWAL_LOOK_SECONDS)

    async def look(self) -> None:
        """Check once whether the files have changed; raises nothing."""
        try:
            if not self._files.have_changed():
                return
            certificates = await asyncio.to_thread(certificates_of, self._settings)
        except (OSError, InvalidSettings) as error:  # a file may be only partly written
            _log.warning("The certificates between servers stay those before: %s", error)
            return
        if certificates is not None:
            await self._servers.renew(certificates)


def _listening(host: str, ports: range) -> socket.socket:
    """Listen on the first port that is free."""
    [(family, _, _, _, _), *_] = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    for port in ports[:-1]:
        with suppress(OSError):
            return socket.create_server((host, port), family=family)
    return socket.create_server((host, ports[-1]), family=family)


def _notice_a_vanished_machine(writer: StreamWriter) -> None:
    """Make the kernel close a dead connection, which pings cannot detect."""
    keep_alive(
        writer.get_extra_info("socket"),
        idle_seconds=VANISHED_SECONDS,
        unacknowledged_seconds=VANISHED_SECONDS,
    )


async def _read_head(connection: h11.Connection, reader: StreamReader) -> object:
    try:
        connection.receive_data(await reader.readuntil(_END))
    except asyncio.LimitOverrunError:
        raise Unreachable from None
    return connection.next_event()


def _answer(connection: h11.Connection, status: HTTPStatus) -> bytes:
    if status == HTTPStatus.SWITCHING_PROTOCOLS:
        headers = [("Connection", "Upgrade"), ("Upgrade", PROTOCOL)]
        return (
            connection.send(h11.InformationalResponse(status_code=status, headers=headers)) or b""
        )
    response = h11.Response(
        status_code=status, headers=[("Content-Length", "0"), ("Connection", "close")]
    )
    return (connection.send(response) or b"") + (connection.send(h11.EndOfMessage()) or b"")


def _is_equal(given: bytes, expected: bytes) -> bool:
    """Return whether two byte strings are equal, in constant time."""
    return hmac.compare_digest(hashlib.sha256(given).digest(), hashlib.sha256(expected).digest())
