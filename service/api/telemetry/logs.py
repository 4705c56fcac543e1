"""Configure the logs of a server's processes: one line per event, as text or JSON.

All modules use the standard library's `logging`; only this one knows how a line is rendered. The
running request or cluster is added when a line is written, so a request that logs nothing pays only
for one context variable.
"""

import json
import logging
import logging.config
import multiprocessing
from collections.abc import Callable
from typing import Any, Literal

import structlog
from structlog.dev import Column, ConsoleRenderer, KeyValueColumnFormatter
from structlog.types import EventDict, Processor

from service.api.http.context import current_request
from service.runtime.log_context import CLUSTER
from service.settings import Settings, named_levels

LogFormat = Literal["text", "json"]

OWN = "service"
"""The parent of all our loggers; loggers of libraries only report problems."""

_ENCODE = json.JSONEncoder(ensure_ascii=False).encode
_FIRST = ("time", "level", "process", "logger", "message", "cluster", "request_id", "trace_id")
"""The first fields of a line of JSON, in order."""


def configure_logs(settings: Settings) -> None:
    """Configure this process's log from its settings."""
    logging.config.dictConfig(logging_of(settings))
    logging.captureWarnings(capture=True)


def logging_of(settings: Settings) -> dict[str, Any]:
    """Return the settings as a `logging` configuration, which can be sent to other processes."""
    levels = {OWN: settings.log_level, **named_levels(settings)}
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "line": {"()": f"{__name__}.formatter", "log_format": settings.log_format},
        },
        "handlers": {
            "stderr": {
                "class": "logging.StreamHandler",
                "formatter": "line",
                "stream": "ext://sys.stderr",
            }
        },
        "root": {"handlers": ["stderr"], "level": "WARNING"},
        # The HTTP server sets the level of its own logger, and would add its own handlers.
        "loggers": {
            "_granian": {"handlers": [], "propagate": True},
            **{name: {"level": level.upper()} for name, level in levels.items()},
        },
    }


def formatter(log_format: LogFormat) -> logging.Formatter:
    """Return the formatter for a log format: JSON or text."""
    render = _json if log_format == "json" else _text
    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=[
            structlog.stdlib.add_log_level,
            structlog.stdlib.ExtraAdder(),
            structlog.processors.TimeStamper(fmt="iso", utc=True, key="time"),
            _add_origin,
            structlog.processors.format_exc_info,
            structlog.processors.EventRenamer("message"),
        ],
        processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *render()],
    )


def _add_origin(_logger: object, _method: str, event: EventDict) -> EventDict:
    """Add the process, the logger, and the cluster and request that the line belongs to."""
    record: logging.LogRecord = event["_record"]
    kind = "server" if multiprocessing.parent_process() is None else "worker"
    event["logger"], event["process"] = record.name, f"{kind}[{record.process}]"
    request = current_request()
    origin = {"cluster": CLUSTER.get(), **(request.log_fields() if request else {})}
    for name, value in origin.items():
        if value:
            event.setdefault(name, value)
    return event


def _json() -> list[Processor]:
    return [_in_order, structlog.processors.JSONRenderer(ensure_ascii=False)]


def _in_order(_logger: object, _method: str, event: EventDict) -> EventDict:
    first = {name: event.pop(name) for name in _FIRST if name in event}
    return {**first, **event}


def _text() -> list[Processor]:
    def column(name: str, text: Callable[[object], str], width: int = 0) -> Column:
        return Column(name, KeyValueColumnFormatter(None, "", "", text, width))

    named = KeyValueColumnFormatter("", "", "", _quoted)
    columns = [
        column("time", str),
        column("level", lambda level: str(level).upper(), len("WARNING")),
        column("process", str),
        column("logger", lambda name: f"{name}:"),
        column("message", _on_one_line),
        Column("", named),
    ]
    return [ConsoleRenderer(columns=columns, sort_keys=False)]


def _on_one_line(message: object) -> str:
    """Escape unprintable characters, except the line ends of a message of several lines."""
    text = str(message)
    lines = text.splitlines() if "\n" in text else [text]
    return "\n  ".join(line if line.isprintable() else repr(line)[1:-1] for line in lines)


def _quoted(value: object) -> str:
    """Quote text with blanks or unprintable characters, to separate it from the next field."""
    text = str(value)
    plain = text.isprintable() and not any(c in text for c in ' "=')
    return text if plain and text else _ENCODE(text)
