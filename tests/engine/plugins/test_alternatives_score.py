"""Nodes that can give a pod its preferred alternatives of devices score higher."""

from typing import Any

import pytest

from service.engine import Cluster, Placement, explain, place
from tests.builders import (
    GPU,
    Manifest,
    claim_template,
    device,
    device_claim,
    device_class,
    node,
    pod,
    resource_slice,
)
from tests.engine import objects

NAME = "DynamicResources"
NODES = ("n1", "n2", "n3")
ONE = {"name": "gpu", "exactly": {"deviceClassName": GPU}}


def choice(*counts: int, name: str = "gpu") -> Manifest:
    """A request for so many devices, or else for the next number of them."""
    return {
        "name": name,
        "firstAvailable": [
            {"name": f"take-{count}", "deviceClassName": GPU, "count": count} for count in counts
        ],
    }


def cluster(*made: Manifest, config: Manifest | None = None, **devices: int) -> Cluster:
    """Nodes with so many devices, and other objects."""
    slices = [
        resource_slice(name, *(device(f"gpu-{number}") for number in range(count)))
        for name, count in devices.items()
    ]
    nodes = [node(name) for name in NODES]
    return objects.cluster(config or {}, [], nodes, [], [device_class(), *slices, *made])


def asking(*claims: str, **fields: Any) -> Any:
    made = pod("p")
    for claim in claims:
        made = made.devices(claim, name=claim)
    return objects.pod(made, incoming=True)


def scores(built: Cluster, *claims: str) -> dict[str, int] | None:
    return explain(built, asking(*claims)).scores.get(NAME)


def given(name: str, request: str, *requests: Manifest) -> Manifest:
    """A claim that has the first device of n1 already, for this request of it."""
    result = {"request": request, "driver": GPU, "pool": "n1", "device": "gpu-0"}
    status = {"allocation": {"devices": {"results": [result]}}}
    return device_claim(name, *requests) | {"status": status}


def test_the_first_alternative_counts_8_and_each_later_one_less():
    built = cluster(device_claim("c", choice(3, 2, 1)), n1=3, n2=2, n3=1)
    assert scores(built, "c") == {"n1": 100, "n2": 100 * 7 // 8, "n3": 100 * 6 // 8}


def test_scores_are_relative_to_the_best_feasible_node():
    claim = device_claim("c", choice(3, 2, 1))
    assert scores(cluster(claim, n1=2, n2=1), "c") == {"n1": 100, "n2": 100 * 6 // 7}
    built = cluster(claim, n1=3, n2=2)
    built.put_node(objects.node(node("n1").cordon()))
    assert scores(built, "c") == {"n2": 100}


def test_requests_and_claims_add_up():
    made = [
        device_claim("c", choice(2, 1), choice(2, 1, name="more")),
        device_claim("d", choice(3, 2, 1)),
    ]
    built = cluster(*made, n1=7, n2=4, n3=3)
    assert scores(built, "c", "d") == {
        "n1": 100,
        "n2": 100 * (8 + 7 + 6) // 24,
        "n3": 100 * (7 + 7 + 6) // 24,
    }


def test_a_request_without_alternatives_counts_nothing():
    built = cluster(device_claim("c", choice(2, 1), ONE | {"name": "other"}), n1=3, n2=2)
    assert scores(built, "c") == {"n1": 100, "n2": 100 * 7 // 8}


def test_a_template_is_scored_as_a_claim():
    built = cluster(claim_template("t", choice(2, 1)), n1=2, n2=1)
    asked = objects.pod(pod("p").devices(template="t"), incoming=True)
    assert explain(built, asked).scores[NAME] == {"n1": 100, "n2": 100 * 7 // 8}


@pytest.mark.parametrize("claims", [(), ("plain",), ("given",), ("given-any",)])
def test_pods_without_a_choice_have_no_such_score(claims):
    """Where Kubernetes would add 0 to each node, no score and no skipped plugin are listed."""
    made = [device_claim("plain", ONE), given("given", "gpu/take-1", choice(2, 1))]
    built = cluster(*made, given("given-any", "gpu", ONE), n1=2, n2=2)
    explanation = explain(built, asking(*claims))
    assert explanation.feasible
    assert NAME not in explanation.scores
    assert NAME not in explanation.score_skipped


def test_a_claim_with_devices_counts_beside_one_without():
    made = [given("old", "gpu/take-1", choice(2, 1)), device_claim("new", choice(2, 1))]
    built = cluster(*made, n1=3, n2=1)
    assert scores(built, "old", "new") == {"n1": 100, "n2": 100 * (7 + 7) // (7 + 8)}
    built = cluster(made[0], device_claim("new", ONE), n1=2, n2=1)
    assert scores(built, "old", "new") == {"n1": 100, "n2": 100}


def test_the_score_is_weighted_by_2_and_decides():
    built = cluster(device_claim("c", choice(2, 1)), n1=1, n2=2, n3=1)
    explanation = explain(built, asking("c"))
    others = {
        name: sum(
            built.profiles["default-scheduler"].weights[plugin] * by_node[name]
            for plugin, by_node in explanation.scores.items()
            if plugin != NAME
        )
        for name in NODES
    }
    mine = explanation.scores[NAME]
    assert explanation.total == {name: others[name] + 2 * mine[name] for name in NODES}
    placed = place(built, asking("c"))
    assert isinstance(placed, Placement)
    assert (placed.node_name, placed.score) == ("n2", explanation.total["n2"])


def test_a_profile_may_weigh_it_or_leave_it_out():
    def under(plugins: Manifest) -> Cluster:
        config = {"profiles": [{"schedulerName": "default-scheduler", "plugins": plugins}]}
        return cluster(device_claim("c", choice(2, 1)), config=config, n1=2, n2=1)

    weighed = under({"score": {"enabled": [{"name": NAME, "weight": 5}]}})
    assert weighed.profiles["default-scheduler"].weights[NAME] == 5
    assert scores(weighed, "c") == {"n1": 100, "n2": 87}
    assert scores(under({"score": {"disabled": [{"name": NAME}]}}), "c") is None
    assert scores(under({"filter": {"disabled": [{"name": NAME}]}}), "c") is None


def test_the_score_follows_devices_that_come_and_go():
    built = cluster(device_claim("c", choice(2, 1)), n1=2, n2=1)
    assert scores(built, "c") == {"n1": 100, "n2": 87}
    built.put_object(objects.kept(given("other", "gpu", ONE)))
    assert scores(built, "c") == {"n1": 100, "n2": 100}
    more = resource_slice("n2", device("gpu-0"), device("gpu-1"))
    built.put_object(objects.kept(more))
    assert scores(built, "c") == {"n1": 87, "n2": 100}
    built.delete_object("ResourceClaim", "default", "other")
    assert scores(built, "c") == {"n1": 100, "n2": 100}
