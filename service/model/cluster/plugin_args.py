"""The arguments of Kubernetes' plugins, declared in the same way as those of any other plugin."""

from collections.abc import Callable, Mapping
from typing import ClassVar, Literal

from service.model.cluster.plugin_rules import Arguments
from service.model.cluster.scoring_rules import (
    HARD_AFFINITY_WEIGHT,
    RESOURCE_WEIGHTS,
    SCORING_STRATEGY,
    score_shape,
)
from service.model.cluster.versions.version import SchedulerVersion
from service.model.core.primitives import Strict
from service.model.core.validators import RecordCheck, Rule, boolean, one_of
from service.model.pods.affinity_rules import (
    NODE_AFFINITY,
    default_spread_constraints,
    system_has_no_list,
)
from service.model.pods.pod import NodeAffinity, TopologySpreadConstraint

StrategyType = Literal["LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"]


class ResourceWeight(Strict, frozen=True, kw_only=True):
    """A resource and its weight in a node's score."""

    name: str
    weight: int = 1


class ShapePoint(Strict, frozen=True, kw_only=True):
    """A point of a piecewise linear function: utilization 0 to 100, score 0 to 10."""

    utilization: int
    """Utilization in percent, from 0 to 100."""
    score: int
    """Score at that utilization, from 0 to 10."""


class RequestedToCapacityRatio(Strict, frozen=True, kw_only=True):
    """How a node's score follows from its utilization, by rising utilization."""

    shape: tuple[ShapePoint, ...] = ()
    """Scores by utilization, interpolated between the points."""


DEFAULT_RESOURCES = (ResourceWeight(name="cpu"), ResourceWeight(name="memory"))


class ScoringStrategy(Strict, frozen=True, kw_only=True):
    """How NodeResourcesFit scores."""

    type: StrategyType = "LeastAllocated"
    resources: tuple[ResourceWeight, ...] = DEFAULT_RESOURCES
    requested_to_capacity_ratio: RequestedToCapacityRatio | None = None


class NodeResourcesFitArgs(Arguments, frozen=True, kw_only=True):
    """Arguments of NodeResourcesFit; if absent, the cluster's setting applies."""

    rules: ClassVar[Mapping[str, Rule]] = {"scoringStrategy": SCORING_STRATEGY}

    scoring_strategy: ScoringStrategy | None = None


class BalancedAllocationArgs(Arguments, frozen=True, kw_only=True):
    """Arguments of NodeResourcesBalancedAllocation."""

    rules: ClassVar[Mapping[str, Rule]] = {"resources": RESOURCE_WEIGHTS}

    resources: tuple[ResourceWeight, ...] = DEFAULT_RESOURCES


class InterPodAffinityArgs(Arguments, frozen=True, kw_only=True):
    """Arguments of InterPodAffinity; for absent weights, the cluster's settings apply."""

    rules: ClassVar[Mapping[str, Rule]] = {
        "hardPodAffinityWeight": HARD_AFFINITY_WEIGHT,
        "ignorePreferredTermsOfExistingPods": boolean,
    }

    hard_pod_affinity_weight: int | None = None
    ignore_preferred_terms_of_existing_pods: bool = False


class PodTopologySpreadArgs(Arguments, frozen=True, kw_only=True):
    """Arguments of PodTopologySpread; if absent, the cluster's settings apply."""

    rules: ClassVar[Mapping[str, Rule]] = {
        "defaultConstraints": default_spread_constraints,
        "defaultingType": one_of("List", "System"),
    }
    checks: ClassVar[tuple[RecordCheck, ...]] = (
        system_has_no_list("defaultingType", "defaultConstraints"),
    )

    default_constraints: tuple[TopologySpreadConstraint, ...] | None = None
    defaulting_type: Literal["List", "System"] | None = None


MOST_FREE_FIRST = (ShapePoint(utilization=0, score=10), ShapePoint(utilization=100, score=0))


class VolumeBindingArgs(Arguments, frozen=True, kw_only=True):
    """Arguments of VolumeBinding: how a node's score follows from the utilization of its storage."""

    rules: ClassVar[Mapping[str, Rule]] = {"shape": score_shape}
    versioned: ClassVar[Mapping[str, Callable[[SchedulerVersion], bool]]] = {
        "shape": lambda version: version.scores_storage_capacity
    }

    shape: tuple[ShapePoint, ...] = MOST_FREE_FIRST


class NodeAffinityArgs(Arguments, frozen=True, kw_only=True):
    """Arguments of NodeAffinity: an affinity added to that of every pod of the profile."""

    rules: ClassVar[Mapping[str, Rule]] = {"addedAffinity": NODE_AFFINITY}

    added_affinity: NodeAffinity | None = None
