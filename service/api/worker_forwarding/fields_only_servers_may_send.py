"""What a server's own request to a cluster knows that no client can say: leases, a reservation, a step of a group."""

from collections.abc import Mapping
from typing import Any, cast

import msgspec
from litestar.types import Scope

from service.model.log.lease import HeldLeases
from service.scheduler.protocol.intents import AdvanceGroup
from service.scheduler.protocol.split_groups import ReservationTerms

TERMS = "moorage.subrequest-terms"
"""Where it is in the scope of a request that another one makes."""


class SubrequestTerms(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a request of a server to one cluster knows besides what a client could say."""

    leases: HeldLeases | None = None
    """What has to be held still when the request's changes are committed."""
    alone: bool = False
    """Whether each pod is placed by itself, whatever group it is in."""
    reserving: ReservationTerms | None = None
    """If it is given, pods are only reserved, as part of a group in several clusters."""
    step: AdvanceGroup | None = None
    """If it is given, this step is taken and nothing else."""


def rest_on(scope: Scope, told: SubrequestTerms | None) -> None:
    """Store in the scope what the request rests on."""
    cast("dict[str, Any]", scope)[TERMS] = told


def terms_of(scope: Scope) -> SubrequestTerms | None:
    """What the request rests on; None for all of clients."""
    told = cast("Mapping[str, Any]", scope).get(TERMS)
    return told if isinstance(told, SubrequestTerms) else None
