"""The memory that an engine uses in addition to the stored objects, for tests and debugging.

The bytes are estimates: the sizes of arrays, and constants for the Python objects around them. They
depend only on what is stored, so that an engine which forgets what it was queried about returns to
its previous footprint.
"""

from collections import defaultdict
from typing import NamedTuple

from service.engine.cluster import Cluster


class Footprint(NamedTuple):
    """The number of stored entries of one kind, and their approximate size in bytes."""

    entries: int = 0
    bytes: int = 0


def footprint(cluster: Cluster) -> dict[str, Footprint]:
    """Return the footprint of each kind of entry."""
    footprints: defaultdict[str, Footprint] = defaultdict(Footprint)
    for kind, size in cluster.sizes():
        known = footprints[kind]
        footprints[kind] = Footprint(known.entries + 1, known.bytes + size)
    return dict(sorted(footprints.items()))


def total_bytes(cluster: Cluster) -> int:
    """Return the approximate size in bytes of all entries."""
    return sum(size for _, size in cluster.sizes())
