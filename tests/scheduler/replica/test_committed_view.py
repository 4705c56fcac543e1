"""Groups of committed objects, made a few at a time while the replica goes on."""

import msgspec
import pytest

from service.model.registry.manifests import TemplateCache, parse_any
from service.model.selection.object_filters import ObjectFilter
from service.scheduler.replica.committed_view import CommittedObjects
from service.scheduler.replica.replica import Replica
from tests.builders import node, pod
from tests.seeds import chance

TEMPLATES = TemplateCache()
EVERYTHING = ObjectFilter()


def manifest(kind, made):
    return parse_any(msgspec.json.encode({"kind": kind} | made), TEMPLATES)


def one_of_many(source):
    made = pod(f"p{source.randrange(90)}", source.choice(("shop", "bank")))
    made = made.label(app=source.choice(("web", "db")))
    return manifest("Pod", made.on(source.choice(("n1", "n2"))) if source.random() < 0.7 else made)


def change(replica, source):
    """Put a pod, or remove one that is there."""
    sent = one_of_many(source)
    if source.random() < 0.3 and replica.get("Pod", sent.namespace, sent.name):
        replica.delete("Pod", sent.namespace, sent.name)
    else:
        replica.put(sent)


def kept(committed):
    found = committed.candidates("Pod", EVERYTHING, None)
    return {(each.manifest.namespace, each.manifest.name): each.revision for each in found}


def watched(replica):
    committed = CommittedObjects()
    replica.on_committed = committed.on_committed
    committed.on_loaded(replica)
    return committed


async def fresh(replica):
    """The pods that are there in groups made of the same replica now."""
    committed = CommittedObjects()
    committed.on_loaded(replica)
    await committed.group(replica)
    return kept(committed)


@pytest.mark.parametrize("seed", range(12))
async def test_what_changes_while_groups_are_made_is_in_them(seed: int) -> None:
    source = chance(seed)
    replica = Replica(TEMPLATES)
    for name in ("n1", "n2"):
        replica.put(manifest("Node", node(name)))
    for _ in range(120):
        change(replica, source)
    replica.settle_all()
    change(replica, source)
    committed = watched(replica)
    steps = committed.group(replica).__await__()
    for _ in range(source.randrange(3)):
        next(steps)
        mark = replica.mark()
        for _ in range(source.randrange(6)):
            change(replica, source)
        if source.random() < 0.3:
            replica.undo(mark)
        elif source.random() < 0.6:
            replica.settle_all()
    for _ in steps:
        pass
    assert kept(committed) == await fresh(replica)
    change(replica, source)
    assert kept(committed) == await fresh(replica)
    replica.settle_all()
    assert kept(committed) == await fresh(replica)


async def test_groups_of_a_replica_that_was_given_up_are_not_kept() -> None:
    replica = Replica(TEMPLATES)
    for number in range(100):
        replica.put(manifest("Pod", pod(f"p{number}")))
    replica.settle_all()
    committed = watched(replica)
    steps = committed.group(replica).__await__()
    next(steps)
    committed.drop()
    assert list(steps) == []
    assert not committed.are_grouped
