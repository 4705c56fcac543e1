"""Dry runs: requests with `dryRun`, which are decided as usual but change nothing."""

from collections.abc import Mapping
from typing import TypeVar

from service.api.http.context import ApiRequest
from service.api.http.request import wrong_parameter
from service.scheduler.protocol.answers import Answer
from service.scheduler.protocol.intents import DryRun, Intent

A = TypeVar("A", bound=Answer)


def is_dry(parameters: Mapping[str, str]) -> bool:
    """Return whether a request is a dry run; `All` is Kubernetes' spelling of `true`."""
    text = parameters.get("dryRun", "false")
    if text not in ("true", "false", "All"):
        raise wrong_parameter("dryRun", "has to be true, false or All", text)
    return text != "false"


def note_dry_run(request: ApiRequest, parameters: Mapping[str, str]) -> bool:
    """Return whether a request is a dry run; if so, its answer may be refused for lack of room."""
    dry = is_dry(parameters)
    if dry:
        request.context.reservation.changes_nothing = True
    return dry


def with_dry_run(
    request: ApiRequest, parameters: Mapping[str, str], intent: Intent[A]
) -> Intent[A]:
    """Return the intent, wrapped in a `DryRun` if the request is one."""
    return DryRun(intent=intent) if note_dry_run(request, parameters) else intent
