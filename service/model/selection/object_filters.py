"""Label and field filters for lists, watches, and deletions."""

import msgspec

from service.model.core.primitives import LabelSelector
from service.model.core.selectors import matches
from service.model.pods.namespace_selectors import uses_namespace_selector
from service.model.registry.manifests import PodManifest
from service.model.selection.selectable_fields import OBJECT_FIELDS, Subject


class FieldRequirement(msgspec.Struct, frozen=True):
    """A requirement that a field, as text, has this value or, if not `wanted`, any other value."""

    field: str
    value: str
    wanted: bool = True


class ObjectFilter(msgspec.Struct, frozen=True, kw_only=True):
    """A filter of objects by labels and fields; an empty one matches all objects."""

    labels: LabelSelector | None = None
    fields: tuple[FieldRequirement, ...] = ()
    uses_namespace_selector: bool = False

    @property
    def asks_nothing(self) -> bool:
        """Whether the filter matches all objects."""
        return self == EVERYTHING

    def required(self, field: str) -> str | None:
        """Return the only value that the filter allows for a field, or None."""
        return next(
            (
                requirement.value
                for requirement in self.fields
                if requirement.wanted and requirement.field == field
            ),
            None,
        )

    def passes(self, manifest: Subject) -> bool:
        """Return whether an object matches the filter."""
        if self.labels is not None and not matches(self.labels, manifest.labels):
            return False
        for requirement in self.fields:
            value = OBJECT_FIELDS[requirement.field].of_manifest(manifest)
            if (value == requirement.value) is not requirement.wanted:
                return False
        return not self.uses_namespace_selector or _uses_namespace_selector(manifest)


EVERYTHING = ObjectFilter()
"""The filter that matches all objects."""


def _uses_namespace_selector(manifest: Subject) -> bool:
    return isinstance(manifest, PodManifest) and uses_namespace_selector(manifest.pod.spec.affinity)
