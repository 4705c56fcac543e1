"""Errors that prevent an embedded PostgreSQL from running.

EmbeddedPostgresError
├── FolderUnusableError     permissions, damaged data, no account to run as: a person must act
├── VersionMismatchError    the data is of another major version: the message has the commands
└── StartFailedError        it did not come up this time; another attempt may succeed
    └── EndedSoonError      it did come up, and ended a moment later: killed, perhaps
"""


class EmbeddedPostgresError(RuntimeError):
    """Base class; the message is for the person who started the server."""


class FolderUnusableError(EmbeddedPostgresError):
    """The data folder, or an account to run PostgreSQL in it, cannot be used."""


class VersionMismatchError(EmbeddedPostgresError):
    """The data folder was written by a major version of PostgreSQL that is not installed."""


class StartFailedError(EmbeddedPostgresError):
    """PostgreSQL did not start, or stopped making progress; the message ends with its log."""


class EndedSoonError(StartFailedError):
    """PostgreSQL was ready, and ended soon after."""
