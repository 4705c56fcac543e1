"""Checks bodies that name objects object by object, if the path names no namespace.

These checks need the body alone. Checks that also depend on stored objects (whether a pod is on a
node already) are made when the request is decided: see `service.scheduler.decide.admission.authorization`.
"""

from collections.abc import Iterable, Mapping

from service.api.openapi.resources import RESOURCES
from service.api.openapi.rights_each_operation_needs import require, require_any
from service.model.core.access import Verb
from service.model.core.errors import Forbidden
from service.model.registry.manifests import Applicable, PriorityClassManifest
from service.scheduler.protocol.callers import Caller
from service.scheduler.protocol.intents import Deletion, MakePlan, PlacePods, StatusReport
from service.scheduler.protocol.plans import Fit, Place, PutPods, Replace

_CHANGED_BY: Mapping[str, tuple[Verb, ...]] = {
    PriorityClassManifest.kind: ("configure",),
    **{
        each.kind: (each.changed_by,)
        if each.stated_by is None
        else (each.changed_by, each.stated_by)
        for each in RESOURCES
    },
}
"""By kind, the verbs of which a caller needs at least one to change objects of this kind."""


def require_placing(caller: Caller, intent: PlacePods) -> None:
    """Check that the caller may place pods in the namespaces of all pods that the request names.

    If others are to be evicted for them, it has to have that right anywhere on the cluster; pods in
    other namespaces are then no victims.

    Raises:
        Forbidden: it may not in some namespace; the first such pod is named. Or it may evict nobody.
    """
    if intent.preemption == "Evict":
        _require_evicting(caller)
    where = caller.principal.namespaces("place", caller.cluster)
    if where is None:
        return
    named = [ref.namespace for ref in intent.pod_refs] + [pod.namespace for pod in intent.pods]
    for index, namespace in enumerate(named):
        if namespace not in where:
            _require(caller, ("place",), namespace, intent.place_of(index))


def _require_evicting(caller: Caller) -> None:
    who, cluster = caller.principal, caller.cluster
    if not who.may_somewhere("evict", cluster):
        raise Forbidden(
            f"preemption: {who.name} may evict in no namespace of the cluster {cluster}."
        )


def require_planning(caller: Caller, intent: MakePlan) -> None:
    """Check that the caller may place pods in the namespaces of all pods that a plan brings or places.

    Whom the plan's changes select is checked when it is made.

    Raises:
        Forbidden: it may not in some namespace; the first such pod is named.
    """
    for number, change in enumerate(intent.changes):
        for index, pod in enumerate(change.pods if isinstance(change, PutPods) else ()):
            _require(caller, ("place",), pod.namespace, f"changes[{number}].pods[{index}]")
    goal = intent.goal
    if isinstance(goal, Replace):
        _require(caller, ("place",), goal.namespace, "goal.template")
    if isinstance(goal, Fit):
        for ref in goal.pod.pod_refs:
            _require(caller, ("place",), ref.namespace, "goal.podRef")
        for pod in goal.pod.pods:
            _require(caller, ("place",), pod.namespace, "goal.pod")
    if not isinstance(goal, Place):
        return
    for index, ref in enumerate(goal.pod_refs):
        _require(caller, ("place",), ref.namespace, f"goal.podRefs[{index}]")
    for index, pod in enumerate(goal.pods):
        place = "goal.template" if goal.path == "template" else f"goal.pods[{index}]"
        _require(caller, ("place",), pod.namespace, place)


def require_writing(caller: Caller, objects: Iterable[Applicable]) -> None:
    """Check that the caller may write all these objects in their namespaces.

    Raises:
        Forbidden: it may not write some object; the first one is named.
    """
    for index, each in enumerate(objects):
        _require(caller, _CHANGED_BY[each.kind], each.namespace or None, f"items[{index}]")


def require_pruning(caller: Caller, kinds: Iterable[str]) -> None:
    """Check that the caller may write all objects of some kinds, wherever they are.

    Raises:
        Forbidden: it may not write some kind everywhere; the first one is named.
    """
    for kind in sorted(kinds):
        _require(caller, _CHANGED_BY[kind], None, f"prune={kind}")


def refusal(caller: Caller, each: Applicable | Deletion | StatusReport) -> Forbidden | None:
    """The error if the caller may not write or delete an object, or report on it, else None."""
    try:
        require_any(
            caller.principal, _CHANGED_BY[each.kind], caller.cluster, each.namespace or None
        )
    except Forbidden as forbidden:
        return forbidden
    return None


def deletable_in(caller: Caller, kind: str) -> frozenset[str] | None:
    """The namespaces where the caller may delete objects of a kind, if nothing stored forbids it; None: everywhere."""
    names = [caller.principal.namespaces(verb, caller.cluster) for verb in _CHANGED_BY[kind]]
    if None in names:
        return None
    return frozenset().union(*(each for each in names if each is not None))


def require_force(caller: Caller, namespace: str) -> None:
    """Check that the caller may bind a pod whatever the filters say, which states a fact.

    Raises:
        Forbidden: it may not state facts in the pod's namespace.
    """
    require(caller.principal, "observe", caller.cluster, namespace)


def _require(caller: Caller, verbs: tuple[Verb, ...], namespace: str | None, place: str) -> None:
    try:
        require_any(caller.principal, verbs, caller.cluster, namespace)
    except Forbidden as forbidden:
        raise forbidden.under(place) from None
