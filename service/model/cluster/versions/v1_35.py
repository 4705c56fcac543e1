"""Kubernetes 1.35, the oldest version that a cluster can follow."""

from service.model.cluster.versions.version import SchedulerVersion

V1_35 = SchedulerVersion(name="1.35", patch="1.35.4", negation_selects_all=True)
"""kube-scheduler 1.35."""
