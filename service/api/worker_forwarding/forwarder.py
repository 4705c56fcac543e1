"""The forwarding of a worker: to the other workers, and of their requests to this one.

It puts the modules of this folder together.
"""

import asyncio
import logging
import socket
from collections.abc import Coroutine, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

from litestar.types import ASGIApp

from service.api.bodies.byte_budget import Budget
from service.api.http.body import BodyReader
from service.api.telemetry.metrics import Metrics
from service.api.telemetry.spans import Spans
from service.api.worker_forwarding.liveness import Liveness
from service.api.worker_forwarding.middleware import ForwardingMiddleware, decide_forwarded
from service.api.worker_forwarding.server_connections import (
    ReplacedCertificates,
    Servers,
    servers_of,
)
from service.api.worker_forwarding.sockets import Listener, SocketPeers, socket_of
from service.runtime.ids import RandomIds
from service.scheduler.ownership.cluster_owners import ALL_SERVERS, ClusterOwners
from service.scheduler.ownership.shares import ClusterShares
from service.scheduler.protocol.limits import Limits
from service.scheduler.protocol.ports import Clock, Store
from service.settings import Settings

_ANSWER_SECONDS = 5.0
"""How long the answer of another worker is awaited after the time of its request is up."""

LEAVE_SECONDS_MAX = 3.0
"""How long others may take to load the clusters of a worker that stops, before they get them."""

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
    """The socket on which this worker listens to those of its server, which have theirs beside it."""
    liveness: Liveness
    servers: Servers | None
    """The workers of other servers, or None if only those of its own server are reached."""
    peers: SocketPeers
    """The connections to all of them."""

    def lives(self, worker: str) -> bool:
        """Return True if a worker is running, as far as is known."""
        if self.servers is not None and not self.is_of_this_server(worker):
            return not self.servers.is_gone(worker)
        return self.liveness.lives(worker)

    def is_of_this_server(self, worker: str) -> bool:
        """Return True if a worker is of this server, so that it probably stops when this one does."""
        return self.servers is None or self.servers.is_here(worker)


class Forwarder:
    """The two directions of forwarding: to other workers, and from them."""

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
        """Yield the coroutines that run beside requests."""
        yield self.shares.run()
        servers, settings = self._others.servers, self._settings
        if servers is not None and settings.peer_certificate is not None:
            yield ReplacedCertificates(servers, settings).run()

    def leave(self) -> asyncio.Task[None]:
        """Hand the clusters over to workers of other servers, while requests are still answered.

        Returns the task that does so, the same at each call.
        """
        if self._leaving is None:
            self._leaving = asyncio.create_task(self.shares.leave(LEAVE_SECONDS_MAX))
        return self._leaving

    async def stop(self) -> None:
        """Hand the clusters over, answer the requests that others have forwarded, and accept no more."""
        await self.leave()
        if self._others.servers is not None:
            self._others.servers.stop_listening()
        if self._listener is not None:
            await self._listener.close()
        await self._others.peers.close()
        self._others.liveness.end()
