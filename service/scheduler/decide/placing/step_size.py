"""Divides work on many pods into steps by the number of pods, not by time."""

import msgspec

from service.model.pods.pod import Affinity, Pod, PodAffinity

PODS_A_STEP = 8
"""How many pods are decided in one step before other tasks may run."""
RULES_A_POD = 8
"""How many of a pod's rules about other pods weigh as much as another pod."""


class StepSize(msgspec.Struct):
    """Counts the pods since the last step; pods with many rules count more than once."""

    pods: int = 0
    affinity: Affinity | None = None
    """The affinity of the last pod, cached because consecutive pods mostly share a spec."""
    weight: int = 1
    """How many pods a pod with this affinity counts as."""

    def is_over(self, pod: Pod) -> bool:
        """Count a pod, and return whether the step ends after it."""
        affinity = pod.spec.affinity
        if affinity is not self.affinity:
            self.affinity = affinity
            self.weight = 1 if affinity is None else 1 + _rules(affinity) // RULES_A_POD
        self.pods += self.weight
        if self.pods < PODS_A_STEP:
            return False
        self.pods = 0
        return True


def _rules(affinity: Affinity) -> int:
    return sum(map(_terms, (affinity.pod_affinity, affinity.pod_anti_affinity)))


def _terms(affinity: PodAffinity | None) -> int:
    if affinity is None:
        return 0
    return sum(
        len(terms or ())
        for terms in (
            affinity.required_during_scheduling_ignored_during_execution,
            affinity.required_during_scheduling_required_during_execution,
            affinity.preferred_during_scheduling_ignored_during_execution,
        )
    )
