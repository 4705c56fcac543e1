"""What an engine keeps besides the objects themselves, in entries and bytes, for tests and debugging.

The bytes are estimates: the sizes of arrays, and constants for the Python objects around them. They
follow from what is kept alone, so that an engine which forgets what it was asked about has the same
footprint as before.
"""

from collections import defaultdict
from typing import NamedTuple

from service.engine.cluster import Cluster


class Footprint(NamedTuple):
    """How many things of one kind are kept, and about how many bytes they take."""

    entries: int = 0
    bytes: int = 0


def footprint(cluster: Cluster) -> dict[str, Footprint]:
    """Return the footprint of each kind of thing that is kept."""
    found: defaultdict[str, Footprint] = defaultdict(Footprint)
    for kind, size in cluster.sizes():
        known = found[kind]
        found[kind] = Footprint(known.entries + 1, known.bytes + size)
    return dict(sorted(found.items()))


def total_bytes(cluster: Cluster) -> int:
    """Return about how many bytes everything takes that is kept."""
    return sum(size for _, size in cluster.sizes())
