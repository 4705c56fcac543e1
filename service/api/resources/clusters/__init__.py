"""Clusters, their configuration, and their readable revisions."""

from service.api.resources.clusters.routes import CLUSTER_HANDLERS

__all__ = ["CLUSTER_HANDLERS"]
