"""Lists whose items have one key here and another there, and those that apply and patches treat differently."""

from typing import Any

import pytest

from service.model.core.managers import Manager, written
from service.model.json.managed_fields import apply
from service.model.json.strategic_merge import strategic_merge_patch

NOW = "2026-01-01T00:00:00Z"


def applied(*wishes: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """What an object is after each of several managers has applied its wishes, and what each has."""
    live: Any = None
    managers: tuple[Manager, ...] = ()
    for number, wish in enumerate(wishes):
        made = apply(live, managers, wish, manager=f"m{number}", now=NOW, force=True)
        live, managers = made.fields, made.managers
    return live, {each["manager"]: each["fieldsV1"] for each in map(dict, written(managers))}  # type: ignore[misc]


def within(path: str, value: Any) -> dict[str, Any]:
    for name in reversed(path.split(".")):
        value = {name: value}
    return dict(value)


def inside(value: Any, path: str) -> Any:
    for name in path.split("."):
        value = value[name]
    return value


PORTS = [{"port": 53}, {"port": 53, "protocol": "UDP"}]
DEVICES = [{"driver": "d", "pool": "p", "device": each} for each in ("one", "two")]


@pytest.mark.parametrize(
    ("path", "one", "two"),
    [
        ("spec.ports", *([each] for each in PORTS)),
        ("status.devices", *([each] for each in DEVICES)),
        ("spec.podGroupTemplates", [{"name": "a"}], [{"name": "b"}]),
        ("metadata.finalizers", ["x/a"], ["x/b"]),
        ("spec.volumeLifecycleModes", ["Persistent"], ["Ephemeral"]),
    ],
)
def test_managers_share_a_list_whose_items_have_keys(path: str, one: Any, two: Any) -> None:
    live, fields = applied(within(path, one), within(path, two))
    assert inside(live, path) == one + two
    assert set(fields) == {"m0", "m1"}


@pytest.mark.parametrize(
    ("path", "one", "two"),
    [
        ("spec.finalizers", ["kubernetes"], ["other"]),
        ("status.hostIPs", [{"ip": "10.0.0.1"}], [{"ip": "10.0.0.2"}]),
        ("spec.devices", [{"name": "a"}], [{"name": "b"}]),
        ("spec.nodeAffinity.required", {"a": 1}, {"b": 1}),
        ("spec.dataSource", {"name": "a"}, {"kind": "b"}),
        ("nodeTopology", {"matchLabels": {"a": "b"}}, {"matchLabels": {"c": "d"}}),
    ],
)
def test_the_last_manager_has_the_whole_of_what_is_replaced(path: str, one: Any, two: Any) -> None:
    live, fields = applied(within(path, one), within(path, two))
    assert inside(live, path) == two
    assert set(fields) == {"m1"}


def test_ports_of_services_are_patched_by_port_and_those_of_containers_by_container_port() -> None:
    service = {"spec": {"ports": [{"port": 80, "name": "web"}, {"port": 443}]}}
    patch = {"spec": {"ports": [{"port": 80, "name": "http"}]}}
    assert strategic_merge_patch(service, patch) == {
        "spec": {"ports": [{"port": 80, "name": "http"}, {"port": 443}]}
    }
    pod = {"spec": {"containers": [{"name": "a"}, {"name": "b", "ports": [{"containerPort": 1}]}]}}
    more = {"spec": {"containers": [{"name": "b", "ports": [{"containerPort": 2}]}]}}
    patched: Any = strategic_merge_patch(pod, more)
    assert patched["spec"]["containers"][1]["ports"] == [{"containerPort": 1}, {"containerPort": 2}]


def test_finalizers_are_merged_but_those_of_a_namespaces_spec_replaced() -> None:
    live = {"metadata": {"finalizers": ["x/a"]}, "spec": {"finalizers": ["a"]}}
    patch = {"metadata": {"finalizers": ["x/b"]}, "spec": {"finalizers": ["b"]}}
    assert strategic_merge_patch(live, patch) == {
        "metadata": {"finalizers": ["x/a", "x/b"]},
        "spec": {"finalizers": ["b"]},
    }
