"""Facts are for observers: who may say what of a pod, given what is stored of it.

A pod that is on a node, has run, or tells what it runs with, was observed, and nobody can refuse a fact. So
only those who may observe can state one, or change or delete what is on a node. What others write
waits for a node, and admission and quotas judge it.
"""

from service.model.manifest import PodManifest
from service.scheduler.protocol.callers import Caller

_NODE = "that the pod is on a node is a fact. To have it placed on this one, place it or bind it."
_STATUS = "that the pod has run, or what it runs with, is a fact."
_PLACED = "the pod is on a node, so what becomes of it is a fact."
_WAITING = "the pod is not on a node, so it is no fact."


def authorize_change(caller: Caller, after: PodManifest, before: PodManifest | None = None) -> None:
    """See that somebody may create a pod, or make this of the stored one.

    Raises:
        Forbidden: it takes `observe` and they may only edit, or the other way round.
    """
    namespace = after.namespace
    if caller.may("observe", namespace) and caller.may("edit", namespace):
        return  # whichever it takes: most reports come from such callers, and their status need not be read
    fact = _fact_in(after, before)
    caller.require("observe" if fact else "edit", namespace, fact or _WAITING)


def authorize_removal(caller: Caller, stored: PodManifest) -> None:
    """See that somebody may delete a pod: one on a node is gone as a fact, any other one is cancelled.

    Raises:
        Forbidden: they may not.
    """
    if stored.pod.node_name is not None:
        caller.require("observe", stored.namespace, _PLACED)
    else:
        caller.require("edit", stored.namespace, _WAITING)


def authorize_status(caller: Caller, sent: PodManifest) -> None:
    """See that somebody may have a pod placed that comes with this status.

    Raises:
        Forbidden: it says that the pod has run, and they may not observe.
    """
    if not caller.may("observe", sent.namespace) and _reported(sent) != _NOTHING:
        caller.require("observe", sent.namespace, _STATUS)


def _fact_in(after: PodManifest, before: PodManifest | None) -> str | None:
    """What of a change is a fact, if anything."""
    if before is not None and before.pod.node_name is not None:
        return _PLACED
    if after.pod.node_name is not None:
        return _NODE
    known = _NOTHING if before is None else _reported(before)
    return None if _reported(after) == known else _STATUS


_NOTHING = (None, None)


def _reported(manifest: PodManifest) -> tuple[object, object]:
    """What the status says of the pod's life, and all that scheduling reads of it."""
    if manifest.status is None:
        return _NOTHING
    phase = manifest.status_fields().get("phase")
    return None if phase in ("", "Pending") else phase, manifest.pod.resize
