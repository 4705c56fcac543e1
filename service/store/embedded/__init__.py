"""Runs an embedded PostgreSQL: its binaries come in a wheel, and Moorage supervises the server.

supervisor           EmbeddedPostgres: start() -> URL, stop(); a thread supervises or follows
├── readiness        waits for a server for as long as it makes progress
├── postmaster       one running server: started or found, signaled
│   └── idle_shutdown a process that ends a server whose users were all killed
├── pgdata           initdb, version check
└── config           postgresql.conf, pg_hba.conf, pg_ident.conf
probe                opens a session to test whether a server is ready
processes            distinguishes a server's process from one that reuses its id
serverlog            the log that PostgreSQL writes
locks                who uses the folder, who supervises it, whether a server runs in it
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
