"""How a command ends: exit codes for scripts, and the exceptions behind them.

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
    """The exit codes of the command, as in the shell's `$?`."""

    OK = 0
    REFUSED = 1
    USAGE = 2
    UNAVAILABLE = 3
    INTERRUPTED = 128 + signal.SIGINT
    TERMINATED = 128 + signal.SIGTERM
    """The exit code after SIGTERM, the number that shells use for commands ended by a signal."""


class CliError(Exception):
    """Base class of errors that end a command; the message is a readable sentence."""

    exit_code = ExitCode.REFUSED


class Refused(CliError):  # noqa: N818 - a verdict, not a fault
    """The server answered with a problem document (RFC 9457), available as `problem`."""

    def __init__(self, problem: Mapping[str, Any]) -> None:
        self.problem = problem
        super().__init__(str(problem.get("detail") or problem.get("title") or "Refused."))


class WrongUsage(CliError):  # noqa: N818
    """The command line, or a file named on it, cannot be used."""

    exit_code = ExitCode.USAGE


class Unavailable(CliError):  # noqa: N818
    """The server did not answer or failed; whether it carried out the request is unknown."""

    exit_code = ExitCode.UNAVAILABLE


class Stopped(CliError):  # noqa: N818
    """A signal ended the command before it was done."""

    def __init__(self, number: int, message: str) -> None:
        self.exit_code = ExitCode.TERMINATED if number == signal.SIGTERM else ExitCode.INTERRUPTED
        super().__init__(message)
