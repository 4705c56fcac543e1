"""Follows a cluster's log on behalf of many watchers.

    log of the store ──▶ Feed: one reader for each cluster and process, with its RecentCommits
                           ├──▶ Watch: a position in the log; if behind the ring, it reads pages
                           └──▶ NodeIndex ──▶ NodeWatch: sleeps until a pod of its node changes

Watchers pull. Nothing is queued for any of them, so a slow one costs no memory: it falls behind the
ring, then behind what the log keeps, and gets an error.
"""

from service.scheduler.watching.binding_changes import BindingChange, BindingSelection
from service.scheduler.watching.logged_commits import LoggedCommit
from service.scheduler.watching.watch_events import EventType, WatchSelection
from service.scheduler.watching.watches import Watch, Watches

__all__ = [
    "BindingChange",
    "BindingSelection",
    "EventType",
    "LoggedCommit",
    "Watch",
    "WatchSelection",
    "Watches",
]
