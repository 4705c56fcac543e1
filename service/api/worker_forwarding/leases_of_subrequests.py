"""Knows of a request that another one makes which leases its changes rest on; no client can say it."""

from collections.abc import Mapping
from typing import Any, cast

from litestar.types import Scope

from service.model.commit_log import HeldLeases

LEASES = "moorage.leases"
"""Where they are in the scope of a request that rests on any."""


def rest_on(scope: Scope, leases: HeldLeases | None) -> None:
    """Store in the scope what has to be held still when the request's changes are committed."""
    cast("dict[str, Any]", scope)[LEASES] = leases


def leases_of(scope: Scope) -> HeldLeases | None:
    """What has to be held still when the request's changes are committed; None for all of clients."""
    leases = cast("Mapping[str, Any]", scope).get(LEASES)
    return leases if isinstance(leases, HeldLeases) else None
