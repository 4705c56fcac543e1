"""ImageLocality: nodes score for holding a pod's images; large, widespread images count more."""

from collections.abc import Collection
from typing import ClassVar

import numpy as np
from typing_extensions import override

from service.engine.framework.plugin import MAX_NODE_SCORE, NodePlugin
from service.engine.state.nodes.columns import Ints, Mask, Rows, at
from service.engine.state.nodes.node_rules import NodeRules
from service.engine.state.nodes.node_table import NodeTable
from service.model.cluster.cluster_config import ClusterConfig, SchedulerProfile

NAME = "ImageLocality"
MIN_BYTES = 23 * 1024 * 1024
MAX_BYTES_PER_IMAGE = 1000 * 1024 * 1024


class ImageLocality(NodePlugin):
    """Scores the images of containers, as kube-scheduler does up to version 1.35."""

    name: ClassVar[str] = NAME
    weight: ClassVar[int] = 1

    @classmethod
    @override
    def of(cls, profile: SchedulerProfile, config: ClusterConfig) -> "ImageLocality":
        version = config.scheduler_version
        if not version.counts_image_volumes:
            return ImageLocality()
        return ImageVolumeLocality(raises_maximum=version.normalizes_image_volumes)

    @override
    def scores(self, nodes: NodeTable, rules: NodeRules, rows: Rows) -> Ints:
        images = rules.needs.images
        return _scores(nodes, images, len(images), rows)


class ImageVolumeLocality(ImageLocality):
    """Scores the images of containers and volumes, as kube-scheduler does from version 1.36."""

    def __init__(self, *, raises_maximum: bool) -> None:
        """Create the plugin; each volume raises the maximum, as each container does, or none."""
        self._raises_maximum = raises_maximum

    @override
    def scores(self, nodes: NodeTable, rules: NodeRules, rows: Rows) -> Ints:
        needs = rules.needs
        images = needs.images + needs.volume_images
        count = len(images if self._raises_maximum else needs.images)
        return _scores(nodes, images, count, rows)


def _scores(nodes: NodeTable, images: Collection[str], count: int, rows: Rows) -> Ints:
    """Return the scores of nodes for holding images; `count` scales the bytes of the best score."""
    if not any(image in nodes.images for image in images):
        anywhere: Mask = at(nodes.alive, rows)
        return np.zeros(len(anywhere), dtype=np.int64)
    total = np.zeros(nodes.size, dtype=np.int64)
    for image in images:
        holders = nodes.images.get(image, {})
        for slot, size in holders.items():
            total[slot] += int(size * (len(holders) / nodes.count))
    most = MAX_BYTES_PER_IMAGE * max(count, 1)
    clamped = np.clip(total[rows], MIN_BYTES, most)
    return MAX_NODE_SCORE * (clamped - MIN_BYTES) // (most - MIN_BYTES)
