"""The layout of a data folder, in which the account that runs postgres can reach what it needs.

    <data folder>/
      postgres/             the database (PGDATA), the account's own, 0700
      run/                  the socket's folder, the account's own, 0700, or a link to a short one
      postgresql.conf …     rewritten at each start
      postgres.log
      users.lock            shared by every process that uses the folder
      supervisor.lock       held by the one that supervises
      server.lock           held by the processes of PostgreSQL themselves
      elsewhere             instead of all this: the path of the folder that has it

No permission is changed outside the data folder. If root names a folder that the account cannot
reach, such as one below a home with mode 0700, the data goes to a folder of ours instead.
"""

import contextlib
import logging
import os
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path

from service.store.embedded.errors import FolderUnusableError
from service.store.embedded.os_account import OsAccount

SYSTEM_DIR = Path("/var/lib/moorage")
SOCKET_NAME = ".s.PGSQL.5432"
SOCKET_PATH_BYTES_MAX = 103  # sun_path of macOS; Linux has 107
_POINTER = "elsewhere"

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class DataFolder:
    """The paths in a data folder; `root` is absolute."""

    root: Path

    @property
    def pgdata(self) -> Path:
        """The folder of the database itself."""
        return self.root / "postgres"

    @property
    def run(self) -> Path:
        """The folder of the socket, or a link to it."""
        return self.root / "run"

    @property
    def socket(self) -> Path:
        """The path of the socket, short enough for a socket address."""
        return self.run.resolve() / SOCKET_NAME

    @property
    def hba(self) -> Path:
        """The file with the rules for connections."""
        return self.root / "pg_hba.conf"

    @property
    def ident(self) -> Path:
        """The file that maps accounts to the roles that they may use."""
        return self.root / "pg_ident.conf"

    @property
    def log(self) -> Path:
        """The file to which PostgreSQL logs."""
        return self.root / "postgres.log"

    @property
    def users_lock(self) -> Path:
        """The lock that all users of the folder share."""
        return self.root / "users.lock"

    @property
    def supervisor_lock(self) -> Path:
        """The lock of the supervising process."""
        return self.root / "supervisor.lock"

    @property
    def server_lock(self) -> Path:
        """The lock of PostgreSQL's own processes; the file contains the postmaster's process id."""
        return self.root / "server.lock"


def owner(data_dir: Path) -> int | None:
    """Return the id of the owner of the database in `data_dir`, or None if it does not exist."""
    try:
        return DataFolder(_follow(data_dir.resolve())).pgdata.stat().st_uid
    except FileNotFoundError:
        return None
    except OSError as error:
        raise FolderUnusableError(f"The data folder {data_dir} cannot be used: {error}") from error


def prepare(data_dir: Path, account: OsAccount, system_dir: Path) -> DataFolder:
    """Create the data folder, or its substitute, with what `account` needs in it.

    Raises:
        FolderUnusableError: it cannot be created or written.
    """
    try:
        if system_dir in data_dir.parents:
            make_system_dir(system_dir)
        return DataFolder(_reachable(data_dir.resolve(), account, system_dir))
    except OSError as error:
        raise FolderUnusableError(f"The data folder {data_dir} cannot be used: {error}") from error


def prepare_socket(folder: DataFolder, account: OsAccount) -> None:
    """Create the folder for the socket of a server that is about to start; the caller supervises.

    If its path is too long for a socket it is a link to a short private folder.
    """
    if folder.run.is_symlink() and _is_private(folder.run.resolve(), account):
        return
    if not folder.run.is_symlink():
        _make_private(folder.run, account)
        if _fits(folder.run):
            return
        folder.run.rmdir()
    short = Path(tempfile.mkdtemp(prefix="moorage-", dir="/tmp"))
    _make_private(short, account)
    folder.run.unlink(missing_ok=True)
    folder.run.symlink_to(short)
    _log.info("The path %s is too long for a socket, which is in %s", folder.run, short)


def _follow(data_dir: Path) -> Path:
    try:
        return Path((data_dir / _POINTER).read_text("utf-8").strip())
    except FileNotFoundError:
        return data_dir


def _reachable(data_dir: Path, account: OsAccount, system_dir: Path) -> Path:
    data_dir.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        data_dir.mkdir(mode=0o700)
    if account.is_self:
        return data_dir
    root = _follow(data_dir)
    if root != data_dir:
        return _existing(data_dir, root)
    if account.reaches(data_dir):
        return data_dir
    if account.reaches(data_dir.parent) and _is_ours(data_dir):
        _admit(data_dir, account)
        return data_dir
    return _elsewhere(data_dir, account, system_dir)


def _is_ours(data_dir: Path) -> bool:
    return not any(data_dir.iterdir()) or DataFolder(data_dir).users_lock.exists()


def _admit(data_dir: Path, account: OsAccount) -> None:
    """Let the account traverse root's own folder, but not read it."""
    os.chown(data_dir, -1, account.gid)
    data_dir.chmod(0o710)


def _existing(data_dir: Path, root: Path) -> Path:
    if not root.is_dir():
        raise FolderUnusableError(
            f"The data of {data_dir} was kept in {root}, which is gone. Restore it, or remove "
            f"{data_dir / _POINTER} to begin with an empty database."
        )
    return root


def _elsewhere(data_dir: Path, account: OsAccount, system_dir: Path) -> Path:
    make_system_dir(system_dir)
    root = Path(tempfile.mkdtemp(prefix="data-", dir=system_dir))
    _admit(root, account)
    if not account.reaches(root):
        root.rmdir()
        raise FolderUnusableError(
            f"User {account.name} reaches neither {data_dir} nor {system_dir}."
        )
    draft = data_dir / f"{_POINTER}-{root.name}"
    draft.write_text(f"{root}\n", "utf-8")
    try:
        os.link(draft, data_dir / _POINTER)
    except FileExistsError:  # another process was quicker
        root.rmdir()
        return _follow(data_dir)
    finally:
        draft.unlink()
    _log.warning(
        "User %s, as which PostgreSQL runs, cannot reach %s: the data is kept in %s",
        account.name,
        data_dir,
        root,
    )
    return root


def make_system_dir(system_dir: Path) -> None:
    """Create the folder for files that fit nowhere else; all may traverse it, despite the umask."""
    if not system_dir.is_dir():
        system_dir.mkdir(parents=True, exist_ok=True)
        system_dir.chmod(0o755)


def _make_private(path: Path, account: OsAccount) -> None:
    with contextlib.suppress(FileExistsError):
        path.mkdir(mode=0o700)
    path.chmod(0o700)
    if not account.is_self:
        os.chown(path, account.uid, account.gid)


def _fits(run: Path) -> bool:
    return len(os.fsencode(run / SOCKET_NAME)) <= SOCKET_PATH_BYTES_MAX


def _is_private(path: Path, account: OsAccount) -> bool:
    """Return whether a folder below /tmp belongs to the account, which alone may enter it."""
    try:
        status = path.lstat()
    except FileNotFoundError:
        return False
    return stat.S_ISDIR(status.st_mode) and (
        status.st_uid == account.uid and stat.S_IMODE(status.st_mode) == 0o700  # noqa: PLR2004
    )
