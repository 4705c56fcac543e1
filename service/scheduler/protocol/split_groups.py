"""Split groups, which are placed across several clusters: what each cluster is asked about its part."""

from datetime import datetime
from typing import Literal

import msgspec

from service.scheduler.protocol.answers import Answer

GroupStep = Literal["Commit", "Bind", "Release", "Forget"]
"""What a cluster does with its part of a group whose nodes are reserved.

Commit: the home cluster decides that all pods are bound, and binds its own. Bind: another cluster
binds its own after that. Release: the home gives up the group, unless it is committed, and deletes
its own pods; another cluster deletes its own after that. Forget: the home forgets a group that is
bound everywhere.
"""

STORED_MEANWHILE = "StoredMeanwhile"
"""The reason for denying a reservation to a pod whose name has been stored meanwhile.

That pod would be deleted if the group were given up, so the whole part of the group is refused.
"""


class ReservationTerms(msgspec.Struct, frozen=True, kw_only=True):
    """The terms on which nodes are reserved for a cluster's part of a split group."""

    group: str
    """The id of the group."""
    home: str
    """The name of the cluster that decides for all of them."""
    until: datetime
    """The time from which on anybody may give the group up."""
    clusters: tuple[str, ...] = ()
    """The names of all clusters of the group, in the record of its home; in those of the others there are none."""


class GroupAnswer(Answer, frozen=True, kw_only=True):
    """The state of a split group in one cluster after a step."""

    committed: bool
    """Whether the group is there and committed, which only its home knows."""
    clusters: tuple[str, ...] = ()
    """All clusters of the group, as its home knows them; none if it knows no such group."""
