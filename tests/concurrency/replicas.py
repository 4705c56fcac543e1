"""A replica that is loaded from the tables when all is over, and whether others are and decide as it."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from service.engine import Placement, place
from service.model.log.commit import ObjectRow
from service.model.registry.manifests import TemplateCache, parse_pod
from service.scheduler.replica.replica import Replica
from tests.concurrency.checker.history import Key

Rows = Mapping[Key, tuple[int, bytes]]
"""What the tables have: by kind, namespace and name the revision and the object."""


class Asked(NamedTuple):
    """What somebody said of a pod that was not to be placed in earnest."""

    of: str
    pod: dict[str, Any]
    node_name: str | None
    """None if it fits nowhere."""
    score: int | None


def loaded(rows: Rows, revision: int) -> Replica:
    """A replica that has seen nothing but the tables at this revision."""
    replica = Replica(TemplateCache())
    replica.load(
        [
            ObjectRow(kind=kind, namespace=namespace, name=name, uid="", revision=at, body=body)
            for (kind, namespace, name), (at, body) in sorted(rows.items())
        ]
    )
    replica.arrive(revision)
    return replica


def differing(fresh: Replica, asked: Iterable[Asked]) -> list[str]:
    """Answers that a replica which was loaded from the tables would not have given."""
    templates, told = TemplateCache(), []
    for each in asked:
        pod = parse_pod(each.pod, templates, to_place=True).created_now(templates).pod
        expected = place(fresh.cluster, pod)
        wanted = expected if isinstance(expected, Placement) else None
        answer = None if each.node_name is None else Placement(each.node_name, each.score or 0)
        if answer != wanted:
            told.append(f"{each.of} says {answer} of {pod.name}, and loaded anew {wanted}")
    return told
