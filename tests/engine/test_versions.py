"""What a new Kubernetes version takes: one entry that says what its kube-scheduler decides differently."""

from typing import Any

import pytest
from msgspec.structs import replace

from service.engine import Placement, place
from service.model.cluster.cluster_config import parse_config, stored_config
from service.model.cluster.versions.known import VERSIONS
from service.model.core.errors import ObjectUnreadable
from tests.builders import node, pod
from tests.engine import objects

NEXT = "1.38"


def chosen(version: str) -> str:
    """The node that a cluster of this version prefers by balance alone."""
    nodes = [node(name).allocatable(cpu="4", memory="8Gi", pods="9") for name in ("a", "b")]
    used = {"a": {"cpu": "1800m", "memory": "4Gi"}, "b": {"cpu": "1", "memory": "6Gi"}}
    pods = [pod(f"on-{name}").request(**amounts).on(name) for name, amounts in used.items()]
    made = objects.cluster({"kubernetes": version}, [], nodes, pods)
    asking = pod("fresh").request(cpu="1", memory="1Mi")
    placement = place(made, objects.pod(asking, incoming=True))
    assert isinstance(placement, Placement)
    return placement.node_name


def test_a_version_is_one_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    newest = VERSIONS["1.37"]
    made_up = replace(newest, name=NEXT, patch="1.38.0", scores_balance_gain=False)
    monkeypatch.setitem(VERSIONS, NEXT, made_up)
    assert parse_config({"kubernetes": NEXT}).scheduler_version is made_up
    assert (chosen("1.35"), chosen("1.37"), chosen(NEXT)) == ("a", "b", "a")


def test_a_stored_configuration_without_a_version_is_older_than_the_setting() -> None:
    assert stored_config(b"{}").kubernetes == "1.35"
    assert stored_config(b'{"kubernetes": "1.36"}').kubernetes == "1.36"


def test_a_stored_configuration_that_is_older_keeps_the_documented_rules() -> None:
    assert stored_config(b"{}").kubernetes_rules == "Documented"
    assert stored_config(b'{"kubernetesRules": "Implemented"}').follows_code
    assert parse_config({}).follows_code


def test_what_a_resized_pod_uses_is_counted_anew_with_another_version() -> None:
    def requests(cpu: str) -> dict[str, Any]:
        return {"requests": {"cpu": cpu}}

    growing = {"name": "c", "resources": requests("1"), "allocatedResources": {"cpu": "1"}}
    shrinking = {"name": "d", "resources": requests("3"), "allocatedResources": {"cpu": "3"}}
    resized = {
        "metadata": {"name": "resized", "namespace": "default"},
        "spec": {
            "nodeName": "n1",
            "containers": [
                {"name": "c", "resources": requests("3")},
                {"name": "d", "resources": requests("1")},
            ],
        },
        "status": {"containerStatuses": [growing, shrinking]},
    }
    made = objects.cluster({"kubernetes": "1.36"}, [], [node("n1").allocatable(cpu="9")], [resized])
    mark, counted = made.mark(), [made.nodes.requested_at("cpu", 0)]
    made.configure(replace(made.config, kubernetes="1.37"))
    counted.append(made.nodes.requested_at("cpu", 0))
    made.undo(mark)
    counted.append(made.nodes.requested_at("cpu", 0))
    assert counted == [6_000, 4_000, 6_000]


def test_a_stored_version_that_is_not_known_makes_the_configuration_unreadable() -> None:
    with pytest.raises(ObjectUnreadable):
        stored_config(b'{"kubernetes": "1.38"}')
