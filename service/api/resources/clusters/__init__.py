"""Clusters, their configuration, and which of their revisions are readable."""

from service.api.resources.clusters.routes import CLUSTER_HANDLERS

__all__ = ["CLUSTER_HANDLERS"]
