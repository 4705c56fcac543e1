"""Bodies that name objects are checked object by object, where the path names no namespace.

What this takes can be told from the body alone. What also depends on what is stored (whether a pod is
on a node already) is told when the request is decided: see `service.scheduler.decide.audit_facts`.
"""

from collections.abc import Iterable, Mapping

from service.api.bodies.requests import AnyRequest
from service.api.openapi.access import caller_of, require, require_any
from service.api.openapi.resources import RESOURCES
from service.model.errors import Forbidden
from service.model.manifest import Applicable, PriorityClassManifest
from service.model.principals import Verb
from service.scheduler.protocol.callers import Caller
from service.scheduler.protocol.intents import PlacePods

_CHANGED_BY: Mapping[str, tuple[Verb, ...]] = {
    PriorityClassManifest.kind: ("configure",),
    **{
        each.kind: (each.changed_by,)
        if each.stated_by is None
        else (each.changed_by, each.stated_by)
        for each in RESOURCES
    },
}
"""What one has to be allowed, any of these, in order to change objects of a kind."""


def deciding_for(request: AnyRequest) -> Caller:
    """Who a request is decided for."""
    return Caller(caller_of(request.scope), request.path_params["cluster"])


def require_placing(caller: Caller, intent: PlacePods) -> None:
    """See that somebody may place pods in the namespace of each that they name.

    Raises:
        Forbidden: naming the first that is in another.
    """
    where = caller.principal.namespaces("place", caller.cluster)
    if where is None:
        return
    named = [ref.namespace for ref in intent.pod_refs] + [pod.namespace for pod in intent.pods]
    for index, namespace in enumerate(named):
        if namespace not in where:
            _require(caller, ("place",), namespace, intent.place_of(index))


def require_writing(caller: Caller, objects: Iterable[Applicable]) -> None:
    """See that somebody may write objects of such kinds in their namespaces.

    Raises:
        Forbidden: naming the first that they may not write.
    """
    for index, each in enumerate(objects):
        _require(caller, _CHANGED_BY[each.kind], each.namespace or None, f"items[{index}]")


def require_pruning(caller: Caller, kinds: Iterable[str]) -> None:
    """See that somebody may write all objects of some kinds, wherever they are.

    Raises:
        Forbidden: naming a kind.
    """
    for kind in sorted(kinds):
        _require(caller, _CHANGED_BY[kind], None, f"prune={kind}")


def refusal(caller: Caller, each: Applicable) -> Forbidden | None:
    """Why somebody may not write an object, if so."""
    try:
        require_any(
            caller.principal, _CHANGED_BY[each.kind], caller.cluster, each.namespace or None
        )
    except Forbidden as forbidden:
        return forbidden
    return None


def require_force(caller: Caller, namespace: str) -> None:
    """See that somebody may bind a pod whatever the filters say: that it is there is then a fact.

    Raises:
        Forbidden: they may not state facts in its namespace.
    """
    require(caller.principal, "observe", caller.cluster, namespace)


def _require(caller: Caller, verbs: tuple[Verb, ...], namespace: str | None, place: str) -> None:
    try:
        require_any(caller.principal, verbs, caller.cluster, namespace)
    except Forbidden as forbidden:
        raise forbidden.under(place) from None
