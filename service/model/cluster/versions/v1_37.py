"""Kubernetes 1.37, as it differs from 1.36."""

from msgspec.structs import replace

from service.model.cluster.versions.v1_36 import V1_36

V1_37 = replace(
    V1_36,
    name="1.37",
    patch="1.37.2",
    counts_resizes_by_sum=True,
    negation_selects_all=False,
    reports_claims=False,
)
"""kube-scheduler 1.37."""
