"""What a pod that tolerates nobody takes from others, by hand-made clusters."""

from typing import Any

import pytest

from service.engine import Cluster, Extent, OpportunityCosts
from tests.builders import NodeBuilder, PodBuilder, node, pod, requirement
from tests.engine import objects
from tests.engine.scene import Scene

GIB = 2**30


def sized(name: str, cpu: int, **labels: str) -> NodeBuilder:
    """As many GiB as cpus."""
    return node(name).label(host=name, **labels).allocatable(cpu=str(cpu), memory=f"{cpu}Gi")


def extent(cpus: int, nodes: int) -> Extent:
    return Extent(cpu=cpus * 1000, memory=cpus * GIB, nodes=nodes)


def cost(cluster: Cluster, manifest: PodBuilder, *keys: str, average: bool = False) -> Extent:
    return OpportunityCosts(cluster, average=average).cost(objects.pod(manifest), keys)


@pytest.fixture
def zones() -> Cluster:
    """Zone a: 2 + 4 cpus, zone b: 3, and a node of 8 without a zone."""
    return Scene(
        sized("n1", 2, zone="a", cluster="c"),
        sized("n2", 4, zone="a", cluster="c"),
        sized("n3", 3, zone="b", cluster="c"),
        sized("n4", 8, cluster="c"),
    ).engine


@pytest.mark.parametrize(
    ("keys", "largest", "average"),
    [
        (("host",), extent(8, 1), Extent(4250, 17 * GIB // 4, 1)),
        (("zone",), extent(6, 2), Extent(3750, 15 * GIB // 4, 2)),
        (("cluster",), extent(17, 4), extent(17, 4)),
        (("nobody",), extent(17, 4), extent(17, 4)),
        (("host", "zone"), extent(8, 2), Extent(5750, 23 * GIB // 4, 2)),
    ],
)
def test_a_pod_to_come_costs_the_largest_or_the_average_domain(
    zones: Cluster, keys: tuple[str, ...], largest: Extent, average: Extent
) -> None:
    assert cost(zones, pod("p"), *keys) == largest
    assert cost(zones, pod("p"), *keys, average=True) == average


@pytest.mark.parametrize(
    ("wish", "host", "zone"),
    [
        (pod("p").require_node(requirement("zone", "In", "b")), extent(3, 1), extent(3, 1)),
        (pod("p").node_selector(host="n1"), extent(2, 1), extent(6, 2)),
        (pod("p").node_selector(host="n4"), extent(8, 1), extent(0, 0)),
        (pod("p").node_selector(host="none"), extent(8, 1), extent(6, 2)),
    ],
)
def test_node_affinity_narrows_what_it_may_come_to_take(
    zones: Cluster, wish: PodBuilder, host: Extent, zone: Extent
) -> None:
    """The last pod fits nowhere yet: it counts as if it could go everywhere."""
    assert cost(zones, wish, "host") == host
    assert cost(zones, wish, "zone") == zone


@pytest.mark.parametrize(
    ("where", "keys", "taken"),
    [
        ("n1", ("host",), extent(2, 1)),
        ("n1", ("zone",), extent(6, 2)),
        ("n1", ("host", "zone"), extent(6, 2)),
        ("n4", ("zone",), extent(0, 0)),
        ("n4", ("nobody",), extent(17, 4)),
        ("gone", ("host",), extent(0, 0)),
    ],
)
def test_a_placed_pod_costs_its_own_domain(
    zones: Cluster, where: str, keys: tuple[str, ...], taken: Extent
) -> None:
    assert cost(zones, pod("p").on(where), *keys) == taken


def test_without_nodes_nothing_is_taken() -> None:
    for manifest in (pod("p"), pod("p").on("n1")):
        assert cost(Scene().engine, manifest, "host", average=True) == extent(0, 0)


def test_a_node_that_was_replaced_or_removed_is_not_counted(zones: Cluster) -> None:
    zones.delete_node("n4")
    zones.put_node(objects.node(sized("n3", 1, zone="a", cluster="c")))
    assert cost(zones, pod("p"), "cluster") == extent(7, 3)
    assert cost(zones, pod("p"), "zone") == extent(7, 3)


def test_amounts_beyond_reason_do_not_overflow() -> None:
    huge: dict[str, Any] = {"cpu": "9e15", "memory": "7Ei"}
    cluster = Scene(*(node(f"n{i}").allocatable(**huge) for i in range(5_000))).engine
    assert cost(cluster, pod("p"), "nobody") == Extent(5_000 * 2**48, 5_000 * 2**48, 5_000)
