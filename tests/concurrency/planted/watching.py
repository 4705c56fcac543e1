"""Mistakes in watches, and in keeping clusters apart."""

from service.scheduler.scheduler import Scheduler
from service.scheduler.watching import (
    LoggedCommit,
    logged_commits as commits_of_log_page,
    recent_commits,
    watches,
)
from service.scheduler.watching.recent_commits import RecentCommits
from tests.concurrency.planted.registry import bug, made_with


@bug("A10", "Watches.begin_at")
def watch_resumes_one_late(patch):
    """A resumed stream begins after the event that comes next."""
    begin_at, made = watches.Watches.begin_at, made_with(patch, watches.Watches)

    async def begin_late(self, cluster_id, since, bodies, room):
        head = await made[self]["store"].log.head(cluster_id)
        return await begin_at(self, cluster_id, min(since + 1, head.revision), bodies, room)

    patch.setattr(watches.Watches, "begin_at", begin_late)


@bug("A10", "Watches.begin_at")
def watch_repeats_an_event(patch):
    """A resumed stream begins with the event that was seen last."""
    begin_at = watches.Watches.begin_at

    async def begin_early(self, cluster_id, since, bodies, room):
        return await begin_at(self, cluster_id, max(since - 1, 1), bodies, room)

    patch.setattr(watches.Watches, "begin_at", begin_early)


@bug("A10", "RecentCommits.after")
def watch_skips_a_commit(patch):
    """A watcher gets the newest commit where it should get those before it as well."""
    after = RecentCommits.after

    def newest_only(self, tip, limit, bytes_max):
        found = after(self, tip, limit, bytes_max)
        return found[-1:] if found else found

    patch.setattr(RecentCommits, "after", newest_only)


@bug("A10", "watches.commits_of")
def first_event_of_a_commit_dropped(patch):
    """Of a commit of several changes the first is not told."""
    commits_of = commits_of_log_page.commits_of

    def drop(page):
        for commit in commits_of(page):
            dropped = len(commit.changes) > 1
            yield LoggedCommit(commit.info, commit.changes[int(dropped) :])

    for module in (recent_commits, watches):
        patch.setattr(module, "commits_of", drop)


@bug("A10", "Watch.next")
def bookmark_too_far(patch):
    """A watcher is told that it has seen all up to the head."""
    following = watches.Watch.next

    async def boast(self):
        found = await following(self)
        if found is not None:
            self.revision += 1
        return found

    patch.setattr(watches.Watch, "next", boast)


@bug("A17", "Scheduler.loop_of")
def clusters_mixed_up(patch):
    """A request goes to the loop of whatever cluster there is."""
    loop_of = Scheduler.loop_of

    async def any_loop(self, cluster):
        for loop in self.loops.values():
            if not loop.ended:
                return loop
        return await loop_of(self, cluster)

    patch.setattr(Scheduler, "loop_of", any_loop)


@bug("A10", "Watches.end_feeds")
def streams_open_at_drain(patch):
    """A worker that is to stop takes no new watches, but leaves those that there are open."""
    patch.setattr(watches.Watches, "end_feeds", lambda self: None)


@bug("A10", "Watch.next")
def drained_stream_boasts(patch):
    """What was read of the log but not given when streams are ended counts as given."""
    following = watches.Watch.next

    async def end_at_the_head(self):
        feed, found = self.feed, await following(self)
        if found is None and feed is not None:
            self.revision = max(self.revision, feed.ring.revision)
        return found

    patch.setattr(watches.Watch, "next", end_at_the_head)
