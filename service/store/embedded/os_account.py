"""Chooses the account that runs postgres: the current one, or for root one without privileges.

PostgreSQL refuses to run as root.
"""

import logging
import os
import pwd
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from service.store.embedded.errors import FolderUnusableError

ROOT = 0
DEDICATED_NAME = "moorage"

_log = logging.getLogger(__name__)


class Identity(TypedDict, total=False):
    """Arguments of `subprocess.Popen` that run the child as another user."""

    user: int
    group: int
    extra_groups: list[int]


@dataclass(frozen=True, kw_only=True)
class OsAccount:
    """An account of the operating system."""

    name: str
    uid: int
    gid: int

    @property
    def is_self(self) -> bool:
        """Whether this process runs as this account."""
        return self.uid == os.geteuid()

    def identity(self) -> Identity:
        """Return the arguments that start a process as this account."""
        if self.is_self:
            return {}
        return {"user": self.uid, "group": self.gid, "extra_groups": []}

    def reaches(self, path: Path) -> bool:
        """Return whether the account may enter `path`, by the mode of each folder on the way.

        Access lists are not consulted: at worst, PostgreSQL itself reports the problem.
        """
        return all(self.may_enter(folder.stat()) for folder in (path, *path.parents))

    def may_enter(self, status: os.stat_result) -> bool:
        """Return whether a folder's mode lets the account enter."""
        if status.st_uid == self.uid:
            return bool(status.st_mode & 0o100)
        if status.st_gid == self.gid:
            return bool(status.st_mode & 0o010)
        return bool(status.st_mode & 0o001)


def choose(owner: int | None) -> OsAccount:
    """Return the account for the database of `owner`, or for a new one if `owner` is None.

    Raises:
        FolderUnusableError: no account exists that PostgreSQL would accept.
    """
    uid = os.geteuid()
    if owner is not None and uid not in (ROOT, owner):
        raise FolderUnusableError(
            f"The database belongs to user {_name(owner)}, not to {_name(uid)}. "
            f"Start Moorage as {_name(owner)}, or with another data folder."
        )
    if uid != ROOT:
        return _known(uid)
    if owner == ROOT:
        raise FolderUnusableError(
            "The database belongs to root, as which PostgreSQL refuses to run. "
            f"Give its folder to an ordinary user, for example: chown -R {DEDICATED_NAME}: <folder>"
        )
    return _dedicated() if owner is None else _named_or_not(owner)


def _known(uid: int) -> OsAccount:
    try:
        entry = pwd.getpwuid(uid)
    except KeyError:
        raise FolderUnusableError(
            f"User {uid} has no name in /etc/passwd, which PostgreSQL requires. "
            "Add one, or set MOORAGE_DATABASE_URL to use a PostgreSQL of your own."
        ) from None
    return OsAccount(name=entry.pw_name, uid=uid, gid=entry.pw_gid)


def _named_or_not(uid: int) -> OsAccount:
    """Return the account that owns an existing database, even if its id has no name.

    In a new container, or after a restore, the files may belong to an id without a name. Only
    initdb insists on a name.
    """
    try:
        return _known(uid)
    except FolderUnusableError:
        return OsAccount(name=str(uid), uid=uid, gid=uid)


def _name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _dedicated() -> OsAccount:
    try:
        return _known(pwd.getpwnam(DEDICATED_NAME).pw_uid)
    except KeyError:
        return _create_dedicated()


def _create_dedicated() -> OsAccount:
    for command in _creation_commands():
        if shutil.which(command[0]) is None:
            continue
        result = subprocess.run(command, capture_output=True, check=False)  # noqa: S603 - ours
        if result.returncode == 0:
            _log.info("Created the user %s, as which PostgreSQL runs", DEDICATED_NAME)
        break
    try:  # another process may have created it while we tried
        return _known(pwd.getpwnam(DEDICATED_NAME).pw_uid)
    except KeyError:
        raise FolderUnusableError(
            f"PostgreSQL refuses to run as root, and the user {DEDICATED_NAME} could not be "
            "created. Create it, start Moorage as an ordinary user, or set MOORAGE_DATABASE_URL."
        ) from None


def _creation_commands() -> list[list[str]]:
    name = DEDICATED_NAME
    shell = "/usr/sbin/nologin"
    return [
        ["useradd", "--system", "--user-group", "--no-create-home", "--shell", shell, name],
        ["adduser", "-S", "-D", "-H", "-s", shell, name],  # BusyBox
    ]
