"""The composition root: the one place where the parts of a server process are wired."""

import asyncio
import logging
import os
import socket
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Protocol

from litestar import Litestar
from litestar.di import Provide
from litestar.types import ASGIApp
from typing_extensions import override

from service.api.auth.authentication import Authentication, BeginningAudit, PrincipalStore
from service.api.auth.csrf import BrowserCheck
from service.api.auth.guard import RequestGuard
from service.api.auth.oidc import IdentityProvider
from service.api.auth.rate_limits import Rates
from service.api.auth.refusal_log import Refusals
from service.api.auth.throttle import AnonymousThrottle
from service.api.forwarding.forwarder import forwarder_of
from service.api.http.body import BodyReader
from service.api.http.byte_budget import Budget
from service.api.http.context import ApiRequest
from service.api.http.exception_handler import answer_error
from service.api.http.flow_control import FlowControl
from service.api.http.permissions import require_declarations
from service.api.middleware.edge import Edge
from service.api.middleware.lazy_app import LazyApp
from service.api.reads.history import PastReads
from service.api.reads.stored import AuditReader, ClusterReads, LogReader
from service.api.resources.dispatch import FastPath
from service.api.resources.handlers import HANDLERS, Documents, openapi_document
from service.api.resources.server.routes import check_ready
from service.api.resources.services import Services
from service.api.telemetry.heartbeat import Heartbeat
from service.api.telemetry.metrics import Metrics
from service.api.telemetry.readiness import CommitProbe, CommitStore, ProvingLog
from service.api.telemetry.reporter import DatabaseReporter
from service.api.telemetry.traces import Spans, exported_spans
from service.api.webhooks.delivery import Deliveries, DeliveryStore
from service.api.webhooks.sending import Sender
from service.extenders import Extenders
from service.model.core.validators import Limits as ManifestLimits
from service.model.pods.template_cache import TemplateCache
from service.plugin.loading import load_plugins
from service.runtime import compiled_engine
from service.runtime.clock import SystemClock
from service.runtime.ids import RandomIds
from service.runtime.stop_callbacks import on_stop_signal
from service.runtime.tasks import background_tasks
from service.runtime.worker_deaths import Suspects
from service.sandbox import Evaluator
from service.scheduler.maintenance.recounts import IdleRecounts, Pace
from service.scheduler.maintenance.replica_reports import Reporter
from service.scheduler.protocol.limits import Limits
from service.scheduler.protocol.ports import Clock
from service.scheduler.scheduler import Scheduler
from service.settings import InvalidSettings, Settings, limits_of, settings_of_this_process
from service.store.postgres import PostgresStore, warm_up

__all__ = [
    "create_app",
    "create_app_from_environment",
    "openapi_document",
]

_log = logging.getLogger(__name__)

WARM_UP_AFTER_SECONDS = 10.0

Lifespan = Callable[[Litestar], AbstractAsyncContextManager[None]]


class ApiLog(LogReader, ProvingLog, Protocol):
    """The parts of clusters' logs that the API uses directly."""


class ApiAudit(AuditReader, BeginningAudit, Protocol):
    """The parts of the audit log that the API uses."""


class ApiStore(PrincipalStore, CommitStore, DeliveryStore, Protocol):
    """The parts of the store that the API uses directly."""

    @property
    @override
    def log(self) -> ApiLog: ...

    @property
    @override
    def audit(self) -> ApiAudit: ...


def create_app(  # noqa: PLR0913 - its parts, by name
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
    """Return the ASGI application over a store and a scheduler.

    Args:
        settings: The settings of this process.
        store: The store, which the API also reads directly.
        scheduler: The scheduler over the same store.
        clock: The clock of both.
        metrics: The scheduler's meter.
        proof: The probe that checks whether commits work.
        budget: The limit on the bytes that the process holds for requests.
        refusals: The record of refused requests for the audit log.
        sender: The sender of messages to webhooks.
        spans: The scheduler's tracer.
        lifespan: A context around the time in which requests are served.
        middleware: Middleware around each request that was routed and authorized.

    Raises:
        ImproperlyConfiguredException: an operation declares no permission.
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
    guard = RequestGuard(authentication, browsers, rates, AnonymousThrottle())
    app = _routed(services, guard, lifespan, middleware)
    return Edge(
        FlowControl(app, budget),
        settings,
        guard=guard,
        head_of=services.reads.head_or_none,
        metrics=services.metrics,
        refusals=refusals,
        spans=spans,
        monotonic=clock.monotonic,
        new_id=RandomIds().uid,
    )


def _routed(
    services: Services,
    guard: RequestGuard,
    lifespan: Lifespan | None,
    middleware: Sequence[Callable[[ASGIApp], ASGIApp]],
) -> Litestar:
    """Return the application that routes requests to their handlers, and injects the services.

    Raises:
        ImproperlyConfiguredException: an operation declares no permission.
    """
    documents = Documents()
    app = Litestar(
        route_handlers=HANDLERS,
        dependencies={
            "services": Provide(lambda: services, sync_to_thread=False),
            "openapi": Provide(documents.openapi),
            "openapi_page": Provide(documents.page),
        },
        request_class=ApiRequest,
        exception_handlers={Exception: answer_error},
        lifespan=[lifespan] if lifespan else [],
        on_startup=[services.authentication.start],
        on_shutdown=[services.authentication.close, services.sender.close],
        middleware=[
            guard,
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
    """Return the application of a server process over PostgreSQL, from its `MOORAGE_*` variables.

    Raises:
        InvalidSettings: a variable is misspelled or wrong, or there is no database.
        BadPlugin: an installed plugin cannot be used.
    """
    load_plugins()
    settings = settings_of_this_process()
    if settings.database_url is None:
        raise InvalidSettings("A server process needs MOORAGE_DATABASE_URL.")
    return LazyApp(partial(_create_process, settings, settings.database_url))


def _limits(settings: Settings) -> Limits:
    """Build the scheduler limits from the settings."""
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
    """Build the cache of templates, with the limits on pods from the settings."""
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
        version=metadata.version("moorage-server"),
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
    spans = exported_spans(settings.tracing, metadata.version("moorage-server"), clock)
    forwarding = forwarder_of(settings, store, clock, limits, metrics, budget)
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
        """Return the coroutines to run in the background."""
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
            await forwarding.start(FlowControl(app, budget), spans)
        on_stop_signal(scheduler.watching.close)
        if forwarding is not None:
            on_stop_signal(forwarding.leave)
        async with background_tasks(background()):
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
    """Yield coroutines that report replicas and readiness to other processes."""
    if settings.debug:
        name = f"{socket.gethostname()}/{os.getpid()}"
        yield Reporter(store.replica_reports, scheduler, clock, name).run()
    if settings.health_socket is not None:
        ready = partial(check_ready, proof, scheduler, settings.ready_lag_seconds_max)
        yield Heartbeat(settings.health_socket, ready).run()


def _deliveries(
    settings: Settings, store: PostgresStore, sender: Sender, clock: Clock, metrics: Metrics
) -> Deliveries:
    """Build this process's webhook deliveries."""
    return Deliveries(
        store=store,
        sender=sender,
        settings=settings,
        clock=clock,
        meter=metrics,
        holder=f"{socket.gethostname()}/{os.getpid()}/{RandomIds().uid()}",
    )


async def _warm_up() -> None:
    """Import the modules that startup skipped, once most replicas are likely to be loaded."""
    await asyncio.sleep(WARM_UP_AFTER_SECONDS)
    await asyncio.to_thread(warm_up)
