"""CSI drivers, what they report, and where they run, for tests of the volume plugins."""

from typing import Any

from tests.builders import ObjectBuilder

HOSTNAME = "kubernetes.io/hostname"


def _storage(kind: str, name: str, **fields: Any) -> ObjectBuilder:
    fields = {"apiVersion": "storage.k8s.io/v1", "metadata": {"name": name}} | fields
    return ObjectBuilder({"kind": kind, **fields})


def driver(name: str, **spec: bool) -> ObjectBuilder:
    """A CSIDriver."""
    return _storage("CSIDriver", name, spec=spec)


def csi_node(node_name: str, *drivers: str) -> ObjectBuilder:
    """A node on which drivers run that attach any number of volumes."""
    running = [{"name": name, "nodeID": node_name} for name in drivers]
    return _storage("CSINode", node_name, spec={"drivers": running})


def capacity(
    name: str, room: str, of_class: str = "fast", node: str = "", **fields: Any
) -> ObjectBuilder:
    """A CSIStorageCapacity, of one node unless `nodeTopology` is given."""
    return _storage(
        "CSIStorageCapacity",
        name,
        metadata={"name": name, "namespace": "default"},
        storageClassName=of_class,
        **{"capacity": room, "nodeTopology": {"matchLabels": {HOSTNAME: node}}} | fields,
    )
