"""ImageLocality: nodes that hold the pod's images, the larger and the wider spread the better."""

import numpy as np

from service.engine.plugin import MAX_NODE_SCORE
from service.engine.state.columns import Ints, Rows
from service.engine.state.nodes import NodeTable
from service.engine.state.rules import NodeRules

NAME = "ImageLocality"
MIN_BYTES = 23 * 1024 * 1024
MAX_BYTES_PER_CONTAINER = 1000 * 1024 * 1024


class ImageLocality:
    name = NAME

    def scores(self, nodes: NodeTable, rules: NodeRules, rows: Rows) -> Ints:
        total = np.zeros(nodes.size, dtype=np.int64)
        for image in rules.needs.images:
            holders = nodes.images.get(image, {})
            for slot, size in holders.items():
                total[slot] += int(size * (len(holders) / nodes.count))
        most = MAX_BYTES_PER_CONTAINER * max(len(rules.needs.images), 1)
        clamped = np.clip(total[rows], MIN_BYTES, most)
        return MAX_NODE_SCORE * (clamped - MIN_BYTES) // (most - MIN_BYTES)

    def nowhere(self, nodes: NodeTable, rules: NodeRules) -> bool:
        """Whether no node holds any of the images: the score is then 0 everywhere."""
        return not any(image in nodes.images for image in rules.needs.images)
