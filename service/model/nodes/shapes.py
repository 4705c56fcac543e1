"""The shape of nodes: what all nodes of a pool share, decoded once."""

from collections import OrderedDict

import msgspec

from service.model.core.primitives import ContainerImage, Quantities, Taint

NODE_SHAPES_MAX = 1_024
NODE_SHAPE_BYTES_MAX = 8 * 1024


class NodeShape(msgspec.Struct, frozen=True):
    """Everything but the metadata, which all nodes of a pool share."""

    rest: bytes
    allocatable: Quantities
    taints: tuple[Taint, ...]
    unschedulable: bool
    images: tuple[ContainerImage, ...]
    ready: str
    conditions: tuple[tuple[str, str], ...]
    declared_features: tuple[str, ...]


class NodeShapes:
    """An LRU cache of node shapes, keyed by the bytes from which they were parsed."""

    def __init__(self) -> None:
        self._known: OrderedDict[bytes, NodeShape] = OrderedDict()

    def find(self, rest: bytes) -> NodeShape | None:
        """Return the cached shape for these bytes, or None."""
        shape = self._known.get(rest)
        if shape is not None:
            self._known.move_to_end(rest)
        return shape

    def add(self, rest: bytes, shape: NodeShape) -> None:
        """Cache a shape, unless it is too large for many nodes to share it."""
        if len(rest) > NODE_SHAPE_BYTES_MAX:
            return
        self._known[rest] = shape
        if len(self._known) > NODE_SHAPES_MAX:
            self._known.popitem(last=False)
