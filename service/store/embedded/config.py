"""Writes the server's configuration: durable, private, and the same at every start.

It is outside the database's folder, so that nothing but PostgreSQL writes there. ALTER SYSTEM can
override its settings, except where the server listens.
"""

import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path

from service.store.embedded.binaries import Binaries
from service.store.embedded.files import replace_text
from service.store.embedded.layout import DataFolder
from service.store.embedded.os_account import OsAccount

_SYNCFS_SINCE = (5, 8)

ROLE = "moorage"
"""The superuser, which owns the tables."""
SERVING_ROLE = "moorage_server"
"""The role that servers use, created by `service.store.schema.serving_role`."""
DATABASE = "moorage"

_SETTINGS = {
    "fsync": "on",
    "full_page_writes": "on",
    "synchronous_commit": "on",
    "max_connections": "200",
    "shared_buffers": "128MB",
    # A recovery replays everything written since the last checkpoint, which takes half a second or
    # more for 100 MB.
    "max_wal_size": "256MB",
    "min_wal_size": "160MB",
    "checkpoint_timeout": "60s",
    # A server that lost a process ends, and its supervisor starts another one. PostgreSQL's own
    # restart can hang forever, alive but never ready, if the disk is full.
    "restart_after_crash": "off",
    "random_page_cost": "1.1",  # solid-state disks
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_line_prefix": "%m [%p] ",
    "log_startup_progress_interval": "1s",  # these lines show that a recovery makes progress
    "lc_messages": "C",  # we read these messages
}
_HBA = f"""\
# Only over the socket, only for the accounts that pg_ident.conf names; never by trust.
local  all          {ROLE}  peer  map={ROLE}
local  all          {SERVING_ROLE}  peer  map={ROLE}
local  replication  {ROLE}  peer  map={ROLE}
"""


def write(
    folder: DataFolder, account: OsAccount, binaries: Binaries, settings: Mapping[str, str]
) -> None:
    """Write all configuration files; `settings` overrides the defaults."""
    compression = {"wal_compression": "lz4"} if binaries.has_lz4 else {}
    sync = {"recovery_init_sync_method": "syncfs"} if _has_syncfs() else {}
    places = {"hba_file": str(folder.hba), "ident_file": str(folder.ident)}
    replace_text(folder.hba, _HBA)
    replace_text(folder.ident, _ident_map(account))
    replace_text(_main(folder), _render({**_SETTINGS, **compression, **sync, **settings, **places}))


def arguments(folder: DataFolder) -> list[str]:
    """Return the settings for the server's command line, which no configuration can override."""
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
    """Return whether the kernel can sync a whole file system and reports failures.

    A recovery first syncs all files of the database. For about 1,200 files one by one, that took
    1.5 to 5 s while other processes wrote to the disk; all at once it took 0.05 to 0.1 s. Kernels
    before Linux 5.8 do not report errors.
    """
    if not sys.platform.startswith("linux"):
        return False
    release = re.match(r"(\d+)\.(\d+)", os.uname().release)
    return release is not None and (int(release[1]), int(release[2])) >= _SYNCFS_SINCE


def _main(folder: DataFolder) -> Path:
    return folder.root / "postgresql.conf"


def _ident_map(account: OsAccount) -> str:
    """Return the map from accounts to roles: for the account, and for root, who could become it."""
    names = sorted({account.name, "root"})
    roles = (ROLE, SERVING_ROLE)
    return "".join(f'{ROLE}  "{name}"  {role}\n' for name in names for role in roles)


def _render(settings: Mapping[str, str]) -> str:
    return "".join(f"{name} = {_quote(value)}\n" for name, value in settings.items())


def _quote(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"
