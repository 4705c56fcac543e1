"""Features that a cluster can switch off.

A field of a feature that is off is dropped from new objects, kept in those that have it, and not
read. So a feature can be switched off and on again without losing data.
"""

import msgspec

from service.model.core.primitives import Strict

NAMESPACE_SELECTOR = "PodAffinityNamespaceSelector"


class Features(Strict, frozen=True, kw_only=True, omit_defaults=False):
    """Which features are on."""

    pod_affinity_namespace_selector: bool = msgspec.field(default=True, name=NAMESPACE_SELECTOR)
    """Whether terms of pod affinity and anti-affinity select namespaces by their labels
    (`namespaceSelector`), and new quotas may have the scope CrossNamespacePodAffinity."""
