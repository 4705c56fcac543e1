"""Shows Moorage at work on a sample cluster, and says why each pod is where it is.

examples/demo.py --url http://127.0.0.1:8080    uses a running server
examples/demo.py --serve --data-dir .data       starts one that serves until Ctrl-C (`make run`),
                                                and keeps its cluster moving
"""

import argparse
import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Any

from examples.movement import INTRUDER, JOBS, NAMESPACE, moving, remove
from moorage.cli.exceptions import CliError
from moorage.cli.input.sources import read_objects
from moorage.cli.render.explanations import (
    count_outcomes,
    describe_outcomes,
    print_explanation,
    print_results,
)
from moorage.cli.render.output import Output, print_error
from moorage.cli.session.client import Client
from service.cli.server_failures import as_command_errors
from service.server.local_server import LocalServer
from service.settings import settings_of_this_process

HERE = Path(__file__).resolve().parent
WORKLOADS = sorted((HERE / "workloads").glob("*.yaml"))
GUEST = "hello"
"""The pod that the README has its reader place."""


def show(client: Client, output: Output) -> None:
    """Load the sample cluster and place its four workloads, with the reasons; earlier pods of it leave."""
    clear(client)
    objects = read_objects([str(HERE / "cluster")])
    counts = client.post_once(client.path("apply"), {"kind": "List", "items": objects})
    output.line(
        f"Sample cluster: {len(objects)} objects (revision {counts['revision']})", style="bold"
    )
    results = [result for file in WORKLOADS for result in place(client, output, file)]
    output.line()
    output.prose(f"In all: {describe_outcomes(count_outcomes(results))}.", style="bold")


def clear(client: Client) -> None:
    """Remove the pods that an earlier demonstration has left, and no others."""
    own = [pod["metadata"] for file in WORKLOADS for pod in read_objects([str(file)])]
    names = {(pod["namespace"], pod["name"]) for pod in own} | {
        (NAMESPACE, INTRUDER),
        (NAMESPACE, GUEST),
    }
    jobs = {"labelSelector": JOBS}
    for pods in client.pages(client.path("namespaces", NAMESPACE, "pods"), jobs):
        names |= {(NAMESPACE, pod["metadata"]["name"]) for pod in pods}
    for namespace, name in sorted(names):
        remove(client, namespace, name)


def place(client: Client, output: Output, file: Path) -> list[dict[str, Any]]:
    """Place one workload, print where its pods went, and explain the last of them in full.

    What fits nowhere waits, so that the page has somebody to show who does.
    """
    request = {
        "pods": read_objects([str(file)]),
        "explain": "Full",
        "onUnschedulable": "Queue",
    }
    results: list[dict[str, Any]] = client.post_once(client.path("placements"), request)["results"]
    output.line()
    output.prose(headline(file), style="bold cyan")
    print_results(output, [{**result, "explanation": None} for result in results])
    explained = next((r for r in reversed(results) if r.get("explanation")), None)
    if explained:
        output.line(f"  Why, for {explained['name']}:")
        print_explanation(output, explained["explanation"], chosen=explained["nodeName"])
    return results


def headline(file: Path) -> str:
    """Return the comment with which a workload's file begins."""
    return file.read_text().partition("\n")[0].removeprefix("# ")


def farewell(output: Output, url: str, *, serving: bool) -> None:
    """Print what to look at next."""
    output.line()
    output.line(f"Look at it: {url}/", style="bold green")
    output.line(f"Read about it: {url}/docs")
    output.line(f"Try: .venv/bin/moorage get pods --url {url}")
    output.line(f"     .venv/bin/moorage explain shop/web-0 --url {url}")
    if serving:
        output.prose(
            "Pods come and go on the page; one breaks a rule now and then, and leaves again."
        )
        output.line("Serving until Ctrl-C.", style="bold")


def serve(arguments: argparse.Namespace, output: Output) -> int:
    """Start a server, show what it does, and wait for its end; stop signals are passed on to it."""
    settings = settings_of_this_process()
    server = LocalServer(Path(arguments.data_dir), port=settings.port, workers=settings.workers)
    stopped = stop_with_signals(server)
    try:
        with (
            as_command_errors(),
            server,
            Client(server.url, token=settings.token) as client,
        ):
            show(client, output)
            farewell(output, server.url, serving=True)
            sys.stdout.flush()
            with moving(server.url, settings.token):
                return server.wait()
    except CliError:
        if stopped.is_set():
            return 0
        raise


def stop_with_signals(server: LocalServer) -> threading.Event:
    """Have stop signals end the server; the returned event tells whether one came."""
    stopped = threading.Event()

    def stop(_signal: int, _frame: FrameType | None) -> None:
        stopped.set()
        server.end()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, stop)
    return stopped


def main(given: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--url", default="http://127.0.0.1:8080", help="a server that runs")
    parser.add_argument("--token", help="its bearer token")
    parser.add_argument("--serve", action="store_true", help="start a server, and keep it running")
    parser.add_argument("--data-dir", default=".data", help="the data folder of that server")
    arguments = parser.parse_args(given)
    output = Output()
    try:
        if arguments.serve:
            return serve(arguments, output)
        with Client(arguments.url, token=arguments.token) as client:
            show(client, output)
        farewell(output, arguments.url, serving=False)
    except CliError as error:
        print_error(error)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
