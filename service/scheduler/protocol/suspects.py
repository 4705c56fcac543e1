"""The port to what is known of pods whose decisions ended workers."""

from typing import Protocol

SET_ASIDE_DEATHS = 2
"""After so many deaths of workers a pod is set aside."""
SET_ASIDE = "SchedulerError"
"""Kubernetes' word for a pod that the scheduler itself failed at."""
SET_ASIDE_TOLD = (
    "The pod is set aside: two worker processes ended while they were deciding it. "
    "Change its spec to have it tried again."
)


class KnowsSuspects(Protocol):
    """Notes which pod is decided, and knows of which pods workers have died."""

    def refresh(self) -> int:
        """Learn of the deaths of other workers; return a number that changes with what is known."""
        ...

    def deaths(self, cluster_id: int, namespace: str, spec: bytes) -> int:
        """Return how many workers have died of a pod."""
        ...

    def deciding(self, cluster_id: int, namespace: str, name: str, spec: bytes) -> int:
        """Note the pod that is decided from now on; return how many workers have died of it."""
        ...

    def decided(self) -> None:
        """Note that no pod is being decided."""
        ...

    def pause(self) -> None:
        """Note that other work is done before the decision goes on."""
        ...

    def resume(self) -> None:
        """Note that the decision goes on."""
        ...


class NoSuspects:
    """Knows of none, and notes nothing."""

    def refresh(self) -> int:
        """Learn nothing."""
        return 0

    def deaths(self, cluster_id: int, namespace: str, spec: bytes) -> int:
        """Return 0."""
        del cluster_id, namespace, spec
        return 0

    def deciding(self, cluster_id: int, namespace: str, name: str, spec: bytes) -> int:
        """Return 0, and note nothing."""
        del cluster_id, namespace, name, spec
        return 0

    def decided(self) -> None:
        """Note nothing."""

    def pause(self) -> None:
        """Note nothing."""

    def resume(self) -> None:
        """Note nothing."""
