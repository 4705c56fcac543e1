"""Keeps the sample cluster moving: pods come and go, and once in a while a rule is broken and holds again."""

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from typing import Any

from moorage.cli.exceptions import CliError, Refused
from moorage.cli.session.client import Client

PAUSE_SECONDS = 2.5
"""The time between two movements, in which somebody who looks sees the first of them."""
STOP_SECONDS_MAX = 5.0
"""How long the movement under way is waited for; its thread never keeps the process alive."""
NAMESPACE = "shop"
JOBS_AT_ONCE = 6
"""How many jobs run before the first of them leaves."""
ROUND = ("arrive", "arrive", "break", "look", "repair", "leave", "arrive")
"""Two jobs come, a rule is broken for as long as one needs to look, and holds again; one leaves, the next comes."""
SIZES = (("500m", "1Gi"), ("1", "2Gi"), ("250m", "512Mi"), ("2", "4Gi"))
JOBS = "app=demo-job"
"""The label by which these pods are known again."""
INTRUDER = "intruder"
"""A pod that somebody starts by hand beside a cache, although no two caches may share a host."""


def job(number: int) -> dict[str, Any]:
    """Return a small pod that is spread over the zones; every second one has a higher priority."""
    cpu, memory = SIZES[number % len(SIZES)]
    labels = {"app": "demo-job"}
    spread = {
        "topologyKey": "topology.kubernetes.io/zone",
        "maxSkew": 2,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": labels},
    }
    requests = {"requests": {"cpu": cpu, "memory": memory}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"job-{number}", "namespace": NAMESPACE, "labels": labels},
        "spec": {
            "priority": number % 2 * 100,
            "containers": [{"name": "main", "image": "example.com/job:1", "resources": requests}],
            "topologySpreadConstraints": [spread],
        },
    }


def movements(client: Client) -> Iterator[str]:
    """Do one thing after the other, without end, and yield what was done.

    Raises:
        CliError: the server is not there, or refuses.
    """
    running: deque[str] = deque()
    numbers = count()
    while True:
        for step in ROUND:
            if step == "break":
                yield intrude(client)
            elif step == "look":
                yield "nothing moves, so that one sees what is broken"
            elif step == "repair":
                remove(client, NAMESPACE, INTRUDER)
                yield f"{NAMESPACE}/{INTRUDER} left"
            elif step == "leave":
                remove(client, NAMESPACE, left := running.popleft())
                yield f"{NAMESPACE}/{left} left"
            else:
                if len(running) >= JOBS_AT_ONCE:
                    remove(client, NAMESPACE, running.popleft())
                pod = job(next(numbers))
                running.append(pod["metadata"]["name"])
                request = {"pods": [pod], "onUnschedulable": "Queue"}
                client.post_once(client.path("placements"), request)
                yield f"{NAMESPACE}/{running[-1]} came"


def intrude(client: Client) -> str:
    """Report a second cache on the host of the first one, as a fact that the server cannot refuse."""
    cache = placed_cache(client)
    if cache is None:
        return f"{NAMESPACE}/cache-0 has no node, so nothing can be broken there"
    intruder = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": INTRUDER, "namespace": NAMESPACE, "labels": {"app": "cache"}},
        "spec": {
            "nodeName": cache["spec"]["nodeName"],
            "containers": cache["spec"]["containers"],
            "affinity": cache["spec"]["affinity"],
        },
    }
    client.put(pod_path(client, INTRUDER), intruder)
    return f"{NAMESPACE}/{INTRUDER} breaks the anti-affinity of {NAMESPACE}/cache-0"


def placed_cache(client: Client) -> dict[str, Any] | None:
    """Return the first cache if it is on a node; whoever plays with the cluster may have deleted it."""
    try:
        cache: dict[str, Any] = client.get(pod_path(client, "cache-0"))
    except Refused as error:
        if error.problem.get("code") != "NotFound":
            raise
        return None
    return cache if cache["spec"].get("nodeName") else None


def remove(client: Client, namespace: str, name: str) -> None:
    """Delete a pod, unless it is gone already."""
    try:
        client.delete(client.path("namespaces", namespace, "pods", name))
    except Refused as error:
        if error.problem.get("code") != "NotFound":
            raise


def pod_path(client: Client, name: str) -> str:
    return client.path("namespaces", NAMESPACE, "pods", name)


@contextmanager
def moving(url: str, token: str | None) -> Iterator[None]:
    """Keep the cluster of a server moving in the background, as long as the server is there.

    At the end of the block nothing moves any longer. A server that ends is no error: the block is
    left in the same way as when the cluster still moves.
    """
    stopped = threading.Event()
    mover = threading.Thread(target=_move, args=(url, token, stopped), daemon=True)
    mover.start()
    try:
        yield
    finally:
        stopped.set()
        mover.join(STOP_SECONDS_MAX)


class _Stopped(Exception):  # noqa: N818 - an order, not a fault
    """Nobody looks any longer."""


def _move(url: str, token: str | None, stopped: threading.Event) -> None:
    """Move until told to stop, also in the middle of the pause before a request is sent again."""

    def pause(seconds: float) -> None:
        if stopped.wait(seconds):
            raise _Stopped

    with suppress(CliError, _Stopped), Client(url, token=token, sleep=pause) as client:
        pause(PAUSE_SECONDS)
        for _ in movements(client):
            pause(PAUSE_SECONDS)
