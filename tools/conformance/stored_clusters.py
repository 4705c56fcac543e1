"""A conformance case on a stored cluster, which reaches the case's state by a detour over HTTP.

Objects are written in any order; some are changed and changed back, some deleted and created again.
So the answers rest on counters that were kept through all these changes, not on a fresh build. The
detour depends on the case's name alone, so that a failure can be repeated.
"""

import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from random import Random
from typing import Any

from moorage.cli.session.client import Client
from tools.conformance.cases import (
    KINDS_BY_PLURAL,
    Difference,
    Vector,
    differences,
    objects_of,
    settings_of,
)

DETOUR_SHARE = 0.3
"""The share of objects that take a detour; each detour costs a few requests."""

AT_REST = {"placePendingPods": False}
"""The setting with which a cluster does nothing by itself: a case is a state in which time stands still."""

Visit = Callable[[], None]

_PLURALS = {each.kind: plural for plural, each in KINDS_BY_PLURAL.items()}


def stored_differences(client: Client, case: Vector) -> list[Difference]:
    """Return how the answers of a stored cluster in the case's state differ from those expected.

    The answers are the pod's full explanation, and a placement, which has to take one of the best
    nodes.
    """
    with _cluster(client, settings_of(case)) as cluster:
        _Road(cluster, case).walk()
        pod, expected = case["pod"], case["expect"]
        place = cluster.path("placements")
        asked = cluster.post(place, {"pods": [pod], "dryRun": True, "explain": "Full"})
        found = differences(expected, asked["results"][0]["explanation"])
        taken = cluster.post(place, {"pods": [pod]})["results"][0]["nodeName"]
        if taken not in (expected["best"] or [None]):
            found.append(Difference(field="placed", expected=expected["best"], got=taken))
        return found


@contextmanager
def _cluster(client: Client, settings: Mapping[str, Any]) -> Iterator[Client]:
    """Create a cluster for the duration of the context; nothing in it changes by itself."""
    cluster = client.on_cluster(f"conformance-{secrets.token_hex(6)}")
    cluster.put(cluster.path(), {"config": {**settings, **AT_REST}})
    try:
        yield cluster
    finally:
        cluster.delete(cluster.path())


class _Road:
    """Writes the objects of one case to a cluster, by a detour."""

    def __init__(self, cluster: Client, case: Vector) -> None:
        self._cluster = cluster
        self._case = case
        self._random = Random(case["name"])

    def walk(self) -> None:
        case, random = self._case, self._random
        visits = [
            *(self._namespace(each) for each in case["namespaces"]),
            *(self._node(each) for each in case["nodes"]),
            *(self._pod(each) for each in case["pods"]),
            *(self._object(each) for each in objects_of(case)),
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

    def _object(self, item: Vector) -> Visit:
        """Write an object of another kind, on the way perhaps as another one of its kind."""
        metadata = item["metadata"]
        scope = ("namespaces", metadata["namespace"]) if "namespace" in metadata else ()
        path = self._cluster.path(*scope, _PLURALS[item["kind"]], metadata["name"])
        alike = [each for each in objects_of(self._case) if each["kind"] == item["kind"]]
        as_other = {**self._random.choice(alike), "metadata": metadata}
        others = [_relabelled(item)] if _has_devices(as_other) else [as_other, _relabelled(item)]
        return lambda: self._put(path, item, others)

    def _put(
        self,
        path: str,
        final: Vector,
        others: list[Vector],
        *,
        gone: bool = True,
        created: bool = False,
    ) -> None:
        """Write `final` in the end; before that, perhaps write one of `others`, and delete it.

        If `created`, the object is first created as `final`, since the server keeps of a pod what
        it was created with.
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


def _has_devices(item: Vector) -> bool:
    """Whether an object is a claim that has devices, so that its spec may not change."""
    return bool((item.get("status") or {}).get("allocation"))


def _relabelled(manifest: Vector) -> Vector:
    """Return the object with other labels."""
    labels = {"app": "stranger", "env": "other", "team": "z"}
    return {**manifest, "metadata": {**manifest["metadata"], "labels": labels}}
