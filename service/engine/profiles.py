"""From a cluster's configuration to the pipelines of its profiles."""

from service.engine.pipeline import Pipeline
from service.engine.profile import AffinityArguments, FitArguments, Resources
from service.model.config import ClusterConfig, SchedulerProfile
from service.model.profiles import ResourceWeight, ScoringStrategy


def pipelines_of(config: ClusterConfig) -> dict[str, Pipeline]:
    """One pipeline per scheduler name; `default-scheduler` always exists."""
    return {name: _pipeline(each, config) for name, each in config.scheduler_profiles().items()}


def _pipeline(profile: SchedulerProfile, config: ClusterConfig) -> Pipeline:
    return Pipeline(
        filters=profile.filters,
        weights=dict(profile.weights),
        fit=_fit(profile.scoring),
        affinity=AffinityArguments(
            hard_weight=profile.hard_pod_affinity_weight,
            symmetric_affinity=config.symmetric_preferred_affinity,
            symmetric_anti_affinity=config.symmetric_preferred_anti_affinity,
            ignore_preferred_of_existing=profile.ignore_preferred_terms_of_existing_pods,
            weight_per_term=config.weight_per_term,
        ),
        balanced=_resources(profile.balanced_resources),
    )


def _fit(scoring: ScoringStrategy) -> FitArguments:
    ratio = scoring.requested_to_capacity_ratio
    points = () if ratio is None else ratio.shape
    return FitArguments(
        strategy=scoring.type,
        resources=_resources(scoring.resources),
        shape=tuple((point.utilization, point.score) for point in points),
    )


def _resources(resources: tuple[ResourceWeight, ...]) -> Resources:
    return tuple((each.name, each.weight) for each in resources)
