"""Places pods on a cluster that exists only in the request, along the same path as placements."""

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Literal, NamedTuple

import msgspec
from msgspec.structs import replace

from service.engine import Explanation
from service.engine.explain.choice_change import Choice
from service.model.cluster.cluster_config import ClusterConfig, PreemptionScope
from service.model.core.errors import InvalidManifest
from service.model.devices.cel_questions import OpenQuestions
from service.model.nodes.namespaces import NamespaceManifest
from service.model.pods.pod import Pod
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
from service.scheduler.decide.reading.choice_difference import difference_of
from service.scheduler.dispatch import decide
from service.scheduler.protocol.callers import ANYBODY
from service.scheduler.protocol.intents import PlacePods
from service.scheduler.protocol.limits import Limits
from service.scheduler.protocol.placements import PlacementAnswer, PlacementResult, Preemption
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
    compare_to: str | None = None
    """Another Kubernetes version whose choices are compared with those of the configured one."""


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

    def context_of(config: ClusterConfig) -> DecisionContext:
        replica = Replica(templates)
        replica.cluster.devices.questions = questions
        replica.put(ConfigManifest(config=config, body=b"{}"))
        return DecisionContext(
            replica=replica,
            now=now,
            templates=templates,
            ids=ids,
            limits=limits,
            attempts=1,
            hints={},
        )

    context = context_of(simulation.config)
    answer = yield from _place(context, simulation)
    if simulation.compare_to is None:
        return answer
    other = context_of(replace(simulation.config, kubernetes=simulation.compare_to))
    compared = yield from _place(other, simulation)
    runs = _Run(context, answer.results), _Run(other, compared.results)
    return replace(answer, results=_compared(simulation.place, *runs))


def _place(context: DecisionContext, simulation: Simulation) -> Decision[PlacementAnswer]:
    """Fill an empty replica with the simulated cluster, and place the pods."""
    replica = context.replica
    objects = chain[StoredManifest](
        simulation.namespaces,
        (taint_by_conditions(replica.config, node, context.now) for node in simulation.nodes),
        simulation.objects,
    )
    for index, manifest in enumerate(objects):
        replica.put(manifest)
        if index % _STEP_OBJECTS == _STEP_OBJECTS - 1:
            yield
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


class _Run(NamedTuple):
    """A simulation as one Kubernetes version decides it."""

    context: DecisionContext
    results: Sequence[PlacementResult]

    def choice(self, index: int, pod: Pod) -> Choice | None:
        """Return the choice for a pod, or None if it was not judged."""
        result, profiles = self.results[index], self.context.replica.cluster.profiles
        if not isinstance(result.explanation, Explanation):
            return None
        weights = profiles[pod.spec.scheduler_name].weights
        return Choice(result.node_name, result.explanation, weights)


def _compared(pods: Sequence[PodManifest], run: _Run, other: _Run) -> list[PlacementResult]:
    """Return a run's results, each with the other run's choice if it is another node."""
    results = list(run.results)
    for index, manifest in enumerate(pods):
        before, after = run.choice(index, manifest.pod), other.choice(index, manifest.pod)
        if before and after and before.node_name != after.node_name:
            difference = difference_of(manifest.pod, before, after)
            results[index] = replace(results[index], difference=difference)
    return results


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
