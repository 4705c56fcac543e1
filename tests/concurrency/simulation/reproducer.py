"""A schedule in a file, by which anybody can have a run again."""

import json
from pathlib import Path

import msgspec

from tests.concurrency.simulation.choices import Schedule
from tests.concurrency.simulation.run import Run, simulate
from tests.concurrency.simulation.shrinking import Failed


class Reproducer(msgspec.Struct, frozen=True, kw_only=True):
    """What a file has of a run that failed."""

    seed: int
    breaks: list[str]
    """Invariants."""
    planted: str | None = None
    """The mistake that was planted for the run, if any."""
    schedule: Schedule

    @classmethod
    def of(cls, failed: Failed, planted: str | None = None) -> "Reproducer":
        run = failed.run
        breaks = sorted(failed.invariants)
        return cls(seed=run.seed, breaks=breaks, planted=planted, schedule=run.schedule)

    @classmethod
    def load(cls, path: Path) -> "Reproducer":
        return msgspec.json.decode(path.read_bytes(), type=cls)

    def save(self, folder: Path) -> Path:
        """Write it into a folder; returns the file."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self.planted or 'seed'}-{self.seed}.json"
        path.write_text(json.dumps(msgspec.to_builtins(self), indent=1) + "\n")
        return path

    def run(self) -> Run:
        """Have it again; what was planted must be planted now, too."""
        return simulate(self.seed, self.schedule)
