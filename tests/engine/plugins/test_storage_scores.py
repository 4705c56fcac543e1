"""From Kubernetes 1.37 on, VolumeBinding scores nodes by the storage that a pod's claims take there.

Expectations are those of the unit tests of kube-scheduler's plugin, or follow from its code by hand.
"""

from typing import Any

import pytest

from service.engine import explain, place
from service.model.cluster.cluster_config import parse_config
from service.model.core.errors import InvalidManifest
from tests.builders import claim, node, pod, storage_class, volume
from tests.engine import objects
from tests.engine.plugins.storage import capacity, driver
from tests.reference import evaluate

NODES = ("n1", "n2", "n3")
FAST = storage_class("fast", "csi.example.com")
Objects = list[dict[str, Any]]


def scores(
    kept: Objects, *claims: str, version: str = "1.37", **config: Any
) -> dict[str, int] | None:
    """The scores of VolumeBinding for a pod with claims, on which engine and reference agree."""
    settings = {"kubernetes": version, **config}
    nodes = [node(name).label({"kubernetes.io/hostname": name}) for name in NODES]
    asking = pod("db")
    for name in claims:
        asking = asking.claim(name)
    cluster = objects.cluster(settings, [], nodes, [], kept)
    incoming = objects.pod(asking, incoming=True)
    answer = explain(cluster, incoming)
    placed = place(cluster, incoming)
    assert placed.node_name in answer.best
    assert placed.score == answer.total[placed.node_name]
    if not config:
        expected = evaluate(settings, [], nodes, [], asking, kept)
        assert (answer.scores, answer.total) == (expected["scores"], expected["total"])
        assert answer.score_skipped == expected["scoreSkipped"]
    return answer.scores.get("VolumeBinding")


def made_of(**rooms: str) -> Objects:
    """What there is for claims of the class "fast": the room on each node."""
    own = [capacity(name, room, node=name) for name, room in rooms.items()]
    return [FAST, driver("csi.example.com", storageCapacity=True), *own]


ROOMS = {"n1": "100Gi", "n2": "20Gi", "n3": "10Gi"}
DATA = claim("data", "10Gi", storageClassName="fast")


def test_nodes_with_most_free_storage_come_first():
    assert scores([*made_of(**ROOMS), DATA], "data") == {"n1": 90, "n2": 50, "n3": 0}


@pytest.mark.parametrize("version", ["1.35", "1.36"])
def test_older_versions_do_not_score_storage(version):
    assert scores([*made_of(**ROOMS), DATA], "data", version=version) is None


def test_claims_of_one_class_are_made_of_one_capacity():
    logs = claim("logs", "5Gi", storageClassName="fast")
    kept = [*made_of(n1="100Gi", n2="30Gi"), DATA, logs]
    assert scores(kept, "data", "logs") == {"n1": 85, "n2": 50}


def test_the_score_is_the_average_over_classes_rounded_half_up():
    slow = storage_class("slow", "csi.example.com")
    rooms = [capacity(f"slow-{name}", "100Gi", "slow", node=name) for name in NODES]
    logs = claim("logs", "25Gi", storageClassName="slow")
    kept = [*made_of(**ROOMS), slow, *rooms, DATA, logs]
    assert scores(kept, "data", "logs") == {"n1": 83, "n2": 63, "n3": 38}


def test_claims_together_may_ask_for_more_than_there_is():
    logs = claim("logs", "15Gi", storageClassName="fast")
    kept = [*made_of(n1="20Gi", n2="100Gi"), DATA, logs]
    assert scores(kept, "data", "logs") == {"n1": 0, "n2": 75}


def test_where_any_volume_is_there_only_volumes_that_are_there_count():
    disks = [volume("d1", "40Gi", node="n1"), volume("d2", "10Gi", node="n2")]
    bound = claim("bound", "10Gi")
    kept = [*made_of(n1="20Gi", n2="100Gi"), storage_class(), *disks, DATA, bound]
    assert scores(kept, "data", "bound") == {"n1": 75, "n2": 0}


def test_volumes_of_one_class_count_together():
    disks = [
        *(volume(f"a-{name}", "10Gi", node=name) for name in ("n1", "n2")),
        volume("b-n1", "30Gi", node="n1"),
        volume("b-n2", "40Gi", node="n2"),
    ]
    one, other = claim("one", "10Gi"), claim("other", "20Gi")
    kept = [storage_class(), *disks, one, other]
    assert scores(kept, "one", "other") == {"n1": 25, "n2": 40}


def test_the_first_capacity_by_name_counts_of_several_that_suffice():
    wide = capacity("all", "1000Gi", nodeTopology={})
    small = capacity("aaa", "5Gi", nodeTopology={})
    assert scores([*made_of(n1="20Gi"), wide, small, DATA], "data") == dict.fromkeys(NODES, 99)


def test_a_largest_volume_size_bounds_claims_and_is_no_capacity():
    bounded = capacity("all", "100Gi", nodeTopology={}, maximumVolumeSize="20Gi")
    kept = [FAST, driver("csi.example.com", storageCapacity=True), bounded, DATA]
    assert scores(kept, "data") == dict.fromkeys(NODES, 90)


@pytest.mark.parametrize("kept", [[], [driver("csi.example.com", storageCapacity=False)]])
def test_a_driver_that_reports_no_capacity_gives_no_score(kept):
    rooms = [capacity(name, room, node=name) for name, room in ROOMS.items()]
    assert scores([FAST, *kept, *rooms, DATA], "data") is None


def test_bound_claims_give_no_score():
    bound = claim("data", storageClassName="fast", volumeName="disk")
    bound["metadata"]["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
    assert scores([*made_of(**ROOMS), volume("disk"), bound], "data") is None


def test_a_pod_without_claims_has_no_score():
    assert scores(made_of(**ROOMS)) is None


def profile(**args: Any) -> dict[str, Any]:
    plugins = [{"name": "VolumeBinding", "args": args}]
    return {"profiles": [{"schedulerName": "default-scheduler", "pluginConfig": plugins}]}


def test_a_shape_may_prefer_the_fullest_node():
    shape = [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]
    given = scores([*made_of(**ROOMS), DATA], "data", **profile(shape=shape))
    assert given == {"n1": 10, "n2": 50, "n3": 100}


def test_a_profile_may_weigh_the_score_or_switch_it_off():
    kept = [*made_of(**ROOMS), DATA]
    off = {"score": {"disabled": [{"name": "VolumeBinding"}]}}
    without = {"profiles": [{"schedulerName": "default-scheduler", "plugins": off}]}
    assert scores(kept, "data", **without) is None


@pytest.mark.parametrize("version", ["1.35", "1.36"])
def test_a_shape_needs_a_version_that_reads_it(version):
    shape = [{"utilization": 0, "score": 0}]
    with pytest.raises(InvalidManifest) as refused:
        parse_config({"kubernetes": version, **profile(shape=shape)})
    (error,) = refused.value.errors
    assert error.field == "profiles[0].pluginConfig[0].args.shape"
    assert error.message == "needs the setting kubernetes to be 1.37 or newer"
    assert parse_config({"kubernetes": version, **profile()})


def test_the_points_of_a_shape_are_checked():
    falling = [{"utilization": 50, "score": 0}, {"utilization": 50, "score": 11}]
    with pytest.raises(InvalidManifest) as refused:
        parse_config({"kubernetes": "1.37", **profile(shape=falling)})
    where = "profiles[0].pluginConfig[0].args.shape[1]"
    fields = {error.field for error in refused.value.errors}
    assert fields == {f"{where}.score", f"{where}.utilization"}
