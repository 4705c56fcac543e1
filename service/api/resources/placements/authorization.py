"""Check whether a caller may place the pods in a body, in their namespaces."""

from service.api.http.permissions import require, require_for
from service.model.core.errors import Forbidden
from service.scheduler.protocol.callers import Caller
from service.scheduler.protocol.intents import MakePlan, PlacePods
from service.scheduler.protocol.plans import Fit, Place, PlanChange, PutPods, Replace, SetConfig


def require_placing(caller: Caller, intent: PlacePods) -> None:
    """Check that the caller may place pods in the namespaces of all pods in the request.

    If pods may be evicted for them, the caller needs the right to evict in at least one namespace
    of the cluster; pods in other namespaces are then not considered as victims.

    Raises:
        Forbidden: the caller may not place a pod in its namespace (the error names the first such
            pod), or may not evict anywhere.
    """
    if intent.preemption == "Evict":
        _require_evicting(caller)
    where = caller.principal.namespaces("place", caller.cluster)
    if where is None:
        return
    named = [ref.namespace for ref in intent.pod_refs] + [pod.namespace for pod in intent.pods]
    for index, namespace in enumerate(named):
        if namespace not in where:
            require_for(caller, ("place",), namespace, intent.place_of(index))


def _require_evicting(caller: Caller) -> None:
    who, cluster = caller.principal, caller.cluster
    if not who.may_somewhere("evict", cluster):
        raise Forbidden(
            f"preemption: {who.name} may evict in no namespace of the cluster {cluster}."
        )


def require_planning(caller: Caller, intent: MakePlan) -> None:
    """Check that the caller may place all pods that a plan adds or places, and change its settings.

    Settings keep tenants apart, so a plan with other ones would tell about the pods of others.
    Pods that the plan's changes select are checked when the plan is made.

    Raises:
        Forbidden: the caller may not place a pod in its namespace, or not change settings; the
            error names the first.
    """
    for number, change in enumerate(intent.changes):
        _require_changing(caller, change, f"changes[{number}]")
    goal = intent.goal
    if isinstance(goal, Replace):
        require_for(caller, ("place",), goal.namespace, "goal.template")
    if isinstance(goal, Fit):
        for ref in goal.pod.pod_refs:
            require_for(caller, ("place",), ref.namespace, "goal.podRef")
        for pod in goal.pod.pods:
            require_for(caller, ("place",), pod.namespace, "goal.pod")
    if not isinstance(goal, Place):
        return
    for index, ref in enumerate(goal.pod_refs):
        require_for(caller, ("place",), ref.namespace, f"goal.podRefs[{index}]")
    for index, pod in enumerate(goal.pods):
        place = "goal.template" if goal.path == "template" else f"goal.pods[{index}]"
        require_for(caller, ("place",), pod.namespace, place)


def _require_changing(caller: Caller, change: PlanChange, path: str) -> None:
    if isinstance(change, SetConfig):
        require_for(caller, ("configure",), None, f"{path}.op")
    if isinstance(change, PutPods):
        for index, pod in enumerate(change.pods):
            require_for(caller, ("place",), pod.namespace, f"{path}.pods[{index}]")


def require_force(caller: Caller, namespace: str) -> None:
    """Check that the caller may bind a pod regardless of filters, which counts as reporting a fact.

    Raises:
        Forbidden: the caller may not report facts in the pod's namespace.
    """
    require(caller.principal, "observe", caller.cluster, namespace)
