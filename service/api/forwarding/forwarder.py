"""A worker's forwarder: sends requests to other workers, and decides those that they send.

It wires up the modules of this folder.
"""

import asyncio
import logging
import socket
from collections.abc import Coroutine, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

from litestar.types import ASGIApp

from service.api.forwarding.liveness import Liveness
from service.api.forwarding.middleware import ForwardingMiddleware, decide_forwarded
from service.api.forwarding.peer_connections import (
    ReplacedCertificates,
    Servers,
    servers_of,
)
from service.api.forwarding.transport import Listener, SocketPeers, socket_of
from service.api.http.body import BodyReader
from service.api.http.byte_budget import Budget
from service.api.telemetry.metrics import Metrics
from service.api.telemetry.traces import Spans
from service.runtime.ids import RandomIds
from service.scheduler.ownership.cluster_owners import ALL_SERVERS, ClusterOwners
from service.scheduler.ownership.shares import ClusterShares
from service.scheduler.protocol.limits import Limits
from service.scheduler.protocol.ports import Clock, Store
from service.settings import Settings

_ANSWER_SECONDS = 5.0
"""How long to wait for another worker's answer beyond the time limit of the request."""

LEAVE_SECONDS_MAX = 3.0
"""How long other workers may take to load a stopping worker's clusters before taking them over."""

_log = logging.getLogger(__name__)


def forwarder_of(
    settings: Settings,
    store: Store,
    clock: Clock,
    limits: Limits,
    metrics: Metrics,
    budget: Budget,
) -> "Forwarder | None":
    """Return the forwarder of this worker, or None if there are no others or forwarding is off.

    Raises:
        InvalidSettings: this worker cannot listen to other servers.
    """
    alone = settings.workers == 1 and settings.peer_address is None
    if not settings.forwarding or alone or settings.forwarding_dir is None:
        return None
    own = RandomIds().uid()
    try:
        path = socket_of(Path(settings.forwarding_dir), own)
    except ValueError as error:
        _log.warning("No request will be forwarded: %s", error)
        return None
    liveness, servers = Liveness(path.parent, own), servers_of(settings, own)
    peers = SocketPeers(
        path.parent,
        answer_seconds_max=settings.request_timeout_seconds + _ANSWER_SECONDS,
        budget=budget,
        servers=servers,
    )
    others = OtherWorkers(path, liveness, servers, peers)
    server = f"{socket.gethostname()}:{settings.port}" if others.servers is None else ALL_SERVERS
    own = own if others.servers is None else others.servers.own
    cluster_owners = ClusterOwners(
        *(store, clock, limits),
        server=server,
        own=own,
        lives=others.lives,
        answers=peers.answers,
    )
    return Forwarder(settings, cluster_owners, others, clock, limits, metrics, budget)


class OtherWorkers(NamedTuple):
    """The other workers that this one can reach."""

    path: Path
    """The socket for other workers of this server, whose own sockets are in the same folder."""
    liveness: Liveness
    servers: Servers | None
    """The workers of other servers, or None if only workers of this server are reached."""
    peers: SocketPeers
    """The connections to all other workers."""

    def lives(self, worker: str) -> bool:
        """Return whether a worker is believed to be running."""
        if self.servers is not None and not self.is_of_this_server(worker):
            return not self.servers.is_gone(worker)
        return self.liveness.lives(worker)

    def is_of_this_server(self, worker: str) -> bool:
        """Return whether a worker belongs to this server, and so probably stops with this one."""
        return self.servers is None or self.servers.is_here(worker)


class Forwarder:
    """Forwards requests in both directions: to other workers, and from them."""

    def __init__(
        self,
        settings: Settings,
        cluster_owners: ClusterOwners,
        others: OtherWorkers,
        clock: Clock,
        limits: Limits,
        metrics: Metrics,
        budget: Budget,
    ) -> None:
        self.cluster_owners = cluster_owners
        self._settings = settings
        self._budget = budget
        self._others = others
        self._listener: Listener | None = None
        bodies = BodyReader(settings, clock.monotonic)
        self.middleware = ForwardingMiddleware(cluster_owners, others.peers, bodies, metrics)
        self.shares = ClusterShares(
            *(cluster_owners, clock, limits.owner_lease_seconds, self.middleware.prepare),
            ends_too=others.is_of_this_server,
        )
        """The distribution of clusters among workers."""
        self._leaving: asyncio.Task[None] | None = None

    async def start(self, app: ASGIApp, spans: Spans | None) -> None:
        """Listen to the other workers."""
        decide = partial(decide_forwarded, app, spans=spans)
        self._listener = Listener(
            self._others.path, decide, self._budget, self.cluster_owners.passed_to
        )
        await self._listener.start()
        if self._others.servers is not None:
            await self._others.servers.listen(self._listener.serve)

    def background(self) -> Iterator[Coroutine[None, None, None]]:
        """Yield the coroutines to run in the background."""
        yield self.shares.run()
        servers, settings = self._others.servers, self._settings
        if servers is not None and settings.peer_certificate is not None:
            yield ReplacedCertificates(servers, settings).run()

    def leave(self) -> asyncio.Task[None]:
        """Start handing the clusters over to workers of other servers; requests are still answered.

        Returns the task, which is the same for every call.
        """
        if self._leaving is None:
            self._leaving = asyncio.create_task(self.shares.leave(LEAVE_SECONDS_MAX))
        return self._leaving

    async def stop(self) -> None:
        """Hand the clusters over, answer requests forwarded by others, and accept no more."""
        await self.leave()
        if self._others.servers is not None:
            self._others.servers.stop_listening()
        if self._listener is not None:
            await self._listener.close()
        await self._others.peers.close()
        self._others.liveness.end()
