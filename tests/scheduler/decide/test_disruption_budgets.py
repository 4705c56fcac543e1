"""What disruption budgets allow is worked out again when something has changed, and only then."""

from service.engine import Cluster
from service.scheduler.decide.disruption_budgets import BudgetCache
from tests.builders import Manifest, ObjectBuilder, matching, node, pod
from tests.engine import objects


def budget(**spec: Manifest | int) -> ObjectBuilder:
    return ObjectBuilder(
        apiVersion="policy/v1",
        kind="PodDisruptionBudget",
        metadata={"name": "web", "namespace": "default"},
        spec={"selector": matching(app="web"), **spec},
    )


def world() -> Cluster:
    cluster = Cluster()
    cluster.put_node(objects.node(node("n1")))
    cluster.put_object(objects.kept(budget(minAvailable=0)))
    cluster.put_pod(objects.pod(pod("web-0").label(app="web").on("n1")))
    return cluster


def allowed(cache: BudgetCache, cluster: Cluster, *, as_given: bool = False) -> list[int]:
    return [each.disruptions_allowed for each in cache.of(cluster, as_given=as_given)]


def test_budgets_are_worked_out_once_while_nothing_changes() -> None:
    cache, cluster = BudgetCache(), world()
    assert cache.of(cluster, as_given=False) is cache.of(cluster, as_given=False)


def test_budgets_follow_what_comes_and_what_is_undone() -> None:
    cache, cluster = BudgetCache(), world()
    assert allowed(cache, cluster) == [1]
    mark = cluster.mark()
    cluster.put_pod(objects.pod(pod("web-1").label(app="web").on("n1")))
    assert allowed(cache, cluster) == [2]
    cluster.undo(mark)
    cluster.delete_pod("default", "web-0")
    assert allowed(cache, cluster) == [0]
    cluster.undo(mark)
    assert allowed(cache, cluster) == [1]
    cluster.put_object(objects.kept(budget(minAvailable=1)))
    assert allowed(cache, cluster) == [0]


def test_budgets_are_those_of_the_cluster_and_in_the_way_that_is_asked_for() -> None:
    cache, cluster = BudgetCache(), world()
    assert allowed(cache, cluster) == [1]
    assert allowed(cache, cluster, as_given=True) == [0]
    assert allowed(cache, Cluster()) == []
