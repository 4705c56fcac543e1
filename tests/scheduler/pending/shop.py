"""A replica and the queue that follows it, without a store and a clock."""

from typing import Any

from service.model.registry.manifests import TemplateCache, parse_any
from service.scheduler.decide.context import DecisionContext
from service.scheduler.dispatch import decide
from service.scheduler.pending.queue import PendingQueue
from service.scheduler.protocol.answers import PendingAnswer
from service.scheduler.protocol.intents import PlacePending
from service.scheduler.protocol.limits import Limits
from service.scheduler.protocol.pending_attempts import Attempts
from service.scheduler.replica.replica import Replica
from service.scheduler.replica.stored_kinds import ConfigManifest
from tests.engine import objects
from tests.scheduler.world import CountedIds, encoded, kinded

LIMITS = Limits(pending_attempts_max=3, pending_failures_max=3, pending_early_tries=0)


class Shop:
    """A replica and the queue that follows it."""

    def __init__(self, config: dict[str, Any] | None = None) -> None:
        self.templates = TemplateCache()
        self.replica = Replica(self.templates)
        self.queue = PendingQueue(LIMITS)
        self.replica.on_committed = self.queue.observe
        self.now = 0.0
        self.ids = CountedIds(1)
        self.configure(config or {})

    def configure(self, config: dict[str, Any]) -> None:
        self.replica.put(ConfigManifest(config=objects.config(config), body=b"{}"))
        self.replica.settle_all()

    def put(self, *manifests: Any) -> None:
        for manifest in manifests:
            self.replica.put(parse_any(encoded(kinded(manifest)), self.templates))
        self.replica.settle_all()

    def delete(self, kind: str, name: str, namespace: str = "default") -> None:
        self.replica.delete(kind, "" if kind in ("Node", "Namespace") else namespace, name)
        self.replica.settle_all()

    def take(self) -> Attempts:
        return self.queue.take(LIMITS.pending_attempts_max, self.now)

    def decide(self, attempts: Attempts) -> PendingAnswer:
        """What the turn leads to; the log has it at once."""
        answer = self._decided(attempts)
        self.replica.settle_all()
        return answer

    def dry_run(self, attempts: Attempts) -> PendingAnswer:
        """What the turn would lead to."""
        mark = self.replica.mark()
        answer = self._decided(attempts)
        self.replica.undo(mark)
        return answer

    def _decided(self, attempts: Attempts) -> PendingAnswer:
        context = DecisionContext(
            replica=self.replica,
            now="2026-01-01T00:00:00Z",
            templates=self.templates,
            ids=self.ids,
            limits=LIMITS,
            attempts=1,
            hints={},
        )
        steps = decide(context, PlacePending(attempts=attempts))
        while True:
            try:
                next(steps)
            except StopIteration as stop:
                return stop.value

    def work(self) -> None:
        """All turns that there are to take now."""
        while self.queue.has_work(self.now):
            attempts = self.take()
            if not attempts.tries and not attempts.condition_updates:
                break
            self.queue.conclude(attempts, self.decide(attempts).refused, self.now)

    def waiting(self) -> set[tuple[str, str]]:
        return {(each.namespace, each.name) for each in self.replica.pending_pods()}
