"""Kubernetes 1.36, as it differs from 1.35."""

from msgspec.structs import replace

from service.model.cluster.versions.v1_35 import V1_35

V1_36 = replace(
    V1_35,
    name="1.36",
    patch="1.36.3",
    scores_balance_gain=True,
    keeps_alternatives=True,
    partitions_devices=True,
    taints_devices=True,
    shares_devices=True,
    awaits_devices=True,
)
"""kube-scheduler 1.36."""
