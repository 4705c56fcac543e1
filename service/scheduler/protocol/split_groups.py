"""Split groups: the requests and answers about each cluster's part of a group."""

from datetime import datetime
from typing import Literal

import msgspec

from service.scheduler.protocol.answers import Answer

GroupStep = Literal["Commit", "Bind", "Release", "Forget"]
"""A cluster's step for its part of a group with reserved nodes.

Commit: the home cluster decides that all pods are bound, and binds its own. Bind: another cluster
binds its own after that. Release: the home gives up the group, unless it is committed, and deletes
its own pods; another cluster deletes its own after that. Forget: the home forgets a group that is
bound everywhere.
"""

STORED_MEANWHILE = "StoredMeanwhile"
"""The reason for denying a reservation to a pod whose name has since been stored.

The stored pod would be deleted if the group were given up, so the whole part is refused.
"""


class ReservationTerms(msgspec.Struct, frozen=True, kw_only=True):
    """The terms on which a cluster reserves nodes for its part of a split group."""

    group: str
    """The id of the group."""
    home: str
    """The name of the cluster that decides for all clusters of the group."""
    until: datetime
    """The time after which any process may give up the group."""
    clusters: tuple[str, ...] = ()
    """The names of all of the group's clusters in the home's record; empty in other clusters'
    records."""


class GroupAnswer(Answer, frozen=True, kw_only=True):
    """The state of a split group in one cluster after a step."""

    committed: bool
    """Whether the group exists and is committed; only its home knows."""
    clusters: tuple[str, ...] = ()
    """All clusters of the group, according to its home; empty if the group is unknown there."""
