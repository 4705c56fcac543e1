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
    """The exit codes of the command, which the shell has in `$?`."""

    OK = 0
    REFUSED = 1
    USAGE = 2
    UNAVAILABLE = 3
    INTERRUPTED = 128 + signal.SIGINT
    TERMINATED = 128 + signal.SIGTERM
    """Shells use the same numbers if a signal ended a command."""


class CliError(Exception):
    """The base of the errors that end a command; the message is a sentence for people."""

    exit_code = ExitCode.REFUSED


class Refused(CliError):  # noqa: N818 - a verdict, not a fault
    """The server's answer is a problem document (RFC 9457), which is in `problem`."""

    def __init__(self, problem: Mapping[str, Any]) -> None:
        self.problem = problem
        super().__init__(str(problem.get("detail") or problem.get("title") or "Refused."))


class WrongUsage(CliError):  # noqa: N818
    """The command line, or a file that it names, cannot be used."""

    exit_code = ExitCode.USAGE


class Unavailable(CliError):  # noqa: N818
    """The server did not answer, or is in trouble; whether it did what was asked is unknown."""

    exit_code = ExitCode.UNAVAILABLE


class Stopped(CliError):  # noqa: N818
    """A signal ended the command before it was done."""

    def __init__(self, number: int, message: str) -> None:
        self.exit_code = ExitCode.TERMINATED if number == signal.SIGTERM else ExitCode.INTERRUPTED
        super().__init__(message)
