"""Generates names for new objects that have only a `generateName`."""

from collections.abc import Iterable
from typing import TypeVar, cast

from service.model.core.errors import Conflict
from service.model.core.generate_name import is_undrawn, prefix_of
from service.model.registry.manifests import Applicable, ObjectManifest
from service.scheduler.decide.context import DecisionContext

DRAWS_MAX = 100
"""How many names are tried; enough while less than half of all names are taken."""

M = TypeVar("M", bound=Applicable)
Key = tuple[str, str, str]


def with_name(context: DecisionContext, manifest: M, taken: Iterable[Key] = ()) -> M:
    """Return a manifest with an unused name, if the name has to be generated.

    Args:
        context: the context of the decision.
        manifest: the manifest; returned unchanged if it has a name.
        taken: kinds, namespaces, and names that are taken in addition to those stored.

    Raises:
        Conflict: no free name was found, as too many are taken.
    """
    if not isinstance(manifest, ObjectManifest) or not is_undrawn(manifest):
        return manifest
    prefix, kind, namespace = prefix_of(manifest), manifest.kind, manifest.namespace
    for _ in range(DRAWS_MAX):
        name = prefix + context.ids.suffix()
        if context.replica.get(kind, namespace, name) is None and (
            (kind, namespace, name) not in taken
        ):
            return cast("M", manifest.named(name))
    raise Conflict(f"There are too many objects of this kind whose names begin with {prefix}.")


def with_names(context: DecisionContext, manifests: Iterable[M]) -> tuple[M, ...]:
    """Return manifests with names that differ from each other and from all stored ones."""
    given = tuple(manifests)
    taken = {(manifest.kind, manifest.namespace, manifest.name) for manifest in given}
    named = []
    for manifest in given:
        made = with_name(context, manifest, taken)
        taken.add((made.kind, made.namespace, made.name))
        named.append(made)
    return tuple(named)
