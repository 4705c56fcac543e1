"""Follows a stream of a cluster's changes across server restarts."""

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import msgspec

from moorage.cli.exceptions import Refused, Unavailable
from moorage.cli.render.rows import identity, pod_state
from moorage.cli.session.options import Session
from moorage.events import ServerSentEvent

RECONNECT_SECONDS = 1.0


class WatchFollower:
    """Shows the events of a stream, and records the revision of the last one."""

    def __init__(
        self,
        session: Session,
        filters: dict[str, str | None],
        last: str | None,
        show: Callable[[Session, ServerSentEvent], None] | None = None,
        *,
        path: str = "watch",
    ) -> None:
        """Create a follower; `show` prints an event, by default like `moorage watch`.

        `path` is the stream's path within the cluster.
        """
        self._path = path
        self.last = last
        self._session = session
        self._filters = filters
        self._show = show or print_change

    def follow_until_stopped(self) -> None:
        """Follow successive streams until Ctrl-C.

        Raises:
            Refused: as `follow`.
            Unavailable: as `follow`.
        """
        with suppress(KeyboardInterrupt):
            while True:
                self.follow()
                time.sleep(RECONNECT_SECONDS)

    def follow(self) -> None:
        """Show events until the stream ends or breaks.

        Raises:
            Refused: the revision to start from is compacted, or the server does not know a filter.
            Unavailable: the server could not be reached, and no revision to start from is known.
        """
        client, output = self._session.client, self._session.output
        params = {**self._filters, "sinceRevision": self.last}
        began = False
        try:
            with client.events(client.path(self._path), params) as events:
                began = True
                for event in events:
                    self._take(event)
        except Unavailable as error:
            if not began and self.last is None:
                raise
            output.note(f"{error} Trying again.")

    def _take(self, event: ServerSentEvent) -> None:
        if event.name == "ERROR":
            raise Refused(msgspec.json.decode(event.data, type=dict[str, Any]))
        if event.name != "BOOKMARK":
            self._show(self._session, event)
        self.last = event.id or self.last


def print_change(session: Session, event: ServerSentEvent) -> None:
    """Print one change, as a line for people or as raw data."""
    if not session.output.for_people:
        session.output.line(f'{{"revision":{event.id},"event":"{event.name}",{event.data[1:]}')
        return
    data = msgspec.json.decode(event.data)
    item = data["object"]
    node = item.get("spec", {}).get("nodeName") or ""
    state = pod_state(item) if data["kind"] == "Pod" else ""
    what = f"{event.id:>8}  {event.name:<8}  {data['kind']} {identity(item)}"
    session.output.line(f"{what}  {state} {node}".rstrip())
