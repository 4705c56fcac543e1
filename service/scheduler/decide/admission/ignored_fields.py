"""Warns about manifest fields that a cluster's configuration and profiles ignore."""

from collections.abc import Callable, Mapping

from service.model.cluster.versions.version import SchedulerVersion
from service.model.core.field_warnings import (
    DEVICE_CLAIMS,
    DEVICE_FIELD,
    DEVICE_REFUSED,
    PREEMPTION,
    RUNTIME_CLASS,
    UNKNOWN_SCHEDULER,
    VOLUMES,
    FieldWarning,
    FieldWarnings,
    warning,
)
from service.model.core.type_rules import fields_of
from service.model.pods.rule_warnings import warnings_of_own_labels
from service.model.pods.volume_sources import Volume
from service.model.registry.manifests import Applicable, PodManifest
from service.scheduler.decide.admission.feature_gates import warnings_of_features
from service.scheduler.decide.admission.pod_admission import has_runtime_classes, knows_scheduler
from service.scheduler.decide.context import DecisionContext

_VOLUMES_READ = frozenset(fields_of(Volume)) - {"name"}
"""Volume sources that restrict a pod's choice of nodes, unless volumes are ignored."""


_DEVICES_READ = frozenset({"resourceClaims", "claims", "resourceClaimStatuses"})
"""The pod fields that request devices, read where devices are allocated."""
_FEATURES: Mapping[str, Callable[[SchedulerVersion], bool]] = {
    **dict.fromkeys(
        (
            *("perDeviceNodeSelection", "nodeName", "nodeSelector", "allNodes"),
            *("sharedCounters", "consumesCounters"),
        ),
        lambda version: version.partitions_devices,
    ),
    **dict.fromkeys(("taints", "tolerations"), lambda version: version.taints_devices),
    "bindsToNode": lambda version: version.awaits_devices,
    "capacity": lambda version: version.shares_devices,
}
"""Whether a version reads a field in the spec of a slice or device claim, by the field's name."""


def warnings_of_written(context: DecisionContext, sent: Applicable) -> FieldWarnings:
    """Return the warnings about a written manifest."""
    warnings = warnings_of(context, sent)
    if isinstance(sent, PodManifest) and not context.replica.config.reads_namespace_selectors:
        warnings = (*warnings, *warnings_of_features(context, sent))
    if not isinstance(sent, PodManifest) or sent.pod.node_name is not None:
        return warnings
    if sent.pod.spec.topology_spread_constraints:
        warnings = (*warnings, *warnings_of_own_labels(sent.pod.spec, sent.pod.labels))
    if knows_scheduler(context.replica.cluster, sent.pod):
        return warnings
    return (*warnings, warning("spec.schedulerName", UNKNOWN_SCHEDULER))


def warnings_of(context: DecisionContext, manifest: Applicable) -> FieldWarnings:
    """Return the warnings about a manifest, apart from fields that admission refuses."""
    warnings = manifest.warnings
    if not warnings:
        return warnings
    config = context.replica.config
    if not isinstance(manifest, PodManifest):
        by_version = [_by_version(ignored, config.scheduler_version) for ignored in warnings]
        return [ignored for ignored in by_version if ignored is not None]
    if config.volumes == "Honor":
        warnings = [ignored for ignored in warnings if not _is_read_of_volumes(ignored)]
    if has_runtime_classes(context.replica.cluster):
        warnings = [ignored for ignored in warnings if ignored.code != RUNTIME_CLASS]
    if config.queue_preemption == "Evict":
        warnings = [ignored for ignored in warnings if ignored.code != PREEMPTION]
    if config.device_claims == "Allocate":
        warnings = [ignored for ignored in warnings if not _is_read_of_devices(ignored)]
    if config.device_claims == "Refuse" and manifest.pod.node_name is None:
        warnings = [ignored for ignored in warnings if ignored.code != DEVICE_CLAIMS]
    return warnings


def _by_version(ignored: FieldWarning, version: SchedulerVersion) -> FieldWarning | None:
    """Return the warning about a field of devices as it applies to a version, or None."""
    if ignored.code not in (DEVICE_FIELD, DEVICE_REFUSED):
        return ignored
    part, name = ignored.field.partition(".")[0], ignored.field.rpartition(".")[2]
    if part == "status" and name == "bindingConditions":
        return None if version.awaits_devices else ignored
    has_feature = _FEATURES.get(name)
    if part == "status" or has_feature is None:
        return ignored
    if not has_feature(version):
        return warning(ignored.field, DEVICE_FIELD)
    return ignored if ignored.code == DEVICE_REFUSED else None


def _is_read_of_devices(ignored: FieldWarning) -> bool:
    return ignored.code == DEVICE_CLAIMS and ignored.field.rpartition(".")[2] in _DEVICES_READ


def _is_read_of_volumes(ignored: FieldWarning) -> bool:
    return ignored.code == VOLUMES and ignored.field.rpartition(".")[2] in _VOLUMES_READ
