"""Runs pytest again and again, each time in a fork of a process that has imported the libraries.

Importing pytest with its plugins and the libraries takes seven seconds of CPU; most tests that find
a mutant take a tenth of a second. This is a plain script that imports nothing of the project: a
fork imports that from the folder which the request names. A request is a line of JSON, and so is
its answer: the exit code, or null if the time was over.
"""

import contextlib
import importlib
import json
import os
import signal
import sys
import tempfile
import time
from typing import Any

LIBRARIES = (
    "alembic.command", "asyncpg", "granian", "httpx", "hypothesis.stateful", "litestar.testing", "msgspec", "numpy",
    "prometheus_client", "psutil", "rich", "sqlalchemy.ext.asyncio", "typer", "yaml",
)  # fmt: skip
POLL_SECONDS = 0.02


def main() -> None:
    """Answer requests until there are no more."""
    sys.path.pop(0)  # the folder of this script
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    import pytest

    with tempfile.TemporaryDirectory() as nothing:  # a run without tests has all plugins imported
        pytest.main(
            ["-q", "--rootdir", nothing, "-c", os.devnull, "-p", "no:cacheprovider", nothing]
        )
    for name in LIBRARIES:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    for line in sys.stdin:
        request = json.loads(line)
        print(json.dumps(_answer(request)), file=answers, flush=True)


def _answer(request: dict[str, Any]) -> int | None:
    pid = os.fork()
    if pid == 0:
        _run(request)
    deadline = time.monotonic() + request["seconds"]
    while (ended := os.waitpid(pid, os.WNOHANG))[0] == 0 and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
    with contextlib.suppress(ProcessLookupError):  # also end what the run has started
        os.killpg(pid, signal.SIGKILL)
    if ended[0]:
        return os.waitstatus_to_exitcode(ended[1])
    os.waitpid(pid, 0)
    return None


def _run(request: dict[str, Any]) -> None:
    """Run pytest in the fork; never returns."""
    code = 70
    try:
        os.setsid()
        output = os.open(request["output"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.chdir(request["folder"])
        os.environ.update(request["environment"])
        sys.dont_write_bytecode = bool(os.environ.get("PYTHONDONTWRITEBYTECODE"))
        tempfile.tempdir = None
        sys.path.insert(0, request["folder"])
        sys.argv = ["pytest", *request["arguments"]]
        import pytest

        code = int(pytest.main(request["arguments"]))
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)


if __name__ == "__main__":
    main()
