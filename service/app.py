"""Puts the application together: the one place where everything is wired."""

import asyncio
import logging
import os
import secrets
import signal
import socket
import threading
import time
import uuid
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime
from functools import partial
from importlib import metadata
from itertools import chain, repeat
from pathlib import Path
from types import FrameType
from typing import NamedTuple, Protocol

from litestar import Litestar
from litestar.di import Provide
from litestar.types import ASGIApp, Receive, Scope, Send
from typing_extensions import override

from service import compiled_engine
from service.api.bodies.byte_budget import Budget, CountBytes
from service.api.bodies.request_reading import BodyReader
from service.api.handler_services.decided_operations import FastPath
from service.api.handler_services.server_services import Services
from service.api.handlers.server import check_ready
from service.api.middleware.edge import Edge
from service.api.openapi.rights_each_operation_needs import require_declarations
from service.api.problems import answer_error
from service.api.reading.past_reads import PastReads
from service.api.reading.stored_reads import AuditReader, ClusterReads, LogReader
from service.api.routes import HANDLERS, Documents, openapi_document
from service.api.security.anonymous_concurrency import AnonymousConcurrency
from service.api.security.authentication import (
    Authentication,
    BeginningAudit,
    PrincipalStore,
)
from service.api.security.cross_origin_checks import BrowserCheck
from service.api.security.entrance import Entrance, enter
from service.api.security.identity_provider import IdentityProvider
from service.api.security.rate_limits import Rates
from service.api.security.refusal_audit import Refusals
from service.api.telemetry.metrics import Metrics
from service.api.telemetry.process_and_connection_reporter import DatabaseReporter
from service.api.telemetry.readiness_commit_probe import CommitProbe, CommitStore, ProvingLog
from service.api.telemetry.spans import Spans, exported_spans
from service.api.telemetry.worker_heartbeat import Heartbeat
from service.api.webhooks.delivery import Deliveries, DeliveryStore
from service.api.webhooks.sending import Sender
from service.api.worker_forwarding.liveness import Liveness
from service.api.worker_forwarding.middleware import ForwardingMiddleware, decide_forwarded
from service.api.worker_forwarding.server_connections import (
    ReplacedCertificates,
    Servers,
    servers_of,
)
from service.api.worker_forwarding.sockets import Listener, SocketPeers, socket_of
from service.extenders import Extenders
from service.extensions.loading import load_plugins
from service.model.manifests.generated_names import SUFFIXES, suffix_of
from service.model.pod_templates.template_cache import TemplateCache
from service.model.validation.combinators import Limits as ManifestLimits
from service.sandbox import Evaluator
from service.scheduler.maintenance.recounts import IdleRecounts, Pace
from service.scheduler.maintenance.replica_reports import Reporter
from service.scheduler.ownership.cluster_owners import ALL_SERVERS, ClusterOwners
from service.scheduler.ownership.shares import ClusterShares
from service.scheduler.protocol.limits import Limits
from service.scheduler.protocol.ports import Clock, Store
from service.scheduler.scheduler import Scheduler
from service.settings import InvalidSettings, Settings, limits_of, settings_of_this_process
from service.store.postgres import PostgresStore, warm_up
from service.suspects import Suspects

__all__ = [
    "RandomIds",
    "SystemClock",
    "create_app",
    "create_app_from_environment",
    "openapi_document",
]

_ANSWER_SECONDS = 5.0
"""For how many seconds after a request's time is up the answer of another worker is awaited."""

LEAVE_SECONDS_MAX = 3.0
"""How long others may take to load the clusters of a worker that is told to stop, before they get them."""

_log = logging.getLogger(__name__)

WARM_UP_AFTER_SECONDS = 10.0

Handler = Callable[[int, FrameType | None], object] | int | None
Lifespan = Callable[[Litestar], AbstractAsyncContextManager[None]]


class ApiLog(LogReader, ProvingLog, Protocol):
    """The logs of clusters, as far as the API uses them without the scheduler."""


class ApiAudit(AuditReader, BeginningAudit, Protocol):
    """The audit, as far as the API uses it."""


class ApiStore(PrincipalStore, CommitStore, DeliveryStore, Protocol):
    """The parts of the store that the API uses without the scheduler."""

    @property
    @override
    def log(self) -> ApiLog: ...

    @property
    @override
    def audit(self) -> ApiAudit: ...


def create_app(  # noqa: PLR0913 - all that it is put together from, by name
    settings: Settings,
    *,
    store: ApiStore,
    scheduler: Scheduler,
    clock: Clock,
    metrics: Metrics | None = None,
    proof: CommitProbe | None = None,
    budget: Budget | None = None,
    refusals: Refusals | None = None,
    sender: Sender | None = None,
    spans: Spans | None = None,
    lifespan: Lifespan | None = None,
    middleware: Sequence[Callable[[ASGIApp], ASGIApp]] = (),
) -> ASGIApp:
    """Make the ASGI application over a store and a scheduler.

    `metrics` is the meter of that scheduler, and `spans` are its tracer. `proof` proves that
    commits work, `budget` bounds the bytes that the process holds, and `refusals` keeps for the
    audit which requests were refused. `sender` sends the messages to webhooks. `lifespan` surrounds
    the time in which requests are served, and `middleware` each request that was routed and is
    allowed.

    Raises:
        ImproperlyConfiguredException: an operation does not say who may call it.
    """
    identities = IdentityProvider(settings, clock) if settings.oidc_issuer else None
    authentication = Authentication(store, settings, clock, identities)
    reads = ClusterReads(store, settings.revision_wait_seconds)
    services = Services(
        settings=settings,
        authentication=authentication,
        reads=reads,
        past=PastReads(reads, settings.past_changes_max, settings.past_reads_max),
        scheduler=scheduler,
        bodies=BodyReader(settings, clock.monotonic),
        metrics=metrics or Metrics(),
        proof=proof or CommitProbe(store, clock.monotonic),
        webhooks=store.webhooks,
        sender=sender or Sender(settings, clock.now),
        new_id=RandomIds().uid,
    )
    budget = budget or Budget(settings.bytes_in_flight_max)
    browsers, rates = BrowserCheck(settings.allowed_hosts), Rates(settings, clock.monotonic)
    entrance = Entrance(authentication, browsers, rates, AnonymousConcurrency())
    app = _routed(services, lifespan, middleware)
    return Edge(
        CountBytes(app, budget),
        settings,
        entrance=entrance,
        head_of=services.reads.head_or_none,
        metrics=services.metrics,
        refusals=refusals,
        spans=spans,
        monotonic=clock.monotonic,
        new_id=RandomIds().uid,
    )


def _routed(
    services: Services,
    lifespan: Lifespan | None,
    middleware: Sequence[Callable[[ASGIApp], ASGIApp]],
) -> Litestar:
    """Make what routes requests to their handlers, each of which gets the services.

    Raises:
        ImproperlyConfiguredException: an operation does not say who may call it.
    """
    documents = Documents()
    app = Litestar(
        route_handlers=HANDLERS,
        dependencies={
            "services": Provide(lambda: services, sync_to_thread=False),
            "openapi": Provide(documents.openapi),
            "openapi_page": Provide(documents.page),
        },
        exception_handlers={Exception: answer_error},
        lifespan=[lifespan] if lifespan else [],
        on_startup=[services.authentication.start],
        on_shutdown=[services.authentication.close, services.sender.close],
        middleware=[
            enter,
            *middleware,
            FastPath(services),
        ],
        openapi_config=None,
        logging_config=None,
        request_max_body_size=None,
    )
    require_declarations(app.routes)
    return app


def create_app_from_environment() -> ASGIApp:
    """Make the application of a server process, over PostgreSQL, from its environment.

    The settings are its `MOORAGE_*` variables.

    Raises:
        InvalidSettings: a variable is misspelt or wrong, or there is no database.
        BadPlugin: an installed plugin cannot be used.
    """
    load_plugins()
    settings = settings_of_this_process()
    if settings.database_url is None:
        raise InvalidSettings("A server process needs MOORAGE_DATABASE_URL.")
    return _Late(partial(_create_process, settings, settings.database_url))


def _limits(settings: Settings) -> Limits:
    """Return the limits of the scheduler that an operator has set."""
    return Limits(
        request_seconds_max=settings.request_timeout_seconds,
        apply_objects_max=settings.apply_objects_max,
        extended_pods_max=settings.extender_pods_max,
        explained_pairs_max=settings.explained_pairs_max,
        field_managers_max=settings.field_managers_max,
        managed_fields_max=settings.managed_fields_max,
        plan_changes_max=settings.plan_changes_max,
        plan_nodes_max=settings.plan_nodes_max,
        plan_pods_max=settings.plan_pods_max,
        plan_seconds_max=settings.plan_seconds_max,
        plan_look_seconds=settings.plan_look_seconds,
        plan_moves_max=settings.plan_moves_max,
        plan_reservation_seconds=settings.plan_reservation_seconds,
        group_reservation_seconds=settings.group_reservation_seconds,
        repair_seconds_max=settings.repair_seconds_max,
        repair_trials_max=settings.repair_trials_max,
        plans_waiting_max=settings.plans_waiting_max,
        past_changes_max=settings.past_changes_max,
        past_states_max=settings.past_states_max,
        watchers_max=settings.watchers_max,
        watchers_of_one_max=settings.principal_watchers_max,
        clusters_max=settings.clusters_max,
        objects_max=settings.objects_max,
        log_keep_seconds=settings.log_keep_seconds,
        log_keep_changes=settings.log_keep_changes,
        answers_keep_seconds=settings.idempotency_keep_seconds,
        audit_keep_seconds=settings.audit_keep_seconds,
        upkeep_seconds=settings.upkeep_seconds,
    )


def templates_of(settings: Settings) -> TemplateCache:
    """Return the cache of templates, with the limits of pods that an operator has set."""
    limits = ManifestLimits(
        pod_terms_max=settings.pod_terms_max,
        pod_expressions_max=settings.pod_expressions_max,
        pod_values_max=settings.pod_values_max,
        pod_topology_keys_max=settings.pod_topology_keys_max,
        pod_constraints_max=settings.pod_constraints_max,
        pod_resources_max=settings.pod_resources_max,
        pod_ports_max=settings.pod_ports_max,
    )
    return TemplateCache(settings.template_cache_bytes, limits)


def _metrics(settings: Settings) -> Metrics:
    return Metrics(
        settings.metrics_dir,
        version=metadata.version("moorage"),
        engine=compiled_engine.engine_kind(),
        limits=limits_of(settings),
    )


def _create_process(settings: Settings, database_url: str) -> ASGIApp:
    clock = SystemClock()
    store = PostgresStore(
        database_url,
        statement_seconds_max=settings.statement_timeout_seconds,
        audit=settings.audits,
        may_audit=settings.audit != "off",
    )
    limits, metrics = _limits(settings), _metrics(settings)
    budget = Budget(settings.bytes_in_flight_max)
    spans = exported_spans(settings.tracing, metadata.version("moorage"), clock)
    forwarding = _forwarding(settings, store, clock, limits, metrics, budget)
    extenders, evaluator = Extenders(settings, clock.monotonic), Evaluator()
    suspects = Suspects(None if settings.suspects_dir is None else Path(settings.suspects_dir))
    scheduler = Scheduler(
        *(store, clock, RandomIds(), limits, templates_of(settings)),
        *(metrics, forwarding.cluster_owners if forwarding else None),
        tracer=spans,
        extenders=extenders,
        expressions=evaluator,
        suspects=suspects,
    )
    proof = CommitProbe(store, clock.monotonic)
    refusals, sender = Refusals(store.audit, clock), Sender(settings, clock.now)

    def background() -> list[Coroutine[None, None, None]]:
        """Return what runs beside requests, for as long as the process serves."""
        pace = Pace(settings.recount_seconds, settings.recount_percent)
        return [
            _warm_up(),
            DatabaseReporter(store, proof, metrics, budget).run(),
            _deliveries(settings, store, sender, clock, metrics).run(),
            IdleRecounts(scheduler, clock, metrics, pace).run(),
            *(forwarding.background() if forwarding else []),
            *_reports(settings, store, scheduler, clock, proof),
        ]

    @asynccontextmanager
    async def running(app: Litestar) -> AsyncIterator[None]:
        await scheduler.start()
        if forwarding is not None:
            await forwarding.start(CountBytes(app, budget), spans)
        on_stop_signal(scheduler.watching.close)
        if forwarding is not None:
            on_stop_signal(forwarding.leave)
        async with _tasks(background()):
            _log.info("The worker serves.", extra={"engine": compiled_engine.engine_kind()})
            yield
            _log.info("The worker stops.")
        if forwarding is not None:
            await forwarding.stop()
        for part in (scheduler.stop, extenders.close, evaluator.close, refusals.close, store.close):
            await part()
        if spans is not None:
            await asyncio.to_thread(spans.close)
        suspects.close()
        _log.info("The worker has stopped.")

    return create_app(
        settings,
        store=store,
        scheduler=scheduler,
        clock=clock,
        metrics=metrics,
        proof=proof,
        budget=budget,
        refusals=refusals,
        sender=sender,
        spans=spans,
        lifespan=running,
        middleware=[forwarding.middleware] if forwarding else [],
    )


def _reports(
    settings: Settings,
    store: PostgresStore,
    scheduler: Scheduler,
    clock: Clock,
    proof: CommitProbe,
) -> Iterator[Coroutine[None, None, None]]:
    """Yield what tells other processes about this one: its replicas, and whether it is ready."""
    if settings.debug:
        name = f"{socket.gethostname()}/{os.getpid()}"
        yield Reporter(store.replica_reports, scheduler, clock, name).run()
    if settings.health_socket is not None:
        ready = partial(check_ready, proof, scheduler, settings.ready_lag_seconds_max)
        yield Heartbeat(settings.health_socket, ready).run()


@asynccontextmanager
async def _tasks(coroutines: Iterable[Coroutine[None, None, None]]) -> AsyncIterator[None]:
    """Run coroutines beside what is done meanwhile, and end them after it."""
    tasks = [asyncio.create_task(each) for each in coroutines]
    yield
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _deliveries(
    settings: Settings, store: PostgresStore, sender: Sender, clock: Clock, metrics: Metrics
) -> Deliveries:
    """Make what delivers records to webhooks."""
    return Deliveries(
        store=store,
        sender=sender,
        settings=settings,
        clock=clock,
        meter=metrics,
        holder=f"{socket.gethostname()}/{os.getpid()}/{RandomIds().uid()}",
    )


def _forwarding(
    settings: Settings,
    store: Store,
    clock: Clock,
    limits: Limits,
    metrics: Metrics,
    budget: Budget,
) -> "_Forwarding | None":
    """Make what forwards requests to other workers.

    Returns None if there are no others, or if the settings forbid forwarding.

    Raises:
        InvalidSettings: other servers cannot be listened to.
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
    return _Forwarding(settings, cluster_owners, others, clock, limits, metrics, budget)


class OtherWorkers(NamedTuple):
    """What a worker has of the other workers that it can reach."""

    path: Path
    """The socket on which it listens to those of its server; theirs are in the same folder."""
    liveness: Liveness
    servers: Servers | None
    """The workers of other servers; None if only those of its own are reached."""
    peers: SocketPeers
    """All of them, as this worker asks them."""

    def lives(self, worker: str) -> bool:
        """Whether a worker is running, as far as is known."""
        if self.servers is not None and not self.is_of_this_server(worker):
            return not self.servers.is_gone(worker)
        return self.liveness.lives(worker)

    def is_of_this_server(self, worker: str) -> bool:
        """Whether a worker is of this server, and so is likely to be told to stop when this one is."""
        return self.servers is None or self.servers.is_here(worker)


class _Forwarding:
    """Forwards requests to other workers, and answers those from them."""

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
        """What gives each worker its share of the clusters."""
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
        """Yield what runs beside requests."""
        yield self.shares.run()
        servers, settings = self._others.servers, self._settings
        if servers is not None and settings.peer_certificate is not None:
            yield ReplacedCertificates(servers, settings).run()

    def leave(self) -> asyncio.Task[None]:
        """Begin to give the clusters to workers of other servers, while requests are still answered.

        Returns the task that does so, which is the same at each call.
        """
        if self._leaving is None:
            self._leaving = asyncio.create_task(self.shares.leave(LEAVE_SECONDS_MAX))
        return self._leaving

    async def stop(self) -> None:
        """Give the clusters away, answer the requests that others have forwarded, and take no more."""
        await self.leave()
        if self._others.servers is not None:
            self._others.servers.stop_listening()
        if self._listener is not None:
            await self._listener.close()
        await self._others.peers.close()
        self._others.liveness.end()


async def _warm_up() -> None:
    """Import modules that were left out for a quick start; most replicas are loaded by now."""
    await asyncio.sleep(WARM_UP_AFTER_SECONDS)
    await asyncio.to_thread(warm_up)


def on_stop_signal(act: Callable[[], object]) -> None:
    """Call `act` within the running event loop as soon as this process gets a signal to stop.

    Streams have to end then, because the HTTP server waits for them before its lifespan ends. The
    HTTP server still handles the signal itself. If it does so through the event loop, which learns
    of signals in another way, the signal's handler is free for us; else our handler calls its own.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        before = signal.getsignal(number)
        if before != signal.SIG_IGN:  # an ignored signal stops nothing
            signal.signal(number, _both(before, loop, act))
            signal.siginterrupt(number, False)  # noqa: FBT003 - takes it by position only


def _both(
    before: Handler, loop: asyncio.AbstractEventLoop, act: Callable[[], object]
) -> Callable[[int, FrameType | None], None]:
    def handle(number: int, frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(act)
        if callable(before):
            before(number, frame)
        elif before == signal.SIG_DFL:
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)

    return handle


class _Late:
    """Builds an application at its first event, within the event loop that serves it."""

    def __init__(self, build: Callable[[], ASGIApp]) -> None:
        self._build = build
        self._app: ASGIApp | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._app is None:
            self._app = self._build()
        await self._app(scope, receive, send)


class SystemClock:
    """The machine's own clocks, without a function in between, since requests read them often."""

    now = staticmethod(partial(datetime.now, UTC))  # noqa: TID251 - this is where time comes in
    monotonic = staticmethod(time.monotonic)
    sleep = staticmethod(asyncio.sleep)


_UIDS_AT_A_TIME = 256
_UID_LENGTH = 36
_UID_DIGITS = [place for place in range(_UID_LENGTH) if place not in (8, 13, 18, 23)]
_UID_VERSION, _UID_VARIANT = 14, 19
_TO_VARIANT = bytes.maketrans(b"0123456789abcdef", b"89ab" * 4)


def _random_uids(count: int) -> list[str]:
    """Make many texts like those of `uuid.uuid4()` at once, which takes a seventh of the time.

    Each costs 3,100 instructions, one of `uuid.uuid4()` 20,500, and one that is made by itself in
    this way 8,600 (bench/RESULTS.md); a batch of placements takes one for each pod and event.
    """
    digits = os.urandom(16 * count).hex().encode()
    uids = bytearray(b"-" * _UID_LENGTH * count)
    for digit, place in enumerate(_UID_DIGITS):
        uids[place::_UID_LENGTH] = digits[digit::32]
    uids[_UID_VERSION::_UID_LENGTH] = b"4" * count
    uids[_UID_VARIANT::_UID_LENGTH] = uids[_UID_VARIANT::_UID_LENGTH].translate(_TO_VARIANT)
    text = uids.decode()
    return [text[at : at + _UID_LENGTH] for at in range(0, len(text), _UID_LENGTH)]


class RandomIds:
    """Makes identifiers from the operating system's randomness; each process has its own."""

    def __init__(self) -> None:
        self.uid: Callable[[], str] = chain.from_iterable(
            map(_random_uids, repeat(_UIDS_AT_A_TIME))
        ).__next__
        """Returns the `metadata.uid` for a new object; many are drawn at a time."""

    def suffix(self) -> str:
        """The end of a generated name."""
        return suffix_of(secrets.randbelow(SUFFIXES))

    commit_id = staticmethod(uuid.uuid4)  # noqa: TID251 - this is where identifiers come in
