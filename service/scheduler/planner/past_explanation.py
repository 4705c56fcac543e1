"""Explains a pod on an earlier state of its cluster, and restores the replica afterwards."""

from collections.abc import Iterable
from typing import NamedTuple

from service.model.core.primitives import CLUSTER_KIND
from service.model.log.commit import ObjectRow
from service.model.log.history import PastState
from service.scheduler.decide.context import Steps
from service.scheduler.decide.reading.explanations import explain_pod
from service.scheduler.plans.fork import Fork
from service.scheduler.protocol.intents import ExplainPod
from service.scheduler.protocol.placements import ExplanationAnswer
from service.scheduler.replica.stored_kinds import ConfigManifest, read_row


class PastObject(NamedTuple):
    """An object that has changed since the revision; `row` is None if it did not exist then."""

    state: PastState
    row: ObjectRow | None


def go_back(fork: Fork, then: Iterable[PastObject]) -> Steps[None]:
    """Restore objects to their earlier state, or delete them, step by step."""
    for past in then:
        kind, namespace, name, _ = past.state
        if past.row is not None:
            manifest = read_row(past.row, fork.context.templates)
            if kind == CLUSTER_KIND and isinstance(manifest, ConfigManifest):
                yield from fork.configure(manifest)
            else:
                fork.put(manifest)
        elif fork.replica.get(kind, namespace, name) is not None:
            fork.replica.delete(kind, namespace, name)
        yield from fork.pause()


def explain_then(fork: Fork, pod: ObjectRow | None, intent: ExplainPod) -> Steps[ExplanationAnswer]:
    """Explain an earlier version of a pod on the fork, which `go_back` has restored."""
    if pod is not None:
        fork.put(read_row(pod, fork.context.templates))
    yield from fork.pause()
    return explain_pod(fork.context, intent)
