"""How a command ends: exit codes that scripts can use, and the errors behind them.

CliError
├── Refused        1   the server answered, and the answer is no
├── WrongUsage     2   the command line, or a file that it names, makes no sense
├── Unavailable    3   no server there, no right to ask it, or no answer in time
└── Stopped      130   SIGINT, such as Ctrl-C; 143: SIGTERM
"""

import signal
from collections.abc import Mapping
from enum import IntEnum
from typing import Any


class ExitCode(IntEnum):
    """What the shell sees in `$?`."""

    OK = 0
    REFUSED = 1
    USAGE = 2
    UNAVAILABLE = 3
    INTERRUPTED = 128 + signal.SIGINT
    TERMINATED = 128 + signal.SIGTERM
    """As shells tell that a signal ended a command."""


class CliError(Exception):
    """Base of the errors that end a command; the message is a sentence for people."""

    exit_code = ExitCode.REFUSED


class Refused(CliError):  # noqa: N818 - a verdict, not a fault
    """A problem document (RFC 9457) as the answer; `problem` holds it."""

    def __init__(self, problem: Mapping[str, Any]) -> None:
        self.problem = problem
        super().__init__(str(problem.get("detail") or problem.get("title") or "Refused."))


class WrongUsage(CliError):  # noqa: N818
    """What the command was given cannot be used."""

    exit_code = ExitCode.USAGE


class Unavailable(CliError):  # noqa: N818
    """The server could not be asked; nothing is known to have been done."""

    exit_code = ExitCode.UNAVAILABLE


class Stopped(CliError):  # noqa: N818
    """A signal ended the command before it was done."""

    def __init__(self, number: int, message: str) -> None:
        self.exit_code = ExitCode.TERMINATED if number == signal.SIGTERM else ExitCode.INTERRUPTED
        super().__init__(message)
