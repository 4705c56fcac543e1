import msgspec
import pytest

from service.model.core.access import BOOTSTRAP, VERBS_OF, Grant, Principal


def test_a_grant_on_a_namespace_gives_nothing_elsewhere():
    caller = Principal("ci", (Grant("scheduler", "default", "shop"),))
    assert caller.may("place", "default", "shop")
    assert not caller.may("place", "default", "bank")
    assert not caller.may("place", "default")
    assert not caller.may("place", "other", "shop")


def test_a_grant_on_all_namespaces_covers_what_is_in_none():
    caller = Principal("ci", (Grant("observer", "default"),))
    assert caller.may("observe", "default")
    assert caller.may("observe", "default", "shop")
    assert not caller.may("observe", "other")


def test_a_namespace_of_all_clusters():
    caller = Principal("ci", (Grant("reader", namespace="shop"),))
    assert caller.may("read", "any", "shop")
    assert caller.may_somewhere("read", "any")
    assert caller.namespaces("read", "any") == {"shop"}


def test_the_namespaces_where_a_caller_may_do_something():
    caller = Principal("ci", (Grant("reader", "default"), Grant("scheduler", "default", "shop")))
    assert caller.namespaces("read", "default") is None
    assert caller.namespaces("place", "default") == {"shop"}
    assert caller.namespaces("evict", "default") == frozenset()
    assert not caller.may_somewhere("evict", "default")


@pytest.mark.parametrize("role", sorted(VERBS_OF))
def test_only_the_role_of_admin_on_everything_makes_an_admin(role):
    assert Principal("ci", (Grant(role),)).is_admin == (role == "admin")
    assert not Principal("ci", (Grant(role, "default"),)).is_admin
    assert not Principal("ci", (Grant(role, namespace="shop"),)).is_admin


def test_nobody_becomes_an_admin_by_saying_so():
    said = msgspec.msgpack.encode({"name": "ci", "is_admin": True})

    assert not Principal("ci", is_admin=True).is_admin
    assert not msgspec.msgpack.decode(said, type=Principal).is_admin
    assert not msgspec.structs.replace(BOOTSTRAP, grants=(Grant("reader"),)).is_admin


def test_only_those_who_observe_state_facts():
    assert {role for role, verbs in VERBS_OF.items() if "observe" in verbs} == {
        "observer",
        "orchestrator",
        "admin",
    }
