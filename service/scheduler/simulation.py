"""Places pods on a cluster that exists only in the request, along the same path as placements."""

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Literal

import msgspec

from service.model.cluster.cluster_config import ClusterConfig, PreemptionScope
from service.model.core.errors import InvalidManifest
from service.model.devices.cel_questions import OpenQuestions
from service.model.nodes.namespaces import NamespaceManifest
from service.model.registry.manifests import (
    AnyManifest,
    DeclaredManifest,
    NodeManifest,
    PodManifest,
    TemplateCache,
)
from service.scheduler.decide.admission.ignored_fields import warnings_of_written
from service.scheduler.decide.admission.pod_admission import as_created, was_admitted
from service.scheduler.decide.context import Decision, DecisionContext, Steps
from service.scheduler.decide.node_lifecycle.client_writes import taint_by_conditions
from service.scheduler.dispatch import decide
from service.scheduler.protocol.callers import ANYBODY
from service.scheduler.protocol.intents import PlacePods
from service.scheduler.protocol.limits import Limits
from service.scheduler.protocol.placements import PlacementAnswer, Preemption
from service.scheduler.protocol.ports import Ids
from service.scheduler.replica.replica import Replica
from service.scheduler.replica.stored_kinds import ConfigManifest, StoredManifest

_STEP_OBJECTS = 100


class Simulation(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster, and pods to place on it one after another."""

    config: ClusterConfig = ClusterConfig()
    namespaces: Sequence[NamespaceManifest] = ()
    nodes: Sequence[NodeManifest] = ()
    objects: Sequence[DeclaredManifest] = ()
    """Other objects that rules read."""
    pods: Sequence[PodManifest] = ()
    """The existing pods; pods without a node are not tried."""
    place: Sequence[PodManifest] = ()
    path: Literal["place", "pod"] = "place"
    """The request field that holds `place`, for errors."""
    all_or_nothing: bool = False
    preemption: Preemption = "Never"
    preemption_scope: PreemptionScope = "Node"


def simulate(
    simulation: Simulation,
    *,
    now: str,
    ids: Ids,
    limits: Limits,
    templates: TemplateCache,
    questions: OpenQuestions,
) -> Decision[PlacementAnswer]:
    """Simulate step by step, with a full explanation and without storing anything.

    Raises:
        InvalidManifest, PodDiffers: for the same reasons as `place_pods`.
    """
    replica = Replica(templates)
    replica.cluster.devices.questions = questions
    config = ConfigManifest(config=simulation.config, body=b"{}")
    objects = chain[StoredManifest](
        [config],
        simulation.namespaces,
        (taint_by_conditions(simulation.config, node, now) for node in simulation.nodes),
        simulation.objects,
    )
    for index, manifest in enumerate(objects):
        replica.put(manifest)
        if index % _STEP_OBJECTS == _STEP_OBJECTS - 1:
            yield
    context = DecisionContext(
        replica=replica,
        now=now,
        templates=templates,
        ids=ids,
        limits=limits,
        attempts=1,
        hints={},
    )
    for index, pod in enumerate(simulation.pods):
        replica.put(_created(context, pod, index))
        if index % _STEP_OBJECTS == _STEP_OBJECTS - 1:
            yield
    replica.settle_all()
    intent = PlacePods(
        pods=tuple(simulation.place),
        path=simulation.path,
        all_or_nothing=simulation.all_or_nothing,
        dry_run=True,
        explain="Full",
        preemption=simulation.preemption,
        preemption_scope=simulation.preemption_scope,
        budgets_as_given=True,
        without_groups=True,
    )
    yield from _warn(context, simulation)
    answer = yield from decide(context, intent)
    assert isinstance(answer, PlacementAnswer)
    return answer


def _warn(context: DecisionContext, simulation: Simulation) -> Steps[None]:
    """Warn about the existing objects."""
    there: Mapping[str, Sequence[AnyManifest]] = {
        "namespaces": simulation.namespaces,
        "nodes": simulation.nodes,
        "pods": simulation.pods,
        "objects": simulation.objects,
    }
    for field, manifests in there.items():
        for index, manifest in enumerate(manifests):
            context.warn(warnings_of_written(context, manifest), f"{field}[{index}]")
            if index % _STEP_OBJECTS == _STEP_OBJECTS - 1:
                yield


def _created(context: DecisionContext, pod: PodManifest, index: int) -> PodManifest:
    try:
        return as_created(context, pod, was_admitted=was_admitted(pod, ANYBODY))
    except InvalidManifest as error:
        raise error.under(f"pods[{index}]") from None
