"""Kubernetes 1.37, as it differs from 1.36."""

from msgspec.structs import replace

from service.model.cluster.versions.v1_36 import V1_36
from service.model.pods.declared_features import VOLUME_BIND_MOUNT_OPTIONS

V1_37 = replace(
    V1_36,
    name="1.37",
    patch="1.37.2",
    normalizes_image_volumes=True,
    known_features=V1_36.known_features | {VOLUME_BIND_MOUNT_OPTIONS},
    narrows_to_node_name=True,
    stops_at_exceeded_budget=True,
    reports_preemption=True,
    omits_device_report=True,
    counts_resizes_by_sum=True,
    negation_selects_all=False,
    keeps_counters_apart=True,
    hides_counters=True,
    scores_storage_capacity=True,
    requires_csi_driver=True,
)
"""kube-scheduler 1.37."""
