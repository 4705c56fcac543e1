"""Compile the engine with mypyc for the Python that runs this: `python -m tools.compile_engine`.

If the present sources are compiled already, this does nothing. If they cannot be compiled, it says
so in one line and does not fail: the engine then runs from its sources, which is slower but has the
same results.
"""

import fcntl
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from service.runtime import compiled_engine

ROOT = Path(__file__).parents[1]
NOT_COMPILED = (
    "explain/explanation.py",
    "rules/culprits.py",
    "rules/exemptions.py",
    "rules/obstacles.py",
    "rules/relaxations.py",
)
"""Modules of the engine that define msgspec structs, which mypyc does not compile, or replace fields by name."""
LOG = ".log"
"""The file beside the compiled code with what the compiler in the background said last."""


def main(*, required: bool = False) -> None:
    """Compile the engine if that is needed and possible, and say what was done.

    With `required` it is an error if there is a compiler and it fails, as for what is shipped.
    """
    target = compiled_engine.folder()
    if _is_done(target):
        return
    problem = lack = _missing()
    if problem is None:
        _tell("Compiling the engine, which takes a minute or two.")
        try:
            with _one_at_a_time(target.parent):
                problem = None if _is_done(target) else _compile_into(target)
        except OSError as error:
            problem = str(error)
    if problem is not None:
        _tell(f"The engine is not compiled, so it is slower: {problem}.")
        if required and lack is None:
            sys.exit(1)


def start() -> None:
    """Start compiling in a process of its own that outlives this one, if that is needed and possible.

    It gets what is left of the processor, so that a server that starts at the same time is not
    slower. That server runs the engine's sources; the next one finds the engine compiled.
    """
    target = compiled_engine.folder()
    if _is_done(target):
        return
    if problem := _missing():
        _tell(f"The engine is not compiled, so it is slower: {problem}.")
        return
    target.parent.mkdir(exist_ok=True)
    with (target.parent / LOG).open("w") as log:
        subprocess.Popen(
            ("nice", "-n", "19", sys.executable, "-m", "tools.compile_engine"),
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    _tell("The engine is being compiled in the background; the next start uses that and is faster.")


@contextmanager
def _one_at_a_time(folder: Path) -> Iterator[None]:
    """Wait until no other process compiles into this folder, and keep others waiting."""
    folder.mkdir(exist_ok=True)
    with (folder / ".lock").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def check() -> None:
    """End the process with an error unless the present sources are compiled."""
    if not _is_done(compiled_engine.folder()):
        sys.exit("The engine is not compiled; `make setup` says why.")


def _is_done(target: Path) -> bool:
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    return (target / f"{compiled_engine.LIBRARY}__mypyc{suffix}").exists()


def _tell(text: str) -> None:
    """Say it on standard error, broken between words where a terminal ends."""
    columns = shutil.get_terminal_size().columns if sys.stderr.isatty() else len(text) + 1
    print(textwrap.fill(text, columns), file=sys.stderr, flush=True)


def _missing() -> str | None:
    """Return what this machine lacks to compile extensions for Python, if anything."""
    compiler = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")[0]
    if shutil.which(compiler) is None:
        return f"there is no C compiler ({compiler})"
    if not Path(sysconfig.get_path("include"), "Python.h").exists():
        return "there are no headers of Python (Python.h)"
    return None


def _compile_into(target: Path) -> str | None:
    """Fill the folder completely or not at all; return what went wrong, if anything did."""
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".") as scratch:
        done = subprocess.run(
            (sys.executable, "-m", "tools.compile_engine", scratch),
            cwd=ROOT,
            env={**os.environ, compiled_engine.VARIABLE: compiled_engine.INTERPRETED},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if done.returncode:
            return (done.stdout.strip().splitlines() or ["the compiler failed"])[-1]
        _replace(Path(scratch) / "lib", target)
    return None


def _replace(made: Path, target: Path) -> None:
    """Move the new folder into its place, and remove those of earlier sources."""
    for old in target.parent.iterdir():
        if not old.name.startswith("."):
            shutil.rmtree(old, ignore_errors=True)
    made.rename(target)


def is_interpreted(path: Path) -> bool:
    """Return whether a module of the engine is not compiled: a package, or one that is listed."""
    engine = ROOT / "service" / "engine"
    return path.name == "__init__.py" or path.relative_to(engine).as_posix() in NOT_COMPILED


def build(scratch: str) -> None:
    """Compile into `scratch/lib`; if that fails, the process ends.

    Each module has a C file of its own, so that all cores compile. The code is no slower for that:
    functions that a shared library exports are not inlined within one file either. It shares no
    cache with mypy, which may check types at the same time.
    """
    from setuptools import Distribution  # isort: skip - mypyc checks whether it was imported
    from mypyc.build import mypycify
    from pybind11.setup_helpers import ParallelCompile

    modules = [
        path.relative_to(ROOT).as_posix()
        for path in compiled_engine.sources(compiled_engine.FOLDERS[0])
        if not is_interpreted(path)
    ]
    extensions = mypycify(
        ["--config-file", "pyproject.toml", "--cache-dir", os.devnull, *modules],
        group_name=compiled_engine.LIBRARY,
        target_dir=scratch,
        multi_file=True,
        opt_level="2",
        debug_level="0",
    )
    distribution = Distribution({"name": compiled_engine.LIBRARY, "ext_modules": extensions})
    command = distribution.get_command_obj("build_ext")
    command.build_lib, command.build_temp = f"{scratch}/lib", f"{scratch}/temp"
    command.parallel = os.cpu_count()
    command.ensure_finalized()
    with ParallelCompile():
        command.run()


if __name__ == "__main__":
    match sys.argv[1:]:
        case []:
            main()
        case ["--required"]:
            main(required=True)
        case ["--check"]:
            check()
        case ["--background"]:
            start()
        case [scratch]:
            build(scratch)
