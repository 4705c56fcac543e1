"""Requests with `dryRun`: they are decided as usual, and change nothing."""

from collections.abc import Mapping
from typing import TypeVar

from service.api.bodies.budget import holding_of
from service.api.bodies.requests import AnyRequest, flag
from service.scheduler.protocol.answers import Answer
from service.scheduler.protocol.intents import DryRun, Intent

A = TypeVar("A", bound=Answer)


def is_dry(parameters: Mapping[str, str]) -> bool:
    """Whether a request is to change nothing."""
    return flag(parameters, "dryRun")


def dry_if_asked(
    request: AnyRequest, parameters: Mapping[str, str], intent: Intent[A]
) -> Intent[A]:
    """The intent, or one that decides it and changes nothing; its answer may be refused for lack of room."""
    if not is_dry(parameters):
        return intent
    holding_of(request.scope).changes_nothing = True
    return DryRun(intent=intent)
