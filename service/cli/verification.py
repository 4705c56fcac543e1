"""Runs the checks of `moorage verify` on a database, and prints what they find."""

import asyncio
import sys
from collections.abc import Collection, Sequence

import msgspec

from service.api.telemetry.log_lines import configure_logs
from service.cli.errors import Stopped, Unavailable, WrongUsage
from service.cli.printing.output import Output
from service.cli.server.lifecycle import database
from service.cli.server.stop_signals_without_workers import (
    StopSignal,
    raised_stop_signals,
    run_until_stopped,
)
from service.model.errors import StorageUnavailable
from service.model.verification_findings import FINDINGS_MAX, ROWS, STATE, Check, Finding
from service.scheduler.verification import LoadedObjects
from service.settings import Settings
from service.store.row_verification import DatabaseSnapshot, database_snapshot
from service.store.schema.migrate import is_current


class VerifiedCluster(msgspec.Struct, frozen=True, kw_only=True):
    """What was verified of one cluster, and what was found."""

    cluster: str
    revision: int
    """The revision at which it was."""
    changes: int
    """How many changes its log had."""
    objects: int | None
    """How many objects it had; None if no check needed to look at them."""
    findings: list[Finding]


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What was found in a database."""

    ok: bool
    """Whether nothing was found."""
    checks: list[Check]
    """What was verified."""
    clusters: list[VerifiedCluster]
    access: list[Finding]
    """What was found beside the clusters."""


def run_verification(
    settings: Settings, clusters: Sequence[str], checks: Collection[Check]
) -> Report:
    """Run the named checks on the named clusters; all, if none is named.

    Raises:
        WrongUsage: there is no such cluster, or the tables are not those of this version.
        Unavailable: the database cannot be reached, or failed.
        Stopped: a signal came.
    """
    configure_logs(settings)
    chosen = [each for each in Check if not checks or each in checks]
    try:
        with raised_stop_signals() as stop_request, database(settings) as urls:
            stop_request.raise_if_made()
            return run_until_stopped(_verified(urls.migrating, clusters, chosen))
    except StopSignal as stopped:
        raise Stopped(stopped.number, "Stopped before all was verified.") from None
    except StorageUnavailable as error:
        raise Unavailable(f"The database cannot be read: {error}") from None


async def _verified(url: str, names: Sequence[str], checks: Sequence[Check]) -> Report:
    if not await is_current(url):
        raise WrongUsage(
            "The tables are not those of this version: run `moorage migrate` first, or verify with the version that made them."
        )
    async with database_snapshot(url) as snapshot:
        known = await snapshot.clusters()
        access = await snapshot.access_findings() if Check.ACCESS in checks else []
    missing = [name for name in names if name not in known]
    if missing:
        raise WrongUsage(f"There is no cluster {missing[0]}.")
    clusters = []
    for name in dict.fromkeys(names or known):
        # A snapshot for each cluster keeps PostgreSQL from vacuuming for a shorter time.
        async with database_snapshot(url) as snapshot:
            verified = await _verified_cluster(snapshot, name, checks)
        clusters += [] if verified is None else [verified]
    is_ok = not access and not any(each.findings for each in clusters)
    return Report(ok=is_ok, checks=list(checks), clusters=clusters, access=access)


async def _verified_cluster(
    snapshot: DatabaseSnapshot, name: str, checks: Collection[Check]
) -> VerifiedCluster | None:
    """Run the checks on one cluster; None if it was deleted meanwhile."""
    cluster_id = (await snapshot.clusters()).get(name)
    if cluster_id is None:
        return None
    size = await snapshot.size(cluster_id)
    found: list[Finding] = []
    for check in checks:
        if check in ROWS:
            found += await snapshot.row_findings(cluster_id, check)
    if Check.COPIES in checks:
        found += await snapshot.change_findings(cluster_id)
    loaded: LoadedObjects | None = None
    if not STATE.isdisjoint(checks):
        loaded = LoadedObjects(size.revision)
        async for rows in snapshot.objects(cluster_id):
            loaded.load(rows)
            await asyncio.sleep(0)  # for a signal
        for check in checks:
            found += loaded.findings(check) if check in STATE else []
    return VerifiedCluster(
        cluster=name,
        revision=size.revision,
        changes=size.changes,
        objects=None if loaded is None else loaded.count,
        findings=found,
    )


def print_report(report: Report, *, as_json: bool) -> None:
    """Print a report for programs or for people."""
    if as_json:
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(report), indent=2).decode() + "\n")
        return
    output = Output()
    rows = [
        (each.cluster, each.revision, each.changes, _or_dash(each.objects), _told(each.findings))
        for each in report.clusters
    ]
    output.table(["cluster", "revision", "changes", "objects", "result"], rows)
    if Check.ACCESS in report.checks:
        output.line(f"Principals and audit: {_told(report.access)}")
    every = [(each.cluster, finding) for each in report.clusters for finding in each.findings]
    for cluster, finding in [*every, *(("-", finding) for finding in report.access)]:
        output.line(f"{cluster}: {finding.check}: {finding.subject}: {finding.message}")


def _or_dash(count: int | None) -> int | str:
    return "-" if count is None else count


def _told(findings: Sequence[Finding]) -> str:
    """Return one word, or how many findings there are of which check."""
    counts = {each: sum(one.check is each for one in findings) for each in Check}
    told = [f"{each} {_at_least(number)}" for each, number in counts.items() if number]
    return ", ".join(told) or "ok"


def _at_least(number: int) -> str:
    return f"{FINDINGS_MAX} or more" if number >= FINDINGS_MAX else str(number)
