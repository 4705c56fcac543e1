"""Warns of fields of manifests that a cluster passes over, by its configuration and its profiles."""

from service.model.manifests.manifest import Applicable, PodManifest
from service.model.pod_templates.field_warnings import (
    DEVICE_CLAIMS,
    PREEMPTION,
    RUNTIME_CLASS,
    UNKNOWN_SCHEDULER,
    VOLUMES,
    FieldWarning,
    FieldWarnings,
    warning,
)
from service.model.pod_templates.rule_warnings import warnings_of_own_labels
from service.model.pods.volume_sources import Volume
from service.model.validation.type_derived_rules import fields_of
from service.scheduler.decide.admission.feature_gates import warnings_of_features
from service.scheduler.decide.admission.pod_admission import has_runtime_classes, knows_scheduler
from service.scheduler.decide.context import DecisionContext

_VOLUMES_READ = frozenset(fields_of(Volume)) - {"name"}
"""The sources of volumes that decide where a pod can go, unless volumes are ignored."""


_DEVICES_READ = frozenset({"resourceClaims", "claims", "resourceClaimStatuses"})
"""The fields of pods by which they are given devices, where they are."""


def warnings_of_written(context: DecisionContext, sent: Applicable) -> FieldWarnings:
    """Return the warnings about a manifest that is written."""
    found = warnings_of(context, sent)
    if isinstance(sent, PodManifest) and not context.replica.config.reads_namespace_selectors:
        found = (*found, *warnings_of_features(context, sent))
    if not isinstance(sent, PodManifest) or sent.pod.node_name is not None:
        return found
    if sent.pod.spec.topology_spread_constraints:
        found = (*found, *warnings_of_own_labels(sent.pod.spec, sent.pod.labels))
    if knows_scheduler(context.replica.cluster, sent.pod):
        return found
    return (*found, warning("spec.schedulerName", UNKNOWN_SCHEDULER))


def warnings_of(context: DecisionContext, manifest: Applicable) -> FieldWarnings:
    """Return the warnings about a manifest; what admission refuses is not passed over."""
    found = manifest.warnings
    if not found or not isinstance(manifest, PodManifest):
        return found
    config = context.replica.config
    if config.volumes == "Honor":
        found = [each for each in found if not _is_read_of_volumes(each)]
    if has_runtime_classes(context.replica.cluster):
        found = [each for each in found if each.code != RUNTIME_CLASS]
    if config.queue_preemption == "Evict":
        found = [each for each in found if each.code != PREEMPTION]
    if config.device_claims == "Allocate":
        found = [each for each in found if not _is_read_of_devices(each)]
    if config.device_claims == "Refuse" and manifest.pod.node_name is None:
        found = [each for each in found if each.code != DEVICE_CLAIMS]
    return found


def _is_read_of_devices(told: FieldWarning) -> bool:
    return told.code == DEVICE_CLAIMS and told.field.rpartition(".")[2] in _DEVICES_READ


def _is_read_of_volumes(told: FieldWarning) -> bool:
    return told.code == VOLUMES and told.field.rpartition(".")[2] in _VOLUMES_READ
