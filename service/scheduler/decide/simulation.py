"""Placing pods on a cluster that exists only in the request, by the same path as placements."""

from collections.abc import Sequence
from typing import Literal

import msgspec

from service.model.config import ClusterConfig
from service.model.errors import InvalidManifest
from service.model.manifest import NamespaceManifest, NodeManifest, PodManifest, TemplateCache
from service.scheduler.decide import decide
from service.scheduler.decide.context import Decision, DecisionContext
from service.scheduler.protocol.intents import PlacePods
from service.scheduler.protocol.limits import Limits
from service.scheduler.protocol.placements import PlacementAnswer
from service.scheduler.protocol.ports import Ids
from service.scheduler.replica.kinds import ConfigManifest, StoredManifest
from service.scheduler.replica.replica import Replica

_STEP_OBJECTS = 100


class Simulation(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster, and pods to place on it one after the other, with those before already in place."""

    config: ClusterConfig = ClusterConfig()
    namespaces: Sequence[NamespaceManifest] = ()
    nodes: Sequence[NodeManifest] = ()
    pods: Sequence[PodManifest] = ()
    """The pods that are there already; those without a node only wait, and are not tried."""
    place: Sequence[PodManifest] = ()
    path: Literal["place", "pod"] = "place"
    """The field of the request that `place` comes from, for errors."""
    all_or_nothing: bool = False


def simulating(
    simulation: Simulation, *, now: str, ids: Ids, limits: Limits, templates: TemplateCache
) -> Decision[PlacementAnswer]:
    """Simulate step by step; the answer is always explained in full, and nothing is stored.

    Raises:
        InvalidManifest, PodDiffers: for the same reasons as `place_pods`.
    """
    replica = Replica(templates)
    pods = [_created(pod, index, templates) for index, pod in enumerate(simulation.pods)]
    config = ConfigManifest(config=simulation.config, body=b"{}")
    objects: list[StoredManifest] = [config, *simulation.namespaces, *simulation.nodes, *pods]
    for index, manifest in enumerate(objects):
        replica.put(manifest)
        if index % _STEP_OBJECTS == _STEP_OBJECTS - 1:
            yield
    replica.settle_all()
    context = DecisionContext(
        replica=replica,
        now=now,
        templates=templates,
        ids=ids,
        limits=limits,
        attempts=1,
        hints={},
    )
    intent = PlacePods(
        pods=tuple(simulation.place),
        path=simulation.path,
        all_or_nothing=simulation.all_or_nothing,
        dry_run=True,
        explain="Full",
        without_groups=True,
    )
    answer = yield from decide(context, intent)
    assert isinstance(answer, PlacementAnswer)
    return answer


def _created(pod: PodManifest, index: int, templates: TemplateCache) -> PodManifest:
    try:
        return pod.created_now(templates)
    except InvalidManifest as error:
        raise error.under(f"pods[{index}]") from None
