"""All kinds of faults that the campaign injects: what happens, how often, and what must follow.

`python -m tests.concurrency.faults.kinds` writes `docs/faults.md` from this table.
"""

import random
import sys
from collections.abc import Awaitable, Callable
from typing import Literal, NamedTuple

from tests.concurrency.faults import of_callers, of_database, of_network, of_servers
from tests.concurrency.faults.of_network import at_commit
from tests.concurrency.faults.scene import Scene
from tests.paths import ROOT

PAGE = ROOT / "docs" / "faults.md"
Lane = Literal["commit", "network", "database", "server", "caller"]
"""Faults of one lane come one after the other; those of several lanes overlap."""
Inject = Callable[[Scene, random.Random], Awaitable[bool]]
"""Answers, when the fault is over, whether there was anything to befall."""


class Kind(NamedTuple):
    """A kind of fault."""

    name: str
    lane: Lane
    weight: int
    """How often, compared with the others of all lanes."""
    inject: Inject
    happens: str
    follows: str
    """What must follow, beside what must follow each of them."""

    @property
    def needs_proxy(self) -> bool:
        """Whether it befalls the way from a server to PostgreSQL."""
        return self.lane in {"commit", "network"}


ONCE = "the commit is there once, and its caller is told of it, or it is not there and is done anew"
KINDS = (
    # Commits
    Kind("commit: never sent", "commit", 6, at_commit("never sent"),
         "The connection breaks before PostgreSQL hears of the commit.",
         "the worker finds that nothing was committed, and commits once"),
    Kind("commit: answer lost", "commit", 6, at_commit("answer lost"),
         "PostgreSQL commits, and the connection breaks before its answer.",
         "the worker finds the commit, and answers from it"),
    Kind("commit: sent late", "commit", 6, at_commit("sent late"),
         "The connection breaks, and 0.1 s later the commit reaches PostgreSQL all the same.",
         "a commit that was settled as lost is fenced off"),
    Kind("commit: request torn", "commit", 5, at_commit("request torn"),
         "Half of the commit's bytes reach PostgreSQL, then the connection breaks.",
         "half a commit is none"),
    Kind("commit: answer torn", "commit", 5, at_commit("answer torn"),
         "Half of the answer's bytes reach the worker, then the connection breaks.",
         "half an answer is none: the outcome is looked up"),
    Kind("commit: answer late", "commit", 3, at_commit("answer late"),
         "The answer takes 0.3 to 3 s.",
         "other clusters do not wait; whoever lost its lease meanwhile decides again"),
    Kind("commit: answer silent", "commit", 3, at_commit("answer silent"),
         "PostgreSQL commits, nothing is heard for 0.3 to 3 s, then the connection breaks.", ONCE),
    Kind("commit: never answered", "commit", 1, at_commit("never answered"),
         "PostgreSQL commits, and the connection stays, on which nothing is heard any more.",
         "the worker gives it up two seconds after a statement must have ended; " + ONCE),
    Kind("commit: reset", "commit", 5, at_commit("reset"),
         "Both ends are reset (RST) while PostgreSQL commits.", ONCE),
    Kind("commit: statement cancelled", "commit", 4, at_commit("cancelled"),
         "Somebody cancels the statement while it commits (SIGINT to the backend).", ONCE),
    Kind("commit: backend terminated", "commit", 4, at_commit("terminated"),
         "Somebody terminates the backend while it commits (SIGTERM).", ONCE),
    Kind("commit: backend killed", "commit", 1, at_commit("backend killed"),
         "The kernel kills the backend while it commits (SIGKILL); PostgreSQL recovers.", ONCE),
    Kind("commit: worker killed before", "commit", 2, at_commit("killed before"),
         "The worker dies (SIGKILL) before PostgreSQL hears of its commit.",
         "nothing of the commit is there; the callers ask another worker"),
    Kind("commit: worker killed between", "commit", 2, at_commit("killed between"),
         "The worker dies when PostgreSQL has committed, and it does not know yet.",
         "the callers, who ask again with the same key, get the answer that was committed"),
    Kind("commit: worker killed after", "commit", 2, at_commit("killed after"),
         "The worker dies as soon as it could know that its commit is done.",
         "what was acknowledged is there, what was not has one effect"),
    # The network
    Kind("connections reset", "network", 3, of_network.reset,
         "All connections of a server to PostgreSQL are reset.", "it opens others"),
    Kind("connections refused", "network", 1, of_network.refused,
         "They are reset, and new ones refused for 0.3 to 3 s.",
         "the server says 503 or has another one decide, and tries again"),
    Kind("network stalled", "network", 1, of_network.stalled,
         "Nothing passes for 0.3 to 3 s in either direction, then all of it does.",
         "what was planned before and arrives late is fenced off or still true"),
    Kind("network silent", "network", 1, of_network.blackhole,
         "Nothing passes for 0.3 to 3 s, then all connections are reset.", ONCE),
    Kind("answers lost one way", "network", 1, of_network.one_way,
         "PostgreSQL hears the server, which hears nothing for 0.3 to 3 s and is reset.", ONCE),
    Kind("network slow", "network", 1, of_network.delayed,
         "Each piece takes 20 to 100 ms, for 0.3 to 3 s.", "answers are late, not wrong"),
    Kind("network narrow", "network", 1, of_network.narrow,
         "20 to 100 kB pass a second, for 0.3 to 3 s.", "answers are late, not wrong"),
    Kind("notifications lost", "network", 2, of_network.notifications_lost,
         "Hints that the log has grown get lost for 0.3 to 3 s.",
         "hints are only hints: nobody plans on an old state for good"),
    Kind("notifications late and twice", "network", 2, of_network.notifications_repeated,
         "Hints come late, and twice, for 0.3 to 3 s.", "no change is applied twice"),
    # PostgreSQL
    Kind("PostgreSQL killed", "database", 2, of_database.killed,
         "SIGKILL of its first process.", "it recovers, with all that was acknowledged"),
    Kind("PostgreSQL restarted", "database", 1, of_database.restarted,
         "It is told to end (SIGINT), ends all transactions, and is started again.",
         "servers connect anew"),
    Kind("PostgreSQL restarted at once", "database", 1, of_database.restarted_at_once,
         "It is told to end without a checkpoint (SIGQUIT), and recovers.",
         "servers connect anew"),
    Kind("PostgreSQL stood still", "database", 1, of_database.stood_still,
         "All its processes stand still for 0.3 to 2 s (SIGSTOP).",
         "what it was asked before is done then, once"),
    Kind("backend killed", "database", 1, of_database.backend_killed,
         "The kernel kills one of its processes that serve workers; it recovers.", ONCE),
    Kind("background process killed", "database", 1, of_database.background_killed,
         "The kernel kills its checkpointer, its writer of the log, or another one.", ONCE),
    Kind("backends terminated", "database", 2, of_database.backends_terminated,
         "All connections of servers are terminated.", ONCE),
    Kind("idle connections terminated", "database", 2, of_database.idle_terminated,
         "Those that nobody uses just now are terminated, as by a firewall.",
         "nobody is told of it"),
    Kind("statements cancelled", "database", 2, of_database.statements_cancelled,
         "Whatever statement runs is cancelled, twenty times in 0.2 s.", ONCE),
    Kind("read-only mode", "database", 1, of_database.read_only,
         "New transactions may only read, for 0.3 to 2 s.",
         "nothing is acknowledged that is not written; reads are answered"),
    Kind("short time limits", "database", 1, of_database.statements_short,
         "Statements may take 3 ms and wait 1 ms for locks, for 0.3 to 2 s.", ONCE),
    Kind("synchronous standby gone", "database", 1, of_database.standby_gone,
         "Commits wait for a standby that is not there, for 0.3 to 2 s.",
         "nothing is acknowledged meanwhile, and nothing is lost that is visible already"),
    Kind("slow disk", "database", 1, of_database.slow_disk,
         "Each commit waits 0.1 s for the disk, for 0.3 to 2 s.", "answers are late, not wrong"),
    Kind("database closed", "database", 1, of_database.connections_refused,
         "It lets nobody in for 0.3 to 2 s, and those that are in have to go.",
         "servers connect anew"),
    Kind("connections exhausted", "database", 1, of_database.connections_exhausted,
         "Others take all connections for 0.3 to 2 s.", "servers connect anew"),
    Kind("table locked", "database", 1, of_database.table_locked,
         "A foreign transaction holds a table for 0.3 to 2 s, as ALTER TABLE does.",
         "commits wait, and are done once"),
    Kind("heads locked", "database", 1, of_database.head_locked,
         "A foreign transaction holds the heads of all clusters for 0.3 to 2 s.",
         "commits wait, and are done once"),
    Kind("table rewritten", "database", 1, of_database.table_rewritten,
         "VACUUM FULL of a table.", "prepared statements go on"),
    Kind("indexes rebuilt", "database", 1, of_database.index_rebuilt,
         "REINDEX of a table.", "prepared statements go on"),
    # Servers
    Kind("worker killed", "server", 3, of_servers.worker_killed,
         "SIGKILL of a worker.", "another one takes its place; its callers ask again"),
    Kind("all workers killed", "server", 1, of_servers.all_workers_killed,
         "SIGKILL of the workers of both servers.", "they are started again"),
    Kind("worker told to end", "server", 1, of_servers.worker_ended,
         "SIGTERM of a worker.", "another one takes its place"),
    Kind("worker stood still", "server", 2, of_servers.worker_stood_still,
         "A worker stands still for 0.1 to 3 s (SIGSTOP).",
         "others go on; what it planned before is decided again"),
    Kind("worker stuttered", "server", 1, of_servers.worker_stuttered,
         "A worker stands still for up to 0.1 s, twenty times.", "answers are late, not wrong"),
    Kind("supervisor stood still", "server", 1, of_servers.supervisor_stood_still,
         "A worker dies while its supervisor stands still for 0.1 to 3 s.",
         "the other server goes on; the worker is started afterwards"),
    Kind("fork server killed", "server", 1, of_servers.fork_server_killed,
         "The process dies that workers are forked from, and they with it.",
         "both are started again"),
    Kind("descriptors exhausted", "server", 1, of_servers.out_of_descriptors,
         "A worker may open no file or connection for 0.5 to 2 s, and loses those to PostgreSQL.",
         "it serves again when it may"),
    Kind("server killed", "server", 1, of_servers.server_killed,
         "SIGKILL of a supervisor, with which its workers end; it is started again.",
         "the other server goes on"),
    Kind("server stopped", "server", 1, of_servers.server_stopped,
         "SIGTERM; it is started again when it has ended.",
         "what it has accepted is answered, and it ends with 0"),
    Kind("server killed while it stops", "server", 1, of_servers.server_told_twice,
         "SIGTERM, and SIGKILL up to 0.3 s later; it is started again.", ONCE),
    # Callers
    Kind("caller hung up", "caller", 8, of_callers.hung_up,
         "A caller ends its connection after 1 to 20 ms, and asks another server at once with the"
         " same key.", "its request has one effect, and one answer"),
    Kind("request cut off", "caller", 5, of_callers.cut_off,
         "A connection is reset in the middle of a request's body.", "nothing comes of it"),
    Kind("server flooded", "caller", 1, of_callers.flooded,
         "200 connections are opened at once, and nothing is asked.", "others are served"),
)  # fmt: skip
"""By lane, in which the weights say how often each comes."""

_LANES: dict[Lane, str] = {
    "commit": "Commits on their way",
    "network": "The network between a server and PostgreSQL",
    "database": "PostgreSQL",
    "server": "Servers and their processes",
    "caller": "Callers",
}
_HEAD = f"""# Faults

The campaign `make inject-faults` ([reliability](reliability.md#faults-in-real-processes)) injects
these {len(KINDS)} kinds of faults into real processes while callers place pods and make plans. The
page is written from the table that the campaign uses
([kinds.py](../tests/concurrency/faults/kinds.py)), by
`python -m tests.concurrency.faults.kinds`.

Faults of one section come one after the other, those of different sections overlap. A fault counts
only if it has befallen something. Whatever it is, a placement that is asked for when it is over has
to be acknowledged; what was acknowledged before, meanwhile and after has to be in the log, once;
no request may be answered with 500; and the checker judges the whole log by
[the invariants](reliability.md#the-invariants). The last column says what must follow beyond that,
or what that means here. Weights say how often a kind comes, compared with the others.
"""


def page() -> str:
    """The page of all kinds."""
    sections = [_HEAD]
    for lane, title in _LANES.items():
        rows = [
            f"| {each.name} | {each.weight} | {each.happens} | {each.follows} |\n"
            for each in KINDS
            if each.lane == lane
        ]
        head = "| kind | weight | what happens | what must follow |\n|---|--:|---|---|\n"
        sections.append(f"\n## {title}\n\n{head}{''.join(rows)}")
    return "".join(sections)


def main() -> int:
    PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
