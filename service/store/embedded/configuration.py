"""The configuration of the server: durable, private, and the same at every start.

It is kept outside the database's folder, so that nothing but PostgreSQL writes there. What an
operator sets with ALTER SYSTEM wins, except for where the server listens.
"""

import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path

from service.store.embedded.account import Account
from service.store.embedded.binaries import Binaries
from service.store.embedded.files import replace_text
from service.store.embedded.folder import DataFolder

_SYNCFS_SINCE = (5, 8)

ROLE = "moorage"
"""The superuser, which owns the tables."""
SERVING_ROLE = "moorage_server"
"""By which servers read and write them; made and given its rights by `service.store.serving_role`."""
DATABASE = "moorage"

_SETTINGS = {
    "fsync": "on",
    "full_page_writes": "on",
    "synchronous_commit": "on",
    "max_connections": "200",
    "shared_buffers": "128MB",
    # What was written since the last checkpoint is what a recovery goes through: 100 MB take it
    # half a second or more.
    "max_wal_size": "256MB",
    "min_wal_size": "160MB",
    "checkpoint_timeout": "60s",
    # A server that lost a process ends, and its supervisor starts another one. PostgreSQL's own way to
    # begin anew can get stuck for good, alive and never ready, where the disk is full meanwhile.
    "restart_after_crash": "off",
    "random_page_cost": "1.1",  # solid-state disks
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_line_prefix": "%m [%p] ",
    "log_startup_progress_interval": "1s",  # by which we see that recovery goes on
    "lc_messages": "C",  # the messages that we read
}
_HBA = f"""\
# Only over the socket, only for the accounts that pg_ident.conf names; never by trust.
local  all          {ROLE}  peer  map={ROLE}
local  all          {SERVING_ROLE}  peer  map={ROLE}
local  replication  {ROLE}  peer  map={ROLE}
"""


def write(
    folder: DataFolder, account: Account, binaries: Binaries, settings: Mapping[str, str]
) -> None:
    """Write all configuration files; `settings` go over the defaults."""
    compression = {"wal_compression": "lz4"} if binaries.has_lz4 else {}
    sync = {"recovery_init_sync_method": "syncfs"} if _has_syncfs() else {}
    places = {"hba_file": str(folder.hba), "ident_file": str(folder.ident)}
    replace_text(folder.hba, _HBA)
    replace_text(folder.ident, _ident_map(account))
    replace_text(_main(folder), _render({**_SETTINGS, **compression, **sync, **settings, **places}))


def arguments(folder: DataFolder) -> list[str]:
    """What the server is told on its command line, over which no configuration wins."""
    socket_folder = str(folder.socket.parent).replace('"', '""')
    return [
        *("-D", str(folder.pgdata)),
        *("-h", ""),
        *("-k", f'"{socket_folder}"'),
        *("-c", f"config_file={_main(folder)}"),
        *("-c", "port=5432"),
        *("-c", "unix_socket_permissions=0700"),
    ]


def _has_syncfs() -> bool:
    """Whether the kernel writes out a whole file system at once, and tells if that failed.

    After a kill a recovery first makes sure of all of the database's files. One by one, some 1,200
    of them, that took 1.5 to 5 s beside others who write to the disk; at once 0.05 to 0.1 s.
    Before Linux 5.8 it would not have been told of errors.
    """
    if not sys.platform.startswith("linux"):
        return False
    release = re.match(r"(\d+)\.(\d+)", os.uname().release)
    return release is not None and (int(release[1]), int(release[2])) >= _SYNCFS_SINCE


def _main(folder: DataFolder) -> Path:
    return folder.root / "postgresql.conf"


def _ident_map(account: Account) -> str:
    """The account itself and root, who could become it anyway."""
    names = sorted({account.name, "root"})
    roles = (ROLE, SERVING_ROLE)
    return "".join(f'{ROLE}  "{name}"  {role}\n' for name in names for role in roles)


def _render(settings: Mapping[str, str]) -> str:
    return "".join(f"{name} = {_quote(value)}\n" for name, value in settings.items())


def _quote(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"
