"""Errors that prevent or end the work of a server's processes.

ServerError
├── ConfigurationError   a setting, or what it names, cannot be used
├── UnavailableError     a database or a server is unavailable, or failed
└── StoppedError         SIGTERM or SIGINT
"""


class ServerError(Exception):
    """Base class; the message is a sentence for people."""


class ConfigurationError(ServerError):
    """A setting, or the file, address, or database that it names, cannot be used."""


class UnavailableError(ServerError):
    """A database cannot be reached, or a server ended or was not ready in time."""


class StoppedError(ServerError):
    """A stop signal ended the work before it was done; `number` is the signal's."""

    def __init__(self, number: int, message: str) -> None:
        super().__init__(message)
        self.number = number
