"""GpuReserve is tested against the laws of all plugins, and for what it is meant to do."""

from typing import ClassVar

import msgspec
import pytest
from gpu_reserve import GpuReserve

from service.plugin.testing import (
    InvalidManifest,
    Placement,
    PluginSuite,
    Refusal,
    TemplateCache,
    explain,
    parse_config,
    parse_pod,
    place,
)

GPU = "example.com/gpu"


def asking(gpus: int):
    """Make a pod that asks for so many GPUs."""
    requests = {"cpu": "100m"} | ({GPU: str(gpus)} if gpus else {})
    resources = (
        {"requests": requests, "limits": {GPU: str(gpus)}} if gpus else {"requests": requests}
    )
    manifest = {
        "metadata": {"name": f"asks-{gpus}", "namespace": "default"},
        "spec": {
            "containers": [{"name": "main", "resources": resources}],
            "tolerations": [{"operator": "Exists"}],
        },
    }
    return parse_pod(msgspec.json.encode(manifest), TemplateCache(), to_place=True).pod


class TestGpuReserve(PluginSuite):
    plugin = GpuReserve
    arguments: ClassVar = {"resource": GPU}
    pods = (
        {
            "containers": [
                {"name": "m", "resources": {"requests": {GPU: "1"}, "limits": {GPU: "1"}}}
            ]
        },
    )

    def node(self, number):
        return {"status": {"allocatable": {GPU: "4"}}} if number % 2 else {}

    def test_pods_are_kept_from_nodes_with_gpus_unless_they_ask_for_one(self):
        for cluster in self.clusters():
            told = explain(cluster, asking(0))
            assert told.filters["GpuReserve"] == {f"n{i}": [GpuReserve.reason] for i in (1, 3, 5)}
            assert not explain(cluster, asking(1)).filters.get("GpuReserve")

    def test_pods_with_gpus_go_where_some_are_in_use(self):
        for cluster in self.clusters():
            told = explain(cluster, asking(1))
            assert set(told.scores.get("GpuReserve", ())) == set(told.feasible)
            assert isinstance(place(cluster, asking(1)), Placement | Refusal)

    def test_arguments_that_it_does_not_know_are_refused_by_their_field(self):
        profile = {"schedulerName": "x", "pluginConfig": [{"name": "GpuReserve", "args": {"a": 1}}]}
        with pytest.raises(InvalidManifest) as refused:
            self.config(), parse_config({"profiles": [profile]})
        assert refused.value.errors[0].field == "profiles[0].pluginConfig[0].args.a"
