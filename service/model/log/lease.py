"""Leases of work and of nodes, and reports about replicas, timed by the database's clock."""

import re
from datetime import datetime
from typing import NamedTuple

import msgspec

LEASE_SECONDS_MAX = 600
"""The maximum duration of a lease, in seconds; a later end means that the database's clock was set
back."""


class HeldLeases(msgspec.Struct, frozen=True, kw_only=True):
    """Leases that a holder must still have when a dependent commit is made."""

    holder: str
    names: tuple[tuple[int, str], ...]
    """The cluster number and the name of each lease."""


class Lease(msgspec.Struct, frozen=True, kw_only=True):
    """The holder of some work of a cluster, and when its lease ends by the database's clock."""

    cluster_id: int
    name: str
    holder: str
    until: datetime


UNREADY = re.compile(
    rb'"type":"Ready"[^}]*"status":"(False|Unknown)"|"status":"(False|Unknown)"[^}]*"type":"Ready"'
)
"""A pattern that matches bodies of nodes whose condition Ready is not True, and few others."""


class NodeReports(NamedTuple):
    """The existing nodes that sent reports, with the database's time and head at that moment."""

    known: frozenset[str]
    at: datetime
    revision: int


class NodeLeases(NamedTuple):
    """The state of nodes' leases at the database's time `now`."""

    now: datetime
    any: bool
    """Whether any node of the cluster has ever reported."""
    silent: frozenset[str]
    """The nodes whose last report is older than the grace period."""


class ReplicaState(NamedTuple):
    """The revision and hash of a replica; replicas with equal revisions and hashes are equal."""

    revision: int
    hash: str


REPORT_SECONDS_MAX = 5.0
"""The age of a process's last report, in seconds, beyond which it counts as dead."""


class ReplicaReport(msgspec.Struct, frozen=True, kw_only=True):
    """The latest report of a live process about its replica of one cluster."""

    process: str
    cluster: str
    revision: int
    hash: str
