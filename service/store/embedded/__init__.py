"""A PostgreSQL of our own: the binaries come with a wheel, the supervision is ours.

supervisor           EmbeddedPostgres: start() -> URL, stop(); a thread supervises or follows
├── readiness        waiting for a server for as long as it gets on
├── postmaster       one running server: started or found, signalled
│   └── warden       a process that ends a server whose users were all killed
├── pgdata           initdb, version check
└── configuration    postgresql.conf, pg_hba.conf, pg_ident.conf
probe                asks a server for a session
processes            tells a server's process from one that got its id
serverlog            what PostgreSQL says
locks                who uses the folder, who supervises it, whether a server lives in it
binaries             where postgres and initdb are, in reach of the account
folder, files        what lies where in a data folder, and how it is written
account              who runs postgres: never root
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
