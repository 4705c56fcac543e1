"""A process of the oracle, which answers cases with kube-scheduler's own code."""

import json
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from threading import Thread
from types import TracebackType
from typing import IO, Any, Self

from tools.oracle.build import build

BATCH = 256
"""Cases that are sent before the first of their answers is returned."""
UNREAD = frozenset({"expect", "expectDocumented", "quirks", "note", "source"})
"""Entries of a case that the oracle does not read."""
STDERR_SHOWN = 4000

Case = Mapping[str, Any]
Answer = dict[str, Any]


class OracleError(Exception):
    """The process has ended, or its answers are not those to the cases."""


class Oracle:
    """Answers cases as kube-scheduler of one version does, in a process of its own."""

    def __init__(
        self,
        version: str,
        *,
        workers: int = 2,
        gates: str = "",
        is_reversed: bool = False,
        binary: Path | None = None,
    ) -> None:
        """Start the process, whose binary is built first if it is not up to date.

        Args:
            version: The minor version of Kubernetes, such as "1.36".
            workers: Cases that are answered at the same time.
            gates: Feature gates for all cases, such as "A=true,B=false".
            is_reversed: List objects in the reverse order. An answer that changes depends on an
                order that is random in Kubernetes.
            binary: The binary to start instead.

        Raises:
            BuildError: The binary cannot be built.
        """
        command = [str(binary or build(version)), f"-workers={workers}", f"-gates={gates}"]
        if is_reversed:
            command.append("-reverse")
        self._stderr: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the process
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._stderr
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._stderr):
            if stream is not None:
                stream.close()

    def answers(self, cases: Iterable[Case]) -> Iterator[Answer]:
        """Yield the answer to each case in their order, with `name` and `expect` or `error`.

        Raises:
            OracleError: The process has ended.
        """
        rest = iter(cases)
        while batch := list(islice(rest, BATCH)):
            yield from self._answered(batch)

    def answer(self, case: Case) -> Answer:
        """Return the answer to one case.

        Raises:
            OracleError: The process has ended.
        """
        return self._answered([case])[0]

    def _answered(self, batch: list[Case]) -> list[Answer]:
        writer = Thread(target=self._write, args=(batch,), daemon=True)
        writer.start()
        answers = [self._read(case) for case in batch]
        writer.join()
        return answers

    def _write(self, batch: list[Case]) -> None:
        """Write a batch; if the process has ended, whoever reads its answers finds out."""
        stdin = self._process.stdin
        assert stdin is not None
        try:
            for case in batch:
                sent = {name: value for name, value in case.items() if name not in UNREAD}
                stdin.write(json.dumps(sent).encode() + b"\n")
            stdin.flush()
        except (BrokenPipeError, ValueError):
            return

    def _read(self, case: Case) -> Answer:
        stdout = self._process.stdout
        assert stdout is not None
        line = stdout.readline()
        if not line.endswith(b"\n"):
            raise OracleError(f"The oracle ended at {case['name']}: {self._complaint()}")
        answer: Answer = json.loads(line)
        if answer["name"] != case["name"]:
            raise OracleError(f"The oracle answered {answer['name']} instead of {case['name']}.")
        return answer

    def _complaint(self) -> str:
        """Return what the process wrote to stderr, the beginning of it if it is long."""
        self._process.wait()
        self._stderr.seek(0)
        return self._stderr.read(STDERR_SHOWN).decode(errors="replace") or "no message"
