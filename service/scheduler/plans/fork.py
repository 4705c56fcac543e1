"""A fork: a replica that is changed for a plan and then restored.

The plan's changes are tentative, and leave a trail of marks that lets them be undone in steps;
undoing the loss of a zone at once would take as long as thousands of placements.
"""

from msgspec.structs import replace

from service.scheduler.decide.context import DecisionContext, Steps
from service.scheduler.replica.copying import copy_replica
from service.scheduler.replica.replica import Mark, Replica
from service.scheduler.replica.stored_kinds import ConfigManifest, StoredManifest

_STEP_CHANGES = 8
"""About how many changes are made or undone in one step."""


class Fork:
    """A context's replica, while a plan changes it."""

    def __init__(self, context: DecisionContext) -> None:
        self.context = context
        """The context of the plan's decisions; `configure` gives it another replica."""
        self.revision = context.replica.revision
        """The revision of the state at the start of the plan."""
        self._first = context.replica
        self._trail: list[Mark] = [context.replica.mark()]
        self._tried = 0
        """Where the last step of a trial ended."""

    @property
    def replica(self) -> Replica:
        """The replica with the plan's changes so far."""
        return self.context.replica

    def put(self, manifest: StoredManifest) -> None:
        """Add or replace an object as it is, without admission."""
        self.replica.put(manifest)

    def pause(self) -> Steps[None]:
        """Let other work run once enough changes were made since the last pause."""
        if self.replica is not self._first:
            self.replica.settle_all()
            yield
            return
        mark = self.replica.mark()
        if mark.position - self._trail[-1].position >= _STEP_CHANGES:
            self._trail.append(mark)
            yield

    def try_out(self) -> Mark:
        """Mark the start of a trial; until the next `pause`, `take_back` can return to the mark."""
        return self.replica.mark()

    def step(self) -> Steps[None]:
        """Let other work run like `pause`, but keep the trial's changes undoable."""
        mark = self.replica.mark()
        if mark.position - self._tried >= _STEP_CHANGES:
            self._tried = mark.position
            if self.replica is self._first:
                self._trail.append(mark)
            yield

    def take_back(self, moment: Mark) -> Steps[None]:
        """Undo a trial's changes since a mark, step by step."""
        while self.replica is self._first and self._trail[-1].position > moment.position:
            self._first.undo(self._trail.pop())
            yield
        self.replica.undo(moment)
        self._tried = moment.position

    def configure(self, manifest: ConfigManifest) -> Steps[None]:
        """Replace the configuration.

        Most settings affect how all objects are compiled, so a new replica is built, step by step,
        from the current objects.
        """
        now = self.replica
        replica = yield from copy_replica(
            {kind: now.objects(kind) for kind in now.kinds}, self.context.templates, manifest
        )
        replica.cluster.devices.questions = now.cluster.devices.questions
        self.context = replace(self.context, replica=replica, budget_cache=None)

    def restore(self) -> Steps[None]:
        """Undo all changes step by step, and return exactly to the original replica."""
        while self._trail:
            self._first.undo(self._trail.pop())
            yield
