"""Building `verification/oracle`, once for each version of Kubernetes.

A binary is rebuilt when its sources, its modules, or the Go toolchain have changed.
"""

import hashlib
import re
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "verification" / "oracle"
BINARIES = ROOT / ".oracle"
"""Where binaries are kept; git ignores this folder."""

REQUIREMENT = re.compile(r"^(?:require)?\s*k8s\.io/kubernetes v(\S+)$", re.MULTILINE)


class BuildError(Exception):
    """An oracle cannot be built, or is not built."""


def releases() -> dict[str, str]:
    """Return the patch release that each version is built from, such as 1.36.3 for 1.36."""
    return {path.stem: _release_in(path) for path in sorted(SOURCES.glob("1.*.mod"))}


def _release_in(modules: Path) -> str:
    required = REQUIREMENT.search(modules.read_text())
    if required is None:
        raise BuildError(f"{modules.name}: k8s.io/kubernetes is not required.")
    return required[1]


def binary_of(version: str) -> Path:
    """Return where the binary of a version is, or will be."""
    return BINARIES / f"oracle-{version}"


def build(version: str, *, jobs: int = 1) -> Path:
    """Return the binary of a version, built if it is not up to date.

    Raises:
        BuildError: There is no such version, Go is missing, or it fails.
    """
    if version not in releases():
        raise BuildError(f"There is no oracle of {version}, only of {', '.join(releases())}.")
    go = shutil.which("go")
    if go is None:
        raise BuildError("Go is missing, which builds the oracle: see https://go.dev/doc/install.")
    binary, stamp = binary_of(version), BINARIES / f"oracle-{version}.stamp"
    fingerprint = _fingerprint(version, go)
    if binary.exists() and stamp.exists() and stamp.read_text() == fingerprint:
        return binary
    BINARIES.mkdir(exist_ok=True)
    stamp.unlink(missing_ok=True)
    built = subprocess.run(_command(go, version, binary, jobs), cwd=SOURCES, check=False)
    if built.returncode:
        raise BuildError(f"Go failed to build the oracle of {version}.")
    stamp.write_text(fingerprint)
    return binary


def _command(go: str, version: str, binary: Path, jobs: int) -> tuple[str, ...]:
    tag = f"kube{version.replace('.', '')}"
    # Kubernetes compares features of nodes with its own version, which is otherwise v0.0.0.
    stamp = f"-X=k8s.io/component-base/version.gitVersion=v{releases()[version]}"
    arguments = (f"-p={jobs}", f"-modfile={version}.mod", f"-tags={tag}", f"-ldflags={stamp}")
    return (go, "build", "-mod=readonly", "-buildvcs=false", *arguments, f"-o={binary}", ".")


def _fingerprint(version: str, go: str) -> str:
    """Return a digest of all that a binary is built from."""
    digest = hashlib.sha256(subprocess.run((go, "version"), capture_output=True, check=True).stdout)
    digest.update(" ".join(_command(go, version, binary_of(version), 1)).encode())
    modules = (SOURCES / f"{version}.mod", SOURCES / f"{version}.sum")
    for path in (*modules, *sorted(SOURCES.glob("*.go"))):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()
