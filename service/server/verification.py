"""Verify a database: run the chosen checks on each cluster, and report their findings."""

import asyncio
from collections.abc import Collection, Sequence

import msgspec

from service.api.telemetry.logs import configure_logs
from service.model.core.errors import StorageUnavailable
from service.model.verification_findings import ROWS, STATE, Check, Finding
from service.scheduler.verification import LoadedObjects
from service.server.database import database
from service.server.failures import ConfigurationError, StoppedError, UnavailableError
from service.server.signals import (
    StopSignal,
    raised_stop_signals,
    run_until_stopped,
)
from service.settings import Settings
from service.store.schema.migrate import is_current
from service.store.verification import DatabaseSnapshot, database_snapshot


class VerifiedCluster(msgspec.Struct, frozen=True, kw_only=True):
    """A verified cluster, with its findings."""

    cluster: str
    revision: int
    """The revision at which it was verified."""
    changes: int
    """The number of changes in its log."""
    objects: int | None
    """The number of its objects, or None if no check had to read them."""
    findings: list[Finding]


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """The findings in a database."""

    ok: bool
    """Whether nothing was found."""
    checks: list[Check]
    """The checks that were run."""
    clusters: list[VerifiedCluster]
    access: list[Finding]
    """The findings among principals and in the audit log."""


def run_verification(
    settings: Settings, clusters: Sequence[str], checks: Collection[Check]
) -> Report:
    """Run the named checks on the named clusters; without names, all checks or all clusters.

    Raises:
        ConfigurationError: there is no such cluster, or the tables are not those of this version.
        UnavailableError: the database cannot be reached, or failed.
        StoppedError: a stop signal arrived.
    """
    configure_logs(settings)
    chosen = [check for check in Check if not checks or check in checks]
    try:
        with raised_stop_signals() as stop_request, database(settings) as urls:
            stop_request.raise_if_made()
            return run_until_stopped(_verified(urls.migrating, clusters, chosen))
    except StopSignal as stopped:
        raise StoppedError(stopped.number, "Stopped before all was verified.") from None
    except StorageUnavailable as error:
        raise UnavailableError(f"The database cannot be read: {error}") from None


async def _verified(url: str, names: Sequence[str], checks: Sequence[Check]) -> Report:
    if not await is_current(url):
        raise ConfigurationError(
            "The tables are not those of this version: run `moorage migrate` first, or verify with the version that made them."
        )
    async with database_snapshot(url) as snapshot:
        known = await snapshot.clusters()
        access = await snapshot.access_findings() if Check.ACCESS in checks else []
    missing = [name for name in names if name not in known]
    if missing:
        raise ConfigurationError(f"There is no cluster {missing[0]}.")
    clusters = []
    for name in dict.fromkeys(names or known):
        # A snapshot per cluster keeps PostgreSQL from vacuuming for a shorter time.
        async with database_snapshot(url) as snapshot:
            verified = await _verified_cluster(snapshot, name, checks)
        clusters += [] if verified is None else [verified]
    is_ok = not access and not any(cluster.findings for cluster in clusters)
    return Report(ok=is_ok, checks=list(checks), clusters=clusters, access=access)


async def _verified_cluster(
    snapshot: DatabaseSnapshot, name: str, checks: Collection[Check]
) -> VerifiedCluster | None:
    """Return the checks' findings in one cluster, or None if the cluster no longer exists."""
    cluster_id = (await snapshot.clusters()).get(name)
    if cluster_id is None:
        return None
    size = await snapshot.size(cluster_id)
    findings: list[Finding] = []
    for check in checks:
        if check in ROWS:
            findings += await snapshot.row_findings(cluster_id, check)
    if Check.COPIES in checks:
        findings += await snapshot.change_findings(cluster_id)
    loaded: LoadedObjects | None = None
    if not STATE.isdisjoint(checks):
        loaded = LoadedObjects(size.revision)
        async for rows in snapshot.objects(cluster_id):
            loaded.load(rows)
            await asyncio.sleep(0)  # lets a signal be handled
        for check in checks:
            findings += loaded.findings(check) if check in STATE else []
    return VerifiedCluster(
        cluster=name,
        revision=size.revision,
        changes=size.changes,
        objects=None if loaded is None else loaded.count,
        findings=findings,
    )
