"""Check object by object whether a caller may write what a body names, if its path names no namespace.

These checks need the body alone. Checks that also depend on stored objects (whether a pod is on a
node already) are made when the request is decided: see `service.scheduler.decide.admission.authorization`.
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
"""By kind, the verbs of which a caller needs at least one to change objects of the kind."""


def require_writing(caller: Caller, objects: Iterable[Applicable]) -> None:
    """Check that the caller may write all these objects in their namespaces.

    Raises:
        Forbidden: it may not write some object; the first one is named.
    """
    for index, item in enumerate(objects):
        require_for(caller, _CHANGED_BY[item.kind], item.namespace or None, f"items[{index}]")


def require_pruning(caller: Caller, kinds: Iterable[str]) -> None:
    """Check that the caller may write all objects of some kinds in every namespace.

    Raises:
        Forbidden: it may not write some kind everywhere; the first one is named.
    """
    for kind in sorted(kinds):
        require_for(caller, _CHANGED_BY[kind], None, f"prune={kind}")


def refusal(caller: Caller, item: Applicable | Deletion | StatusReport) -> Forbidden | None:
    """Return the error if the caller may not write, delete, or report on an object, or None."""
    try:
        require_any(
            caller.principal, _CHANGED_BY[item.kind], caller.cluster, item.namespace or None
        )
    except Forbidden as forbidden:
        return forbidden
    return None


def deletable_in(caller: Caller, resource: Resource) -> frozenset[str] | None:
    """Return the namespaces where the caller may delete objects if nothing stored forbids it, or None for all."""
    verbs = _CHANGED_BY[resource.kind]
    names = [caller.principal.namespaces(verb, caller.cluster) for verb in verbs]
    if None in names:
        return None
    return frozenset().union(*(namespaces for namespaces in names if namespaces is not None))
