"""Compares what pods would choose under two configurations, such as two Kubernetes versions."""

from collections import Counter
from collections.abc import Mapping

from service.engine import Cluster, Explanation, Placement, explain, place
from service.engine.explain.choice_change import Choice
from service.model.pods.pod import Pod
from service.model.registry.manifests import PodManifest
from service.scheduler.decide.admission.pod_admission import knows_scheduler
from service.scheduler.decide.context import Steps
from service.scheduler.decide.placing.pod_placement import without_pod
from service.scheduler.decide.reading.choice_difference import difference_of, without_profile
from service.scheduler.plans.fork import Fork
from service.scheduler.plans.selection import pods_of
from service.scheduler.protocol.choices import ChoiceDifference
from service.scheduler.protocol.intents import MakePlan
from service.scheduler.protocol.plans import Compare, PlanStep, Unplaced


class ComparePlan:
    """Judges each placed pod, as if it alone were placed anew, before and after the changes.

    The cluster before the changes stays as it is, since changed settings make a new replica.
    """

    def __init__(self, fork: Fork, before: Cluster, intent: MakePlan, goal: Compare) -> None:
        self._fork = fork
        self._before = before
        self._intent = intent
        self._goal = goal
        self.steps: list[PlanStep] = []
        self.unplaced: list[Unplaced] = []
        self.compared = Counter[str]()
        """The number of pods that were judged in both states, by namespace."""
        self.differences: list[ChoiceDifference] = []
        self.complete = True
        """Whether all selected pods were compared before the plan's time was over."""

    def compare(self) -> Steps[None]:
        """Compare the selected pods that have a node and have not ended.

        Raises:
            NotFound, Forbidden: a named pod does not exist, or is in a namespace of others.
        """
        pods = yield from pods_of(self._fork, self._goal.pods, self._intent.caller)
        for manifest in pods:
            if self._fork.context.is_late():
                self.complete = False
                return
            if not manifest.pod.node_name or manifest.pod.finished:
                continue
            self._judge(manifest)
            yield

    def _judge(self, manifest: PodManifest) -> None:
        pod, after = manifest.pod, self._fork.replica.cluster
        if not knows_scheduler(self._before, pod):
            return
        self.compared[pod.namespace] += 1
        if not knows_scheduler(after, pod):
            self.differences.append(without_profile(pod, _chosen(self._before, pod)))
            return
        nodes = _chosen(self._before, pod), _chosen(after, pod)
        if nodes[0] == nodes[1]:
            return
        was, becomes = (
            Choice(name, _explained(cluster, pod), _weights(cluster, pod))
            for cluster, name in zip((self._before, after), nodes, strict=True)
        )
        self.differences.append(difference_of(pod, was, becomes, node_name=pod.node_name))


def _chosen(cluster: Cluster, pod: Pod) -> str | None:
    """Return the node that a placed pod would get if it were placed anew, or None."""
    with without_pod(cluster, pod):
        placement = place(cluster, pod, with_reasons=False)
    return placement.node_name if isinstance(placement, Placement) else None


def _explained(cluster: Cluster, pod: Pod) -> Explanation:
    """Explain a placed pod as if it were absent."""
    with without_pod(cluster, pod):
        return explain(cluster, pod)


def _weights(cluster: Cluster, pod: Pod) -> Mapping[str, int]:
    return cluster.profiles[pod.spec.scheduler_name].weights
