"""Runs a command in a terminal of its own, as if somebody typed at it."""

import os
import pty
import select
import subprocess
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Self

import psutil

from tests.waiting import eventually

CTRL_C = b"\x03"
LOOK_SECONDS = 0.05


class Terminal:
    """A terminal in which a command runs; Ctrl-C reaches all processes of the foreground, as in real ones."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        environment: Mapping[str, str] | None = None,
        cwd: str = ".",
    ) -> None:
        self.shown = ""
        self._keyboard, screen = pty.openpty()
        self.process = subprocess.Popen(
            ["setsid", "--ctty", *command],  # `setsid` then becomes the command
            stdin=screen,
            stdout=screen,
            stderr=screen,
            cwd=cwd,
            env={**os.environ, **(environment or {})},  # noqa: TID251 - the child's
        )
        os.close(screen)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for process in self.family():
            process.kill()
        self.process.kill()
        self.process.wait()
        os.close(self._keyboard)

    def look(self, seconds: float = LOOK_SECONDS) -> None:
        """Read what the terminal shows until it has shown nothing new for `seconds`."""
        while select.select([self._keyboard], [], [], seconds)[0]:
            try:
                self.shown += os.read(self._keyboard, 65536).decode(errors="replace")
            except OSError:  # nobody has it open any longer
                break

    def wait_for(self, text: str) -> None:
        """Wait until the terminal shows a text."""

        def shown_or_ended() -> bool:
            ended = self.process.poll() is not None
            self.look()
            return text in self.shown or ended

        eventually(shown_or_ended)
        assert text in self.shown, self.shown

    def press(self, key: bytes) -> None:
        """Type a key."""
        os.write(self._keyboard, key)

    def family(self) -> list[psutil.Process]:
        """All processes that the command has started."""
        try:
            return psutil.Process(self.process.pid).children(recursive=True)
        except psutil.NoSuchProcess:
            return []

    def exit_code(self) -> int:
        """Wait for the command's end, and return its exit code."""

        def ended() -> bool:
            self.look()
            return self.process.poll() is not None

        eventually(ended)
        self.look()
        return self.process.returncode
