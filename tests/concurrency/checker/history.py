"""What a run leaves behind: what clients asked and were told, what watchers saw, and the log."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal, NamedTuple
from uuid import UUID

from service.model.log.audit_chain import AuditRow
from service.model.log.commit import Change, CommitInfo

Key = tuple[str, str, str]
"""Kind, namespace and name."""
Action = Literal["place", "put", "apply", "delete", "evict", "config", "get", "topology", "quotas"]
Outcome = Literal["ok", "fail", "unknown"]
"""Unknown: no answer, a reset connection, or an answer that says that it is not known."""


@dataclass(frozen=True, kw_only=True)
class Call:
    """One call of one client; retries of an operation are calls of their own.

    `asked` depends on the action:

    - `place`: `pods` (keys of the pods), `group`, `dry_run`, `queue`
    - `put`, `delete`, `evict`, `get`: `object` (its key); of a put also `resource_version`
    - `apply`: `objects` (their keys)
    - `config`, `topology`: the patch, the key
    - `quotas`: nothing

    `body` is the answer as a client reads it: a placement's JSON; for an object `resourceVersion`,
    `created` and `object`.
    """

    number: int
    client: str
    operation: int
    action: Action
    asked: dict[str, Any]
    key: str | None = None
    request_hash: str = ""
    called: float
    returned: float
    outcome: Outcome
    status: str
    """`ok`, or the code of the error."""
    revision: int | None = None
    body: Any = None
    manifests: Sequence[dict[str, Any]] = ()
    """The pods to be placed, as they were sent."""
    recorded: bool = False
    """Whether the answer is the one that was recorded under the key before."""
    head_called: int | None = None
    head_returned: int | None = None
    """Where the log really ended at these moments, where somebody could know."""

    @property
    def is_acknowledged_placement(self) -> bool:
        """Whether it asked for a placement and was answered, whatever became of its pods."""
        return self.action == "place" and self.outcome == "ok"

    @property
    def pods_placed(self) -> int:
        """How many pods it was told to be placed now."""
        if not self.is_acknowledged_placement:
            return 0
        return sum(result["outcome"] == "Placed" for result in self.body["results"])

    def __str__(self) -> str:
        told = self.status if self.revision is None else f"{self.status}@{self.revision}"
        return f"call {self.number} ({self.client}: {self.action} {self.asked} -> {told})"


class Seen(NamedTuple):
    """One event of a watch."""

    revision: int
    verb: str
    key: Key
    body: bytes


@dataclass(frozen=True, kw_only=True)
class Transcript:
    """What a watcher saw that asked for everything after `since`, in the order of arrival.

    `truth`: revisions up to which it was told that it had seen all (bookmarks), each with the
    number of events before it.
    """

    since: int
    events: list[Seen]
    truths: list[tuple[int, int]]


@dataclass(frozen=True, kw_only=True)
class Listing:
    """All objects of a kind, read in several pages while others wrote.

    `revision` is that of the first page; `rows` have each object's own revision.
    """

    kind: str
    revision: int
    rows: dict[Key, tuple[int, bytes]]


@dataclass(frozen=True, kw_only=True)
class ReplicaState:
    """A worker's replica after some quiet."""

    worker: str
    revision: int
    digest: str
    """Of keys and revisions, and after a dash of what is counted."""
    probes: Any
    """What it answers to questions that change nothing."""


@dataclass(kw_only=True)
class History:
    """Everything about one cluster. The log must reach back to revision 1."""

    calls: list[Call] = field(default_factory=list)
    commits: list[CommitInfo] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)
    head: tuple[int, UUID] | None = None
    rows: dict[Key, tuple[int, bytes]] = field(default_factory=dict)
    committed_at: dict[UUID, float] = field(default_factory=dict)
    """When each commit was made, on the clock of `Call.called`; empty where nobody knows."""
    transcripts: list[Transcript] = field(default_factory=list)
    listings: list[Listing] = field(default_factory=list)
    replicas: list[ReplicaState] = field(default_factory=list)
    audit: Sequence[AuditRow] | None = None
    """The rows about the cluster; None: nobody kept them."""
    loaded: str = ""
    """The digest of a replica that was loaded from the tables at the end; empty where none was."""
    differing: list[str] = field(default_factory=list)
    """What was decided otherwise than by a replica that was loaded from the tables."""
    alarms: list[str] = field(default_factory=list)
    """What the workers themselves reported as a bug."""
    foreign: bytes = b""
    """A word that only objects of other clusters contain."""
    granted: int = 1
    """Changes up to this revision were made before the run: the cluster itself is the first."""
    storage_fails: bool = False
    """Whether workers could not reach the database at times: what only tells may then be old."""
    clocks_jump: bool = False
    """Whether the database's own clock may have jumped, by which due times are judged (P16)."""
    unseen: timedelta = timedelta(seconds=2)
    """A rule may hold so long between two looks, with nobody there who looks, and go on as broken."""
    blur: timedelta = timedelta(seconds=0.25)
    """The service knows the database's time but for what an answer takes on its way."""
    ended: datetime | None = None
    """The database's time at the end, after some quiet; None where there was none."""
    healed: list[str] = field(default_factory=list)
    """What did not work although all trouble was over."""

    @property
    def ends_of_requests(self) -> list[int]:
        """The last revision that each row of the audit tells of; empty if nobody kept an audit."""
        return [row.revision or 0 for row in self.audit or ()]


class Violation(NamedTuple):
    """An invariant that does not hold."""

    invariant: str
    message: str

    def __str__(self) -> str:
        return f"{self.invariant}: {self.message}"
