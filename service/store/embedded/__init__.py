"""Runs a PostgreSQL of our own: the binaries come with a wheel, and we supervise the server.

supervisor           EmbeddedPostgres: start() -> URL, stop(); a thread supervises or follows
├── readiness        waits for a server for as long as it makes progress
├── postmaster       one running server: started or found, signalled
│   └── idle_shutdown a process that ends a server whose users were all killed
├── pgdata           initdb, version check
└── config           postgresql.conf, pg_hba.conf, pg_ident.conf
probe                asks a server for a session
processes            tells a server's process from one that was given its id later
serverlog            the log that PostgreSQL writes
locks                who uses the folder, who supervises it, whether a server lives in it
binaries             finds postgres and initdb, where the account can reach them
layout, files        the layout of a data folder, and how its files are written
os_account           the account that runs postgres, which is never root
"""

from service.store.embedded.errors import (
    EmbeddedPostgresError,
    FolderUnusableError,
    StartFailedError,
    VersionMismatchError,
)
from service.store.embedded.supervisor import EmbeddedPostgres

__all__ = [
    "EmbeddedPostgres",
    "EmbeddedPostgresError",
    "FolderUnusableError",
    "StartFailedError",
    "VersionMismatchError",
]
