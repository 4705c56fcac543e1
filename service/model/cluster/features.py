"""Features that can be disabled per cluster.

While a feature is disabled, its fields are dropped from new objects, and kept but ignored in stored
ones. So a feature can be disabled and re-enabled without losing data.
"""

import msgspec

from service.model.core.primitives import Strict

NAMESPACE_SELECTOR = "PodAffinityNamespaceSelector"


class Features(Strict, frozen=True, kw_only=True, omit_defaults=False):
    """Which features are on."""

    pod_affinity_namespace_selector: bool = msgspec.field(default=True, name=NAMESPACE_SELECTOR)
    """Whether terms of pod affinity and anti-affinity select namespaces by their labels
    (`namespaceSelector`), and new quotas may have the scope CrossNamespacePodAffinity."""
