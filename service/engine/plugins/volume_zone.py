"""VolumeZone: a volume with zone or region labels is usable only on nodes with the same labels."""

from typing import ClassVar

import numpy as np
from typing_extensions import override

from service.engine.framework.events import Change
from service.engine.framework.plugin import Failure
from service.engine.framework.volume_plugin import VolumePlugin
from service.engine.state.nodes.node_sets import NodeSet
from service.engine.state.nodes.node_table import NodeTable
from service.engine.state.nodes.vetoes import Vetoes
from service.engine.state.volumes.volume_table import PodVolumes
from service.model.volumes.volume_kinds import PERSISTENT_VOLUME

NAME = "VolumeZone"
NO_ZONE = "node(s) had no available volume zone"
NOT_FOUND = 'persistentvolume "{}" not found'


class VolumeZone(VolumePlugin):
    name: ClassVar[str] = NAME
    kinds: ClassVar[frozenset[str]] = frozenset({PERSISTENT_VOLUME.kind})
    events: ClassVar[frozenset[Change]] = frozenset({Change.NODE_DESCRIBED, Change.OBJECT_CHANGED})

    @override
    def rejection(self, volumes: PodVolumes) -> str | None:
        for claim in volumes.non_ephemeral_claims():
            if claim.volume_name and claim.volume_name not in volumes.table.volumes:
                return NOT_FOUND.format(claim.volume_name)
        return None

    @override
    def vetoes_of(self, nodes: NodeTable, volumes: PodVolumes) -> list[Vetoes]:
        return [zone.vetoes for zone in _zones(volumes)]

    @override
    def failures_of(self, nodes: NodeTable, volumes: PodVolumes) -> list[Failure]:
        failing = np.zeros(nodes.size, dtype=np.bool_)
        for zone in _zones(volumes):
            failing |= ~zone.mask
        return [Failure(NO_ZONE, failing & nodes.alive, unresolvable=True)]


def _zones(volumes: PodVolumes) -> list[NodeSet]:
    """Return, for each volume with zone labels, the nodes in its zones."""
    table, zones = volumes.table, list[NodeSet]()
    for claim in volumes.non_ephemeral_claims():
        volume = table.volumes.get(claim.volume_name)
        nodes = None if volume is None else table.zones_of(volume)
        if nodes is not None:
            zones.append(nodes)
    return zones
