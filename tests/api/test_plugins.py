"""Plugins that are installed beside Moorage: how they are found, named, explained, and missed."""

from importlib.metadata import EntryPoint

import pytest
from gpu_reserve import GpuReserve

from service.engine import Cluster
from service.engine.profiles.registry import known_plugins, unregister
from service.model.cluster.cluster_config import parse_config
from service.model.cluster.plugin_rules import Arguments
from service.plugin.loading import GROUP, BadPlugin, load_plugins
from tests.api.harness import CLUSTER, node, pod

GPU = "nvidia.com/gpu"
ON = {
    "schedulerName": "default-scheduler",
    "plugins": {"multiPoint": {"enabled": [{"name": "GpuReserve"}]}},
}


def entry(name="GpuReserve", value="gpu_reserve:GpuReserve"):
    return EntryPoint(name, value, GROUP)


@pytest.fixture
def installed():
    """The example plugin as if it had been installed, for one test."""
    known = "GpuReserve" in known_plugins()
    load_plugins([entry()])
    yield GpuReserve
    if not known and "GpuReserve" in known_plugins():
        unregister(GpuReserve)


@pytest.mark.usefixtures("installed")
async def test_a_profile_names_an_installed_plugin_and_explanations_give_its_reasons(harness):
    await harness.configure(profiles=[ON])
    with_gpus = node("gpu")
    with_gpus["status"]["allocatable"][GPU] = "4"
    await harness.put("nodes/gpu", with_gpus)
    (result,) = (await harness.place(pod("a"), explain="Full"))["results"]
    assert result["explanation"]["filters"] == {"GpuReserve": {"gpu": [GpuReserve.reason]}}
    assert GpuReserve.reason in result["explanation"]["message"]
    await harness.put("nodes/n2", node("n2"))
    (result,) = (await harness.place(pod("b")))["results"]
    assert result["nodeName"] == "n2"


@pytest.mark.usefixtures("installed")
async def test_an_installed_plugin_is_off_until_a_profile_names_it(harness):
    with_gpus = node("gpu")
    with_gpus["status"]["allocatable"][GPU] = "4"
    await harness.put("nodes/gpu", with_gpus)
    (result,) = (await harness.place(pod("a"), explain="Full"))["results"]
    assert result["nodeName"] == "gpu"
    assert "GpuReserve" not in result["explanation"]["scores"]


@pytest.mark.usefixtures("installed")
async def test_arguments_that_a_plugin_refuses_are_told_with_their_field(harness):
    arguments = {"resource": 1, "resourc": "nvidia.com/gpu"}
    profile = ON | {"pluginConfig": [{"name": "GpuReserve", "args": arguments}]}
    answer = await harness.client.put(CLUSTER, json={"config": {"profiles": [profile]}})
    assert answer.status_code == 422
    told = {error["field"]: error["message"] for error in answer.json()["errors"]}
    assert told == {
        "config.profiles[0].pluginConfig[0].args.resource": "must be a string",
        "config.profiles[0].pluginConfig[0].args.resourc": "unknown field; did you mean resource?",
    }


async def test_a_cluster_whose_plugin_a_server_lacks_is_refused_with_the_field(
    make_harness, installed
):
    first = await make_harness()
    await first.configure(profiles=[ON])
    await first.put("nodes/n1", node("n1"))
    unregister(installed)
    other = await make_harness(store=first.store)
    answer = await other.client.post(f"{CLUSTER}/placements", json={"pods": [pod("a")]})
    assert (answer.status_code, answer.json()["code"]) == (503, "PluginMissing")
    field = "profiles[0].plugins.multiPoint.enabled[0].name"
    assert answer.json()["detail"].startswith(f"{field}: the plugin GpuReserve is not installed")
    shown = await other.client.get(CLUSTER)
    (profile,) = shown.json()["config"]["profiles"]
    assert profile["plugins"]["multiPoint"] == {"enabled": [{"name": "GpuReserve"}]}
    load_plugins([entry()])
    assert (await other.place(pod("a")))["results"][0]["nodeName"] == "n1"


@pytest.mark.parametrize(
    ("point", "problem"),
    [
        (entry(value="no_such_module:X"), "cannot be imported"),
        (entry(value="gpu_reserve:GpuReserve", name="Other"), "is no plugin of the name Other"),
        (entry(value="json:dumps"), "is no plugin of the name GpuReserve"),
        (
            entry("NodeName", "service.plugin.testing:PluginSuite"),
            "is no plugin of the name",
        ),
    ],
)
def test_a_plugin_that_cannot_be_used_is_told_by_its_entry_point(point, problem):
    with pytest.raises(BadPlugin, match=problem) as refused:
        load_plugins([point])
    assert f"the entry point {point.name} = {point.value}" in str(refused.value)


def test_arguments_have_defaults():
    class NeedyArgs(Arguments, frozen=True, kw_only=True):
        resource: str

    class Needy(GpuReserve):
        name = "Needy"
        arguments = NeedyArgs

    class Point:
        name, value = "Needy", "mine:Needy"

        def load(self):
            return Needy

    with pytest.raises(BadPlugin, match="cannot be used: Missing required argument 'resource'"):
        load_plugins([Point()])
    assert "Needy" not in known_plugins()


def test_a_name_of_kubernetes_is_taken():
    class NodeName(GpuReserve):
        name = "NodeName"

    class Point:
        name, value = "NodeName", "mine:NodeName"

        def load(self):
            return NodeName

    with pytest.raises(BadPlugin, match="there is a plugin NodeName already"):
        load_plugins([Point()])


@pytest.mark.usefixtures("installed")
def test_a_plugin_is_put_where_its_base_says_and_nowhere_else():
    profile = Cluster(parse_config({"profiles": [ON]})).profiles["default-scheduler"]
    placed = {
        name
        for name in ("static_filters", "usage_filters", "relation_filters")
        if any(type(each) is GpuReserve for each in getattr(profile, name))
    }
    assert placed == {"usage_filters"}
    assert not any(type(each.plugin) is GpuReserve for each in profile.relation_scores)
