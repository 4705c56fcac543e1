"""Schemas of clusters: their settings and their sizes."""

from typing import Any, Literal

import msgspec

from service.model.cluster.cluster_config import ClusterConfig
from service.model.core.primitives import Strict, Value
from service.model.log.pages import ClusterCounts


class Cluster(Value, frozen=True, kw_only=True):
    """A cluster: its configuration, where its log ends, and how much it holds."""

    name: str
    """Name of the cluster."""
    config: ClusterConfig
    """Its settings."""
    revision: int
    """Revision of its last change."""
    counts: ClusterCounts
    """How many objects it holds."""


class DeletedCluster(Value, frozen=True, kw_only=True):
    """A cluster as it was before it was deleted."""

    name: str
    """Name of the cluster."""
    config: ClusterConfig | msgspec.UnsetType = msgspec.UNSET
    """Its settings. Absent if the configuration in the database could not be read."""
    revision: int
    """Revision of its last change."""
    counts: ClusterCounts
    """How many objects it held."""


class ClusterList(Value, frozen=True, kw_only=True):
    """All clusters, by name."""

    items: list[Cluster]
    """The clusters."""
    unreadable: list[str] | msgspec.UnsetType = msgspec.UNSET
    """Names of the clusters whose configuration in the database cannot be read. Absent if there are none."""
    kind: Literal["ClusterList"] = "ClusterList"
    """What this is."""


class _ClusterShown(Strict, frozen=True, kw_only=True):
    """The fields of a cluster besides its settings, which are accepted so that answers can be sent back."""

    name: str | msgspec.UnsetType = msgspec.UNSET
    """Ignored: the name is in the path."""
    revision: int | msgspec.UnsetType = msgspec.UNSET
    """Ignored, as in what GET shows."""
    counts: dict[str, int] | msgspec.UnsetType = msgspec.UNSET
    """Ignored, as in what GET shows."""


class ClusterSettings(_ClusterShown, frozen=True, kw_only=True):
    """What PUT of a cluster takes."""

    config: ClusterConfig | msgspec.UnsetType = msgspec.UNSET
    """All its settings; one that is left out or null has its default, but a cluster that exists keeps its
    `kubernetes` and `kubernetesRules`. Without `config` it keeps all its settings."""


class ClusterPatch(_ClusterShown, frozen=True, kw_only=True):
    """What PATCH of a cluster takes."""

    config: dict[str, Any]
    """The settings to change; null gives one its default."""
