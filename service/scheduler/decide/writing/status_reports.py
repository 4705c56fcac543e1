"""Applies status reports for many pods, each like a patch of the pod."""

from functools import partial

from msgspec import UNSET

from service.model.core.errors import Forbidden, InvalidManifest
from service.model.core.field_warnings import warnings_in_part
from service.model.registry.manifests import PodManifest
from service.scheduler.decide.context import Decision, DecisionContext
from service.scheduler.decide.object_writes import require_stored, upsert
from service.scheduler.decide.writing.independent_writes import (
    STEP_OBJECTS,
    Warnings,
    WriteOutcome,
    attempt_write,
    refused_outcome,
    result_warnings,
)
from service.scheduler.protocol.answers import LineResult, LinesAnswer
from service.scheduler.protocol.callers import Caller
from service.scheduler.protocol.intents import ReportLine, ReportStatus, StatusReport


def report_statuses(context: DecisionContext, intent: ReportStatus) -> Decision[LinesAnswer]:
    """Change the status of each reported pod; an error in one report does not stop the others."""
    results = []
    for index, line in enumerate(intent.lines):
        results.append(_result(context, line, intent.caller))
        if index % STEP_OBJECTS == STEP_OBJECTS - 1:
            yield
    return LinesAnswer(revision=context.replica.revision, results=results)


def _result(context: DecisionContext, line: ReportLine, caller: Caller) -> LineResult:
    report = line.report
    warnings: Warnings = UNSET
    if isinstance(report, InvalidManifest | Forbidden):
        namespace, name = line.namespace, line.name
        done = refused_outcome(report)
    else:
        namespace, name = report.namespace, report.name
        done = attempt_write(context, partial(_reported, context, report, caller))
        warnings = (
            UNSET if done.errors else result_warnings(warnings_in_part("status", report.status))
        )
    return LineResult(
        line=line.line,
        kind=PodManifest.kind,
        namespace=namespace,
        name=name,
        result=done.result,
        revision=done.revision,
        errors=done.errors,
        warnings=warnings,
    )


def _reported(context: DecisionContext, report: StatusReport, caller: Caller) -> WriteOutcome:
    stored = require_stored(
        context, PodManifest.kind, report.namespace, report.name, report.preconditions
    )
    assert isinstance(stored.manifest, PodManifest)
    sent = stored.manifest.reporting(report.status, context.templates.limits)
    written = upsert(context, sent, caller, patched=True)
    return WriteOutcome(written.effect, written.stored.revision)
