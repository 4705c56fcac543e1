"""Creates the database's own folder, atomically, and checks that its version is supported."""

import logging
import os
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path

from service.store.embedded import binaries as installed
from service.store.embedded.binaries import ENVIRONMENT, Binaries
from service.store.embedded.config import DATABASE, ROLE
from service.store.embedded.errors import (
    FolderUnusableError,
    StartFailedError,
    VersionMismatchError,
)
from service.store.embedded.layout import DataFolder
from service.store.embedded.os_account import OsAccount

_DRAFT_PREFIX = "postgres.new-"
_ASIDE_PREFIX = "postgres.incomplete-"
_INITDB_SECONDS_MAX = 300
_OPTIONS = (
    "--data-checksums",
    "--encoding=UTF8",
    "--locale=C",
    "--locale-provider=builtin",
    "--builtin-locale=C",
)
"""Options of initdb: text is compared by its bytes, which no upgrade of a library changes."""

_log = logging.getLogger(__name__)


def check_version(folder: DataFolder, account: OsAccount, binaries: Binaries) -> None:
    """Raise VersionMismatchError if the folder has a database of another major version."""
    try:
        version = (folder.pgdata / "PG_VERSION").read_text("utf-8", "replace").strip()
    except (FileNotFoundError, NotADirectoryError):
        return
    if version in ("", binaries.major):  # empty: initdb was interrupted
        return
    message = (
        f"The database in {folder.pgdata} is of PostgreSQL {version}; this Moorage runs PostgreSQL "
        f"{binaries.major}. Nothing was changed. "
    )
    if version.isdigit() and int(version) < int(binaries.major):
        commands = _upgrade_commands(folder, account, binaries, version)
        raise VersionMismatchError(f"{message}To upgrade it:\n{commands}")
    raise VersionMismatchError(
        f"{message}Use a Moorage that runs PostgreSQL {version}, or another data folder."
    )


def ensure(folder: DataFolder, account: OsAccount, binaries: Binaries, *, sync: bool) -> None:
    """Create the database unless it exists; the caller must hold the folder's supervisor lock.

    With `sync=False`, the files are not forced to disk.

    Raises:
        FolderUnusableError: a database exists, but is damaged.
        StartFailedError: initdb failed.
    """
    _remove_drafts(folder)
    if _is_complete(folder.pgdata):
        return
    _set_aside(folder)
    draft = Path(tempfile.mkdtemp(prefix=_DRAFT_PREFIX, dir=folder.root))
    if not account.is_self:
        os.chown(draft, account.uid, account.gid)
    _initialise(draft, account, binaries, sync=sync)
    draft.rename(folder.pgdata)
    _sync(folder.root)
    _log.info("Created the database in %s", folder.pgdata)


def _upgrade_commands(
    folder: DataFolder, account: OsAccount, binaries: Binaries, version: str
) -> str:
    """Return the shell commands that upgrade the database, one per line."""
    old = folder.pgdata
    new = old.with_name(f"{old.name}.{binaries.major}")
    old_programs = installed.older(version) or Path(f"/usr/lib/postgresql/{version}/bin")
    rules = shlex.quote(f"-c hba_file={folder.hba} -c ident_file={folder.ident}")
    become = "" if account.is_self else f"runuser -u {account.name} -- "
    initdb, upgrade = (become + binaries.path(program) for program in ("initdb", "pg_upgrade"))
    return (
        f"  install -d -m 700 -o {account.name} {new} && cd {new.parent}\n"
        f"  {initdb} -D {new} -U {ROLE} {' '.join(_OPTIONS)}\n"
        f"  cd {new} && {upgrade} -U {ROLE} -b {old_programs} -B {binaries.folder}"
        f" -d {old} -D {new} -s /tmp -o {rules} -O {rules}\n"
        f"  mv {old} {old}.{version} && mv {new} {old}"
    )


def _is_complete(pgdata: Path) -> bool:
    return all((pgdata / part).exists() for part in ("PG_VERSION", "global/pg_control", "base/5"))


def _set_aside(folder: DataFolder) -> None:
    """If initdb was interrupted, rename its folder to make room for a new database.

    initdb makes the database with the id 5 last: if it is missing, nothing was ever stored.
    """
    if not folder.pgdata.exists() or not any(folder.pgdata.iterdir()):
        return
    if (folder.pgdata / "base" / "5").exists():
        raise FolderUnusableError(
            f"The database in {folder.pgdata} is damaged: PG_VERSION or global/pg_control is "
            "missing. Restore it from a backup, or move it away to begin with an empty one."
        )
    aside = Path(tempfile.mkdtemp(prefix=_ASIDE_PREFIX, dir=folder.root))
    folder.pgdata.rename(aside / "postgres")
    _log.warning("The database in %s was never completed; it is now in %s", folder.pgdata, aside)


def _initialise(draft: Path, account: OsAccount, binaries: Binaries, *, sync: bool) -> None:
    """Run initdb, and create the database with a single-user server."""
    options = [*_OPTIONS, "--auth=peer", f"--username={ROLE}", "--no-instructions"]
    options += [] if sync else ["--no-sync"]
    _run(account, [binaries.path("initdb"), "-D", str(draft), *options])
    single = [binaries.path("postgres"), "--single", "-D", str(draft)]
    single += [] if sync else ["-c", "fsync=off"]
    created = _run(account, [*single, "postgres"], f"CREATE DATABASE {DATABASE};\n")
    if "ERROR:" in created:  # a single-user server ends with 0 even if it failed
        raise StartFailedError(f"The database could not be created: {created}")


def _run(account: OsAccount, command: list[str], text: str = "") -> str:
    try:
        result = subprocess.run(  # noqa: S603 - ours
            command,
            input=text,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=_INITDB_SECONDS_MAX,
            cwd="/",
            env=ENVIRONMENT,
            **account.identity(),
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise StartFailedError(f"{command[0]} did not run: {error}") from error
    if result.returncode != 0:
        raise StartFailedError(f"{command[0]} failed: {result.stdout.strip()}")
    return result.stdout


def _remove_drafts(folder: DataFolder) -> None:
    for draft in folder.root.glob(f"{_DRAFT_PREFIX}*"):
        shutil.rmtree(draft, ignore_errors=True)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
