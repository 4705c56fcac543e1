"""The kinds of objects that a cluster holds, and their paths."""

from itertools import starmap
from typing import NamedTuple

from moorage.kept_kinds import DECLARED_KINDS


class Kind(NamedTuple):
    """A kind of objects, with its names in manifests, paths, and commands."""

    name: str
    """The kind's name in manifests."""
    plural: str
    """The kind's name in paths."""
    namespaced: bool
    short_names: tuple[str, ...] = ()
    """Other names that the command accepts."""


_OWN = (
    Kind("Node", "nodes", namespaced=False, short_names=("no",)),
    Kind("Namespace", "namespaces", namespaced=False, short_names=("ns",)),
    Kind("Pod", "pods", namespaced=True, short_names=("po",)),
    Kind("ResourceQuota", "resourcequotas", namespaced=True, short_names=("quota", "quotas")),
    Kind("PodGroup", "podgroups", namespaced=True, short_names=("pg", "pgs")),
    Kind("Event", "events", namespaced=True, short_names=("ev",)),
)
KINDS = {kind.name: kind for kind in sorted((*_OWN, *starmap(Kind, DECLARED_KINDS)))}

NAMESPACE_DEFAULT = "default"


def path_parts(kind: Kind, namespace: str | None, name: str | None = None) -> tuple[str, ...]:
    """Return the path segments of one object, or of a list if no name is given.

    A list without a namespace covers all namespaces; an object without one is in `default`.
    """
    plain = (kind.plural,) if name is None else (kind.plural, name)
    if not kind.namespaced or (namespace is None and name is None):
        return plain
    return ("namespaces", namespace or NAMESPACE_DEFAULT, *plain)
