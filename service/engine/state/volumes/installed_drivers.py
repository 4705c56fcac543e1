"""The nodes on which each CSI driver runs, according to their CSINodes."""

import numpy as np

from service.engine.state.nodes.columns import Mask
from service.engine.state.nodes.node_table import NodeTable
from service.model.volumes.volume import CSINode


class InstalledDrivers:
    """The CSI drivers on nodes, and masks of the nodes with each, computed on demand."""

    def __init__(self, nodes: NodeTable) -> None:
        self._nodes = nodes
        self._names: dict[str, dict[str, None]] = {}
        """The names of the nodes with each driver."""
        self._reporting: dict[str, None] = {}
        """The names of the nodes with a CSINode."""
        self._masks: dict[str | None, Mask] = {}
        """The nodes with each driver, and under None those with a CSINode, shape (nodes,)."""
        self._seen = -1

    def add(self, csi_node: CSINode) -> None:
        """Record the drivers of a node that had no CSINode."""
        self._reporting[csi_node.name] = None
        for driver in csi_node.drivers:
            self._names.setdefault(driver, {})[csi_node.name] = None
        self._masks.clear()

    def remove(self, csi_node: CSINode) -> None:
        """Remove the drivers of a node whose CSINode is removed or replaced."""
        del self._reporting[csi_node.name]
        for driver in csi_node.drivers:
            names = self._names[driver]
            del names[csi_node.name]
            if not names:
                del self._names[driver]
        self._masks.clear()

    def nodes_with(self, driver: str) -> Mask:
        """Return the nodes on which a driver runs, shape (nodes,), read-only."""
        return self._mask(driver, self._names.get(driver, {}))

    def reporting(self) -> Mask:
        """Return the nodes with a CSINode, shape (nodes,), read-only."""
        return self._mask(None, self._reporting)

    def _mask(self, key: str | None, names: dict[str, None]) -> Mask:
        if self._seen != self._nodes.version:
            self._masks.clear()
            self._seen = self._nodes.version
        mask = self._masks.get(key)
        if mask is None:
            mask = self._masks[key] = np.zeros(self._nodes.size, dtype=np.bool_)
            slots = self._nodes.slots
            mask[[slots[name] for name in names if name in slots]] = True
        return mask
