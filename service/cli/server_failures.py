"""Converts errors of server processes to the command's errors and exit codes."""

from collections.abc import Iterator
from contextlib import contextmanager

from moorage.cli.exceptions import Stopped, Unavailable, WrongUsage
from service.server.failures import ConfigurationError, StoppedError, UnavailableError
from service.settings import InvalidSettings


@contextmanager
def as_command_errors() -> Iterator[None]:
    """Convert errors of server processes to command errors with the same message.

    Raises:
        WrongUsage: a setting, or what it names, cannot be used.
        Unavailable: a database or a server is unavailable or failed.
        Stopped: a stop signal arrived.
    """
    try:
        yield
    except (ConfigurationError, InvalidSettings) as error:
        raise WrongUsage(str(error)) from None
    except UnavailableError as error:
        raise Unavailable(str(error)) from None
    except StoppedError as stopped:
        raise Stopped(stopped.number, str(stopped)) from None
