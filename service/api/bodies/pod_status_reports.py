"""Reads reports of the status of pods, each a JSON object that names its pod."""

import msgspec

from service.api.http.body import converted
from service.api.openapi import object_types
from service.model.errors import FieldError, InvalidManifest, MalformedJSON
from service.model.json_and_patches.strict_json import decode_strict, encode
from service.scheduler.protocol.intents import Preconditions, ReportLine, StatusReport


class _Named(msgspec.Struct, frozen=True):
    namespace: object = None
    name: object = None


def parse_report(line: int, raw: bytes) -> ReportLine:
    """The report of a line; one that is not valid has its errors in it."""
    decoded: object = None
    try:
        decoded = decode_strict(raw)
        report = converted(decoded, object_types.StatusReport)
    except MalformedJSON as error:
        return ReportLine(line=line, report=InvalidManifest([FieldError("", error.detail)]))
    except InvalidManifest as error:
        return _bad(line, error, decoded)
    return ReportLine(
        line=line,
        report=StatusReport(
            namespace=report.namespace,
            name=report.name,
            status=encode(report.status),
            preconditions=Preconditions(
                uid=report.uid or None, resource_version=report.resource_version or None
            ),
        ),
        namespace=report.namespace,
        name=report.name,
    )


def _bad(line: int, error: InvalidManifest, decoded: object) -> ReportLine:
    named = msgspec.convert(decoded, _Named) if isinstance(decoded, dict) else _Named()
    namespace, name = (
        each if isinstance(each, str) else None for each in (named.namespace, named.name)
    )
    return ReportLine(line=line, report=error, namespace=namespace, name=name)
