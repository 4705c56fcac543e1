"""Check for each object in a body whether the caller may write it, if the path has no namespace.

These checks need only the body. Checks that also depend on stored objects (such as whether a pod is
on a node) are made when the request is decided: see
`service.scheduler.decide.admission.authorization`.
"""

from collections.abc import Iterable, Mapping

from service.api.http.permissions import require_any, require_for
from service.api.resources.objects.operations import Resource
from service.api.resources.objects.registry import RESOURCES
from service.model.core.access import Verb
from service.model.core.errors import Forbidden
from service.model.registry.manifests import Applicable, PriorityClassManifest
from service.scheduler.protocol.callers import Caller
from service.scheduler.protocol.intents import Deletion, StatusReport

_CHANGED_BY: Mapping[str, tuple[Verb, ...]] = {
    PriorityClassManifest.kind: ("configure",),
    **{
        resource.kind: (resource.changed_by,)
        if resource.stated_by is None
        else (resource.changed_by, resource.stated_by)
        for resource in RESOURCES
    },
}
"""Maps each kind to the verbs that allow changing its objects; a caller needs at least one."""


def require_writing(caller: Caller, objects: Iterable[Applicable]) -> None:
    """Check that the caller may write all these objects in their namespaces.

    Raises:
        Forbidden: the caller may not write at least one object; the error names the first.
    """
    for index, item in enumerate(objects):
        require_for(caller, _CHANGED_BY[item.kind], item.namespace or None, f"items[{index}]")


def require_pruning(caller: Caller, kinds: Iterable[str]) -> None:
    """Check that the caller may write all objects of some kinds in every namespace.

    Raises:
        Forbidden: the caller may not write at least one kind everywhere; the error names the first.
    """
    for kind in sorted(kinds):
        require_for(caller, _CHANGED_BY[kind], None, f"prune={kind}")


def refusal(caller: Caller, item: Applicable | Deletion | StatusReport) -> Forbidden | None:
    """Return an error if the caller may not write, delete, or report on an object, or None."""
    try:
        require_any(
            caller.principal, _CHANGED_BY[item.kind], caller.cluster, item.namespace or None
        )
    except Forbidden as forbidden:
        return forbidden
    return None


def deletable_in(caller: Caller, resource: Resource) -> frozenset[str] | None:
    """Return the namespaces where the caller may delete objects, or None for all.

    Stored objects may still forbid a deletion there.
    """
    verbs = _CHANGED_BY[resource.kind]
    names = [caller.principal.namespaces(verb, caller.cluster) for verb in verbs]
    if None in names:
        return None
    return frozenset().union(*(namespaces for namespaces in names if namespaces is not None))
