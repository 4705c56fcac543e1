"""The goal that one pod fits: the node that it gets, or what would have to change for that."""

from collections.abc import Sequence

from service.scheduler.decide.admission.pod_admission import knows_scheduler
from service.scheduler.decide.context import Steps
from service.scheduler.plans.changes import Displaced
from service.scheduler.plans.fork import Fork
from service.scheduler.plans.place import Placing, wanted_by
from service.scheduler.plans.repair.search import RepairBounds, repairs_of
from service.scheduler.protocol.intents import MakePlan
from service.scheduler.protocol.plans import Fit, PlanStep, Unplaced
from service.scheduler.protocol.repairs import Repair


class FitGoal:
    """Finds a node for one pod on a fork, or else its repairs."""

    def __init__(self, fork: Fork, intent: MakePlan, goal: Fit) -> None:
        self._fork = fork
        self._intent = intent
        self._goal = goal
        self._placing = Placing(fork, intent, goal.pod)
        self.repairs: list[Repair] = []
        """What would let the pod fit; nothing if it fits."""
        self.unfinished: str | None = None
        """What ended the search for repairs early; None if nothing did."""

    @property
    def complete(self) -> bool:
        """Whether the pod gets a node, or has one."""
        return self._placing.complete

    @property
    def steps(self) -> list[PlanStep]:
        """The placement of the pod, if it gets a node."""
        return self._placing.steps

    @property
    def unplaced(self) -> list[Unplaced]:
        """The pod, if it gets none."""
        return self._placing.unplaced

    def fit(self, displaced: Sequence[Displaced]) -> Steps[None]:
        """Try to place the pod; if no node takes it, search for its repairs.

        Raises:
            InvalidManifest, NotFound, PodDiffers, Forbidden: for the same reasons as placements.
        """
        wanted = yield from wanted_by(self._fork, self._goal.pod, displaced)
        yield from self._placing.place(wanted)
        manifest = wanted[0].candidate.manifest
        if self.complete or not knows_scheduler(self._fork.replica.cluster, manifest.pod):
            return
        caller = self._intent.caller
        bounds = RepairBounds(
            self._goal.changes_max,
            self._goal.repairs_max,
            caller.principal.namespaces("read", caller.cluster),
            self._intent.bounds,
        )
        found = yield from repairs_of(self._fork.context, manifest, bounds)
        self.repairs, self.unfinished = found.repairs, found.unfinished
