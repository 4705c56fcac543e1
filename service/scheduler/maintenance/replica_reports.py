"""Reports the state of this process's replicas to other processes, for `/debug/replicas`."""

import logging

from service.model.core.errors import MoorageError
from service.model.log.lease import ReplicaState
from service.scheduler.protocol.ports import Clock, ReportStore
from service.scheduler.scheduler import Scheduler

REPORT_SECONDS = 1.0
_log = logging.getLogger(__name__)


class Reporter:
    """Reports the last state of each replica without tentative changes, every second.

    Computing the digest of a large cluster takes a while, so this is for debugging only.
    """

    def __init__(
        self, reports: ReportStore, scheduler: Scheduler, clock: Clock, process: str
    ) -> None:
        self._reports = reports
        self._scheduler = scheduler
        self._clock = clock
        self._process = process
        self._states: dict[int, ReplicaState] = {}

    async def run(self) -> None:
        """Report the states of replicas every second, forever."""
        while True:
            try:
                await self.report()
            except MoorageError:
                _log.debug("The database cannot be reached.", exc_info=True)
            except Exception:  # noqa: BLE001 - a bug here must not end all reports
                _log.exception("Reporting replicas failed; it will be tried again.")
            await self._clock.sleep(REPORT_SECONDS)

    async def report(self) -> None:
        present = self._scheduler.replica_states()
        for cluster_id, state in present.items():
            if state is not None:
                self._states[cluster_id] = state
        for cluster_id in self._states.keys() - present.keys():
            del self._states[cluster_id]
        await self._reports.report(self._process, self._states)
