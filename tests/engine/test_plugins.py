"""Every plugin in the list against the laws of plugins; a new one is tested by being in the list."""

import pytest

from service.engine.plugins import PLUGINS
from service.engine.volume_plugin import VolumePlugin
from service.extensions.suite import PluginSuite
from tests.builders import claim, storage_class, volume


@pytest.fixture(params=PLUGINS, ids=lambda plugin: plugin.name)
def listed(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request.cls, "plugin", request.param, raising=False)


@pytest.mark.usefixtures("listed")
class TestListedPlugins(PluginSuite):
    pods = ({"nodeSelector": {"rack": "r1"}}, {"nodeName": "n1"})

    def node(self, number):
        return {"metadata": {"labels": {"rack": f"r{number % 2}"}}}


VOLUME_PLUGINS = [each for each in PLUGINS if issubclass(each, VolumePlugin)]
ONE_POD = {"accessModes": ["ReadWriteOncePod"]}
BOUND = {"pv.kubernetes.io/bind-completed": "yes"}


def using(*claims: str) -> dict[str, object]:
    sources = [{"persistentVolumeClaim": {"claimName": each}} for each in claims]
    return {
        "volumes": [
            {"name": each["persistentVolumeClaim"]["claimName"], **each} for each in sources
        ]
    }


def bound(name: str, to: str):
    made = claim(name, volumeName=to)
    made["metadata"]["annotations"] = BOUND
    return made


def in_zone(name: str, zone: str):
    made = volume(name, csi={"driver": "csi.example.com", "volumeHandle": name})
    return made.label({"topology.kubernetes.io/zone": zone})


@pytest.fixture(params=VOLUME_PLUGINS, ids=lambda plugin: plugin.name)
def of_volumes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request.cls, "plugin", request.param, raising=False)


@pytest.mark.usefixtures("of_volumes")
class TestVolumePlugins(PluginSuite):
    pods = (
        using("bound"),
        using("zoned"),
        using("free"),
        using("small", "free"),
        using("made"),
        using("alone"),
        using("missing"),
        {"volumes": [{"name": "disk", "gcePersistentDisk": {"pdName": "disk"}}]},
    )
    objects = (
        storage_class(),
        storage_class("fast", "csi.example.com"),
        volume("disk-0", node="n1"),
        volume("disk-1", size="2Gi"),
        volume("disk-2", node="n3"),
        in_zone("disk-3", "a__b"),
        bound("bound", "disk-2"),
        bound("zoned", "disk-3"),
        claim("free"),
        claim("small"),
        claim("made", storageClassName="fast"),
        claim("alone", storageClassName="fast", **ONE_POD),
        *(
            {
                "apiVersion": "storage.k8s.io/v1",
                "kind": "CSINode",
                "metadata": {"name": f"n{number}"},
                "spec": {
                    "drivers": [
                        {"name": "csi.example.com", "nodeID": "i", "allocatable": {"count": 1}}
                    ]
                },
            }
            for number in range(3)
        ),
    )

    def node(self, number):
        labels = {"kubernetes.io/hostname": f"n{number}"}
        return {"metadata": {"labels": labels | {"topology.kubernetes.io/zone": "abc"[number % 3]}}}
