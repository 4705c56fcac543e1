"""Leases of work and of nodes, and reports of replicas, by the database's clock."""

import re
from datetime import datetime
from typing import NamedTuple

import msgspec

LEASE_SECONDS_MAX = 600
"""No lease lasts longer: if one ends later, the database's clock was set back since it was taken."""


class HeldLeases(msgspec.Struct, frozen=True, kw_only=True):
    """Leases that a holder has to have still when something is committed that rests on them."""

    holder: str
    names: tuple[tuple[int, str], ...]
    """The number of the cluster, and the name, of each."""


class Lease(msgspec.Struct, frozen=True, kw_only=True):
    """Who does some work of a cluster, and until when by the database's clock."""

    cluster_id: int
    name: str
    holder: str
    until: datetime


UNREADY = re.compile(
    rb'"type":"Ready"[^}]*"status":"(False|Unknown)"|"status":"(False|Unknown)"[^}]*"type":"Ready"'
)
"""What bodies of nodes contain whose condition Ready is not True, and hardly any others."""


class NodeReports(NamedTuple):
    """Which of the nodes that reported there are, and the database's time and head when they did."""

    known: frozenset[str]
    at: datetime
    revision: int


class NodeLeases(NamedTuple):
    """What the leases of nodes say at the time `now` of the database."""

    now: datetime
    any: bool
    """Whether any node of the cluster has ever reported."""
    silent: frozenset[str]
    """The nodes whose last report is older than the grace period."""


class ReplicaState(NamedTuple):
    """The state of a replica: two replicas with the same revision and hash are equal."""

    revision: int
    hash: str


REPORT_SECONDS_MAX = 5.0
"""A process whose last report is older counts as dead."""


class ReplicaReport(msgspec.Struct, frozen=True, kw_only=True):
    """The last report of a living process on its replica of one cluster."""

    process: str
    cluster: str
    revision: int
    hash: str
