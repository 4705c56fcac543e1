"""Names for new objects that have only a `generateName`."""

from collections.abc import Iterable
from typing import TypeVar, cast

from service.model.errors import Conflict
from service.model.manifests.generated_names import is_undrawn, prefix_of
from service.model.manifests.manifest import Applicable, ObjectManifest
from service.scheduler.decide.context import DecisionContext

DRAWS_MAX = 100
"""How often a name is drawn that is taken: less than half of all names are while this suffices."""

M = TypeVar("M", bound=Applicable)
Key = tuple[str, str, str]


def with_name(context: DecisionContext, manifest: M, taken: Iterable[Key] = ()) -> M:
    """Return a manifest with a name that nobody has, if its name is still to be drawn.

    Args:
        context: what the decision looks at.
        manifest: one whose name is known already stays as it is.
        taken: the kinds, namespaces and names that are taken as well, beside what is stored.

    Raises:
        Conflict: so many names are taken that none was found.
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
    """Return manifests with names that neither what is stored has, nor one of the others."""
    given = tuple(manifests)
    taken = {(each.kind, each.namespace, each.name) for each in given}
    named = []
    for each in given:
        made = with_name(context, each, taken)
        taken.add((made.kind, made.namespace, made.name))
        named.append(made)
    return tuple(named)
