"""The port to the record of pods whose decisions killed workers."""

from typing import Protocol

SET_ASIDE_DEATHS = 2
"""The number of worker deaths after which a pod is set aside."""
SET_ASIDE = "SchedulerError"
"""Kubernetes' reason for a pod that failed because of the scheduler itself."""
SET_ASIDE_TOLD = (
    "The pod is set aside: two worker processes ended while they were deciding it. "
    "Change its spec to have it tried again."
)


class SuspectRegistry(Protocol):
    """Records which pod is being decided, and which pods have killed workers."""

    def refresh(self) -> int:
        """Read other workers' deaths; return a number that changes whenever the record does."""
        ...

    def deaths(self, cluster_id: int, namespace: str, spec: bytes) -> int:
        """Return how many workers died while deciding a pod."""
        ...

    def deciding(self, cluster_id: int, namespace: str, name: str, spec: bytes) -> int:
        """Record the pod whose decision begins; return how many workers died while deciding it."""
        ...

    def decided(self) -> None:
        """Record that no pod is being decided."""
        ...

    def pause(self) -> None:
        """Record that other work interrupts the decision."""
        ...

    def resume(self) -> None:
        """Record that the decision continues."""
        ...


class NoSuspects:
    """A record that stays empty, for processes that share none."""

    def refresh(self) -> int:
        return 0

    def deaths(self, cluster_id: int, namespace: str, spec: bytes) -> int:
        del cluster_id, namespace, spec
        return 0

    def deciding(self, cluster_id: int, namespace: str, name: str, spec: bytes) -> int:
        del cluster_id, namespace, name, spec
        return 0

    def decided(self) -> None:
        pass

    def pause(self) -> None:
        pass

    def resume(self) -> None:
        pass
