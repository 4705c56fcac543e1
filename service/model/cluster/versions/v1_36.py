"""Kubernetes 1.36, as it differs from 1.35."""

from msgspec.structs import replace

from service.model.cluster.versions.v1_35 import V1_35
from service.model.pods.declared_features import (
    RESTART_ALL_CONTAINERS,
    USER_NAMESPACES_HOST_NETWORK,
)

V1_36 = replace(
    V1_35,
    name="1.36",
    patch="1.36.3",
    scores_balance_gain=True,
    resizes_pod_level=True,
    counts_image_volumes=True,
    known_features=frozenset({RESTART_ALL_CONTAINERS, USER_NAMESPACES_HOST_NETWORK}),
    keeps_alternatives=True,
    partitions_devices=True,
    taints_devices=True,
    shares_devices=True,
    awaits_devices=True,
)
"""kube-scheduler 1.36."""
