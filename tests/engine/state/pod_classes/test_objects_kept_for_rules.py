"""Objects that rules read besides nodes and pods: the engine keeps them, and undoes their changes."""

import pytest

from service.engine import Cluster
from service.model.registry.manifests import parse_declared
from service.model.workloads.owners import ServiceBody
from tests.kept_kinds import kept


def service(name: str, app: str):
    sent = kept("Service", name=name) | {"spec": {"selector": {"app": app}}}
    return parse_declared("Service", sent).kept


def selectors(cluster: Cluster) -> dict[str, str]:
    services = cluster.objects.having(ServiceBody)
    return {name: each.body.spec.selector["app"] for (_, name), each in services.items()}


def test_changes_of_objects_are_undone_like_all_others() -> None:
    cluster = Cluster()
    cluster.put_object(service("a", "one"))
    mark = cluster.mark()
    cluster.put_object(service("a", "two"))
    cluster.put_object(service("b", "three"))
    assert selectors(cluster) == {"a": "two", "b": "three"}
    cluster.delete_object("Service", "shop", "a")
    assert selectors(cluster) == {"b": "three"}
    cluster.undo(mark)
    assert selectors(cluster) == {"a": "one"}
    cluster.undo(0)
    assert selectors(cluster) == {}


def test_what_is_not_there_cannot_be_deleted() -> None:
    cluster = Cluster()
    with pytest.raises(KeyError):
        cluster.delete_object("Service", "shop", "a")
    assert cluster.mark() == 0
