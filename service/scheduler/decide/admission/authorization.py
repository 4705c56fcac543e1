"""Which parts of a pod a caller may write: facts are reserved for observers.

A pod's node, whether it has run, and its actual resources are observed facts, and an observed fact
cannot be refused. A nominated node takes room from all other pods, so only the scheduler, or a
caller that reports its decisions, may set it. Therefore only callers with the right `observe` can
state a fact, or change or delete a pod that is on a node. Pods written by other callers wait for a
node, and have to pass admission and quotas.
"""

from service.model.registry.manifests import PodManifest
from service.scheduler.protocol.callers import Caller

_NODE = "that the pod is on a node is a fact. To have it placed on this one, place it or bind it."
_STATUS = "that the pod has run, or what it runs with, is a fact."
_NOMINATION = "that room is kept for the pod on a node is a fact."
_PLACED = "the pod is on a node, so what becomes of it is a fact."
_WAITING = "the pod is not on a node, so it is no fact."


def authorize_change(caller: Caller, after: PodManifest, before: PodManifest | None = None) -> None:
    """Check that a caller may create a pod, or change the stored pod `before` to `after`.

    Raises:
        Forbidden: the change needs the right `observe` and the caller may only edit, or vice versa.
    """
    namespace = after.namespace
    if caller.may("observe", namespace) and caller.may("edit", namespace):
        # Most reports come from callers with both rights, so the pod's status need not be decoded.
        return
    fact = _fact_in(after, before)
    caller.require("observe" if fact else "edit", namespace, fact or _WAITING)


def authorize_removal(caller: Caller, stored: PodManifest) -> None:
    """Check that a caller may delete a pod.

    Deleting a pod on a node states a fact and requires `observe`; any other pod requires `edit`.

    Raises:
        Forbidden: the caller may not delete this pod.
    """
    if stored.pod.node_name is not None:
        caller.require("observe", stored.namespace, _PLACED)
    else:
        caller.require("edit", stored.namespace, _WAITING)


def authorize_status(caller: Caller, sent: PodManifest) -> None:
    """Check that a caller may place a pod sent with this status.

    Raises:
        Forbidden: the status says that the pod has run, or nominates a node, and the caller may not
            observe.
    """
    if not caller.may("observe", sent.namespace):
        if _reported(sent) != _NOTHING:
            caller.require("observe", sent.namespace, _STATUS)
        if sent.pod.nominated_node_name:
            caller.require("observe", sent.namespace, _NOMINATION)


def _fact_in(after: PodManifest, before: PodManifest | None) -> str | None:
    """Return a sentence that names the part of a change that is a fact, or None."""
    if before is not None and before.pod.node_name is not None:
        return _PLACED
    if after.pod.node_name is not None:
        return _NODE
    known = _NOTHING if before is None else _reported(before)
    if _reported(after) != known:
        return _STATUS
    nominated = after.pod.nominated_node_name
    is_told = nominated and (before is None or before.pod.nominated_node_name != nominated)
    return _NOMINATION if is_told else None


_NOTHING = (None, None)


def _reported(manifest: PodManifest) -> tuple[object, object]:
    """Return the status fields about the pod's life, and the resources with which the pod runs."""
    if manifest.status is None:
        return _NOTHING
    phase = manifest.phase
    return None if phase in ("", "Pending") else phase, manifest.pod.resize
