"""Kubernetes 1.36, as it differs from 1.35."""

from msgspec.structs import replace

from service.model.cluster.versions.v1_35 import V1_35

V1_36 = replace(
    V1_35, name="1.36", patch="1.36.3", scores_balance_gain=True, resizes_pod_level=True
)
"""kube-scheduler 1.36."""
