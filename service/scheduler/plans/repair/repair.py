"""The fit goal: one pod's node, or the repairs that would make the pod fit."""

from collections.abc import Sequence

from service.scheduler.decide.admission.pod_admission import knows_scheduler
from service.scheduler.decide.context import Steps
from service.scheduler.plans.changes import DisplacedPod
from service.scheduler.plans.fork import Fork
from service.scheduler.plans.place import PlacePlan, goal_pods_of
from service.scheduler.plans.repair.search import RepairBounds, repairs_of
from service.scheduler.protocol.intents import MakePlan
from service.scheduler.protocol.plans import Fit, PlanStep, Unplaced
from service.scheduler.protocol.repairs import Repair


class FitPlan:
    """Finds a node for one pod on a fork, or else its repairs."""

    def __init__(self, fork: Fork, intent: MakePlan, goal: Fit) -> None:
        self._fork = fork
        self._intent = intent
        self._goal = goal
        self._placing = PlacePlan(fork, intent, goal.pod)
        self.repairs: list[Repair] = []
        """The repairs, if the pod does not fit."""
        self.unfinished: str | None = None
        """What ended the search for repairs early, or None."""

    @property
    def complete(self) -> bool:
        """Whether the pod gets a node or already has one."""
        return self._placing.complete

    @property
    def steps(self) -> list[PlanStep]:
        """The pod's placement, if it gets a node."""
        return self._placing.steps

    @property
    def unplaced(self) -> list[Unplaced]:
        """The pod, if it gets no node."""
        return self._placing.unplaced

    def fit(self, displaced: Sequence[DisplacedPod]) -> Steps[None]:
        """Try to place the pod; if no node takes it, search for repairs.

        Raises:
            InvalidManifest, NotFound, PodDiffers, Forbidden: for the same reasons as placements.
        """
        goal_pods = yield from goal_pods_of(self._fork, self._goal.pod, displaced)
        yield from self._placing.place(goal_pods)
        manifest = goal_pods[0].candidate.manifest
        if self.complete or not knows_scheduler(self._fork.replica.cluster, manifest.pod):
            return
        caller = self._intent.caller
        bounds = RepairBounds(
            self._goal.changes_max,
            self._goal.repairs_max,
            caller.principal.namespaces("read", caller.cluster),
            self._intent.bounds,
        )
        result = yield from repairs_of(self._fork.context, manifest, bounds)
        self.repairs, self.unfinished = result.repairs, result.unfinished
