"""Filters of lists, watches, and deletions by labels and fields."""

import msgspec

from service.model.core.primitives import LabelSelector
from service.model.core.selectors import matches
from service.model.pods.namespace_selectors import uses_namespace_selector
from service.model.registry.manifests import PodManifest
from service.model.selection.selectable_fields import OBJECT_FIELDS, Subject


class FieldRequirement(msgspec.Struct, frozen=True):
    """A field has this value as text or, if it is not `wanted`, any other."""

    field: str
    value: str
    wanted: bool = True


class ObjectFilter(msgspec.Struct, frozen=True, kw_only=True):
    """A filter of objects; an empty one passes all of them."""

    labels: LabelSelector | None = None
    fields: tuple[FieldRequirement, ...] = ()
    uses_namespace_selector: bool = False

    @property
    def asks_nothing(self) -> bool:
        """Whether all objects pass."""
        return self == EVERYTHING

    def required(self, field: str) -> str | None:
        """Return the only value that a field may have, or None."""
        return next(
            (
                requirement.value
                for requirement in self.fields
                if requirement.wanted and requirement.field == field
            ),
            None,
        )

    def passes(self, manifest: Subject) -> bool:
        """Return whether an object passes the filter."""
        if self.labels is not None and not matches(self.labels, manifest.labels):
            return False
        for requirement in self.fields:
            value = OBJECT_FIELDS[requirement.field].of_manifest(manifest)
            if (value == requirement.value) is not requirement.wanted:
                return False
        return not self.uses_namespace_selector or _uses_namespace_selector(manifest)


EVERYTHING = ObjectFilter()
"""The filter that all objects pass."""


def _uses_namespace_selector(manifest: Subject) -> bool:
    return isinstance(manifest, PodManifest) and uses_namespace_selector(manifest.pod.spec.affinity)
