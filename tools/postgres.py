"""Runs programs of the embedded PostgreSQL, for what SQL alone cannot do."""

import os
import subprocess
from pathlib import Path

from service.store.db.connector import data_source_name
from service.store.embedded import binaries
from service.store.embedded.os_account import OsAccount

_OF_PSQL_ALONE = ("\\restrict ", "\\unrestrict ")
_UNKNOWN_TO_OLDER_SERVERS = ("SET transaction_timeout ",)
_READABLE_BYTES = {"PGOPTIONS": "-c bytea_output=escape"}


def dump(url: str, *options: str) -> str:
    """Dump a database as SQL that any server from version 15 on executes, without owners."""
    command = [_program("pg_dump"), "--no-owner", "--no-privileges", *options]
    done = subprocess.run(
        [*command, "--dbname", data_source_name(url)],
        capture_output=True,
        check=False,
        env={**binaries.ENVIRONMENT, **_READABLE_BYTES},
        text=True,
    )
    if done.returncode != 0:
        raise RuntimeError(done.stderr)
    left_out = (*_OF_PSQL_ALONE, *_UNKNOWN_TO_OLDER_SERVERS)
    lines = done.stdout.splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith(left_out))


def _program(name: str) -> str:
    own = OsAccount(name="", uid=os.geteuid(), gid=os.getegid())
    return binaries.find(own, Path()).path(name)
