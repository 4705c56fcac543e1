"""ImageLocality: nodes score for holding a pod's images; large, widespread images count more."""

from typing import ClassVar

import numpy as np
from typing_extensions import override

from service.engine.framework.plugin import MAX_NODE_SCORE, NodePlugin
from service.engine.state.nodes.columns import Ints, Mask, Rows, at
from service.engine.state.nodes.node_rules import NodeRules
from service.engine.state.nodes.node_table import NodeTable

NAME = "ImageLocality"
MIN_BYTES = 23 * 1024 * 1024
MAX_BYTES_PER_CONTAINER = 1000 * 1024 * 1024


class ImageLocality(NodePlugin):
    name: ClassVar[str] = NAME
    weight: ClassVar[int] = 1

    @override
    def scores(self, nodes: NodeTable, rules: NodeRules, rows: Rows) -> Ints:
        if not any(image in nodes.images for image in rules.needs.images):
            anywhere: Mask = at(nodes.alive, rows)
            return np.zeros(len(anywhere), dtype=np.int64)
        total = np.zeros(nodes.size, dtype=np.int64)
        for image in rules.needs.images:
            holders = nodes.images.get(image, {})
            for slot, size in holders.items():
                total[slot] += int(size * (len(holders) / nodes.count))
        most = MAX_BYTES_PER_CONTAINER * max(len(rules.needs.images), 1)
        clamped = np.clip(total[rows], MIN_BYTES, most)
        return MAX_NODE_SCORE * (clamped - MIN_BYTES) // (most - MIN_BYTES)
