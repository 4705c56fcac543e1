"""The topology key whose one domain is a whole cluster, so that rules can be about several clusters."""

from collections.abc import Mapping

CLUSTER_KEY = "moorage.dev/cluster"
"""The topology key for rules over clusters; nodes need no label for it."""

_THIS_CLUSTER = "this"
"""The value of every node that has no such label: to the nodes of one cluster it is the same."""


def topology_value(labels: Mapping[str, str], key: str) -> str | None:
    """The value that a node with these labels has for a topology key; None if it has none."""
    value = labels.get(key)
    return _THIS_CLUSTER if value is None and key == CLUSTER_KEY else value
