"""Explains a pod on what its cluster was at an earlier revision; the replica is afterwards as it was."""

from collections.abc import Iterable
from typing import NamedTuple

from service.model.core.primitives import CLUSTER_KIND
from service.model.log.commit_log import ObjectRow
from service.model.log.past_revision_types import PastState
from service.scheduler.decide.context import Steps
from service.scheduler.decide.reading.explanations import explain_pod
from service.scheduler.plans.fork import Fork
from service.scheduler.protocol.intents import ExplainPod
from service.scheduler.protocol.placements import ExplanationAnswer
from service.scheduler.replica.stored_kinds import ConfigManifest, read_row


class PastObject(NamedTuple):
    """An object that has changed since; its row is None if it was not there."""

    state: PastState
    row: ObjectRow | None


def go_back(fork: Fork, then: Iterable[PastObject]) -> Steps[None]:
    """Put objects back to what they were, or delete them, step by step."""
    for each in then:
        kind, namespace, name, _ = each.state
        if each.row is not None:
            manifest = read_row(each.row, fork.context.templates)
            if kind == CLUSTER_KIND and isinstance(manifest, ConfigManifest):
                yield from fork.configure(manifest)
            else:
                fork.put(manifest)
        elif fork.replica.get(kind, namespace, name) is not None:
            fork.replica.delete(kind, namespace, name)
        yield from fork.pause()


def explain_then(fork: Fork, pod: ObjectRow | None, intent: ExplainPod) -> Steps[ExplanationAnswer]:
    """Explain a pod, as it was, on the fork as it is now."""
    if pod is not None:
        fork.put(read_row(pod, fork.context.templates))
    yield from fork.pause()
    return explain_pod(fork.context, intent)
