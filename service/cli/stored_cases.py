"""A conformance case on a stored cluster, which reaches the case's state by a detour over HTTP.

Objects are written in any order; some are changed and changed back, some deleted and created again,
and objects that are not in the case come and go. So the answers rest on counters that were kept
through all these changes, not on a fresh build. The detour depends on the case's name alone, so
that a failure can be repeated.
"""

import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from random import Random
from typing import Any

from service.cli.client import Client
from service.cli.vectors import Difference, Vector, differences, expected_of, settings_of

DETOUR_SHARE = 0.3
"""Of the objects take one; each costs a few requests."""

Visit = Callable[[], None]


def stored_differences(client: Client, case: Vector) -> list[Difference]:
    """Return how the answers of a stored cluster in the case's state differ from those expected.

    These are the pod's full explanation, and whether a placement takes one of the best nodes.
    """
    with _cluster(client, settings_of(case)) as cluster:
        _Road(cluster, case).walk()
        pod, expected = case["pod"], expected_of(case)
        place = cluster.path("placements")
        asked = cluster.post(place, {"pods": [pod], "dryRun": True, "explain": "Full"})
        found = differences(expected, asked["results"][0]["explanation"])
        taken = cluster.post(place, {"pods": [pod]})["results"][0]["nodeName"]
        if taken not in (expected["best"] or [None]):
            found.append(Difference(field="placed", expected=expected["best"], got=taken))
        return found


@contextmanager
def _cluster(client: Client, settings: Mapping[str, Any]) -> Iterator[Client]:
    """A cluster of its own while this lasts; its pending pods stay pending."""
    cluster = client.on_cluster(f"conformance-{secrets.token_hex(6)}")
    cluster.put(cluster.path(), {"config": {**settings, "placePendingPods": False}})
    try:
        yield cluster
    finally:
        cluster.delete(cluster.path())


class _Road:
    """The way to one case's state."""

    def __init__(self, cluster: Client, case: Vector) -> None:
        self._cluster = cluster
        self._case = case
        self._random = Random(case["name"])  # noqa: S311 - reproducible on purpose

    def walk(self) -> None:
        case, random = self._case, self._random
        visits = [
            *(self._namespace(each) for each in case["namespaces"]),
            *(self._node(each) for each in case["nodes"]),
            *(self._pod(each) for each in case["pods"]),
        ]
        random.shuffle(visits)
        for visit in visits:
            visit()

    def _namespace(self, namespace: Vector) -> Visit:
        """Write a namespace; it is never deleted on the way, as that would delete its pods."""
        path = self._cluster.path("namespaces", namespace["metadata"]["name"])
        return lambda: self._put(path, namespace, [_relabelled(namespace)], gone=False)

    def _node(self, node: Vector) -> Visit:
        path = self._cluster.path("nodes", node["metadata"]["name"])
        other = self._random.choice(self._case["nodes"])
        as_other = {**other, "metadata": {**other["metadata"], "name": node["metadata"]["name"]}}
        return lambda: self._put(path, node, [as_other, _relabelled(node)])

    def _pod(self, pod: Vector) -> Visit:
        metadata = pod["metadata"]
        namespace = metadata.get("namespace", "default")
        path = self._cluster.path("namespaces", namespace, "pods", metadata["name"])
        return lambda: self._put(path, pod, [_relabelled(pod)], created=True)

    def _put(
        self,
        path: str,
        final: Vector,
        others: list[Vector],
        *,
        gone: bool = True,
        created: bool = False,
    ) -> None:
        """The object, perhaps as another before, perhaps gone again in between.

        One that is `created` as what it is keeps what its creation made of it.
        """
        if self._takes_detour():
            if created:
                self._cluster.put(path, final)
            self._cluster.put(path, self._random.choice(others))
            if gone and self._takes_detour():
                self._cluster.delete(path)
        self._cluster.put(path, final)
        if gone and self._takes_detour():
            self._cluster.delete(path)
            self._cluster.put(path, final)

    def _takes_detour(self) -> bool:
        return self._random.random() < DETOUR_SHARE


def _relabelled(manifest: Vector) -> Vector:
    """The same object with the labels of something else."""
    labels = {"app": "stranger", "env": "other", "team": "z"}
    return {**manifest, "metadata": {**manifest["metadata"], "labels": labels}}
