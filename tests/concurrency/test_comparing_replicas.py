"""A13: the checker tells a replica that counts or decides otherwise than the tables would have it."""

import uuid

import msgspec
import pytest

from service.engine import place
from tests.builders import matching, node, pod
from tests.concurrency.checker.history import History, ReplicaState
from tests.concurrency.checker.reading import check_replicas
from tests.concurrency.replicas import Asked, differing, loaded

PODS = [
    pod(f"p{number}").label(app="web").prefer_affinity(5, "zone", matching(app="web")).on("n1")
    for number in range(2)
]
OBJECTS = [
    *(("Node", node(f"n{number}").label(zone=f"z{number}")) for number in range(3)),
    *(("Pod", each) for each in PODS),
]
ROWS = {
    (kind, each["metadata"].get("namespace", ""), each["metadata"]["name"]): (
        revision,
        msgspec.json.encode({"kind": kind, **each}),
    )
    for revision, (kind, each) in enumerate(OBJECTS, 1)
}
HEAD = len(OBJECTS)


def history_of(replica):
    state = ReplicaState(worker="w", revision=HEAD, digest=replica.digest(), probes=None)
    head = (HEAD, uuid.UUID(int=1))
    return History(head=head, rows=ROWS, replicas=[state], loaded=loaded(ROWS, HEAD).digest())


def test_a_replica_that_is_the_tables_is_fine():
    assert check_replicas(history_of(loaded(ROWS, HEAD)), None) == []


def test_a_replica_with_a_wrong_counter_is_told():
    replica = loaded(ROWS, HEAD)
    replica.cluster.nodes.requested("cpu")[0] += 1
    (found,) = check_replicas(history_of(replica), None)
    assert str(found) == "A13: w counts otherwise than a replica that is loaded anew"


def test_a_replica_without_an_object_is_told_by_its_keys():
    replica = loaded(ROWS, HEAD)
    replica.delete("Pod", "default", "p1")
    assert "the tables at" in str(check_replicas(history_of(replica), None)[0])


@pytest.mark.parametrize("wrong", [{"node_name": "n2"}, {"score": 0}, {"node_name": None}])
def test_an_answer_that_the_tables_do_not_give_is_told(wrong):
    fresh = loaded(ROWS, HEAD)
    probe = PODS[0].named("probe")
    del probe["spec"]["nodeName"]
    chosen = place(fresh.cluster, fresh.pod("default", "p0").pod)
    right = Asked("w", probe, chosen.node_name, chosen.score)
    assert differing(fresh, [right]) == []
    assert len(differing(fresh, [right, right._replace(**wrong)])) == 1
