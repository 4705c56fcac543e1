"""Leases of work and of nodes, and reports of replicas, by the database's clock."""

import re
from datetime import datetime
from typing import NamedTuple

import msgspec

LEASE_SECONDS_MAX = 600
"""No lease lasts longer: if one ends later, the database's clock was set back since it was taken."""


class HeldLeases(msgspec.Struct, frozen=True, kw_only=True):
    """Leases that a holder must still have when a commit that rests on them is made."""

    holder: str
    names: tuple[tuple[int, str], ...]
    """The number of the cluster, and the name, of each."""


class Lease(msgspec.Struct, frozen=True, kw_only=True):
    """The holder of some work of a cluster, and the end of its term by the database's clock."""

    cluster_id: int
    name: str
    holder: str
    until: datetime


UNREADY = re.compile(
    rb'"type":"Ready"[^}]*"status":"(False|Unknown)"|"status":"(False|Unknown)"[^}]*"type":"Ready"'
)
"""A pattern that finds almost only bodies of nodes whose condition Ready is not True."""


class NodeReports(NamedTuple):
    """The reporting nodes that exist, and the database's time and head at their report."""

    known: frozenset[str]
    at: datetime
    revision: int


class NodeLeases(NamedTuple):
    """The state of the nodes' leases at the database's time `now`."""

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
