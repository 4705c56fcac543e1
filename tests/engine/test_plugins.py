"""Every plugin in the list against the laws of plugins; a new one is tested by being in the list."""

import pytest
from msgspec.structs import replace

from service.engine.framework.volume_plugin import VolumePlugin
from service.engine.plugins import PLUGINS
from service.engine.plugins.dynamic_resources import DynamicResources
from service.plugin.testing import PluginSuite
from tests.builders import (
    GPU,
    asking,
    claim,
    claim_template,
    device,
    device_claim,
    device_class,
    resource_slice,
    storage_class,
    volume,
)
from tests.engine.plugins.storage import capacity, driver


@pytest.fixture(params=PLUGINS, ids=lambda plugin: plugin.name)
def listed(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request.cls, "plugin", request.param, raising=False)


@pytest.mark.usefixtures("listed")
class TestListedPlugins(PluginSuite):
    pods = (
        {"nodeSelector": {"rack": "r1"}},
        {"nodeName": "n1"},
        {"hostNetwork": True, "hostUsers": False},
        {"volumes": [{"name": "files", "image": {"reference": "image-1"}}]},
    )

    def node(self, number):
        features = ["UserNamespacesHostNetworkSupport"] if number % 3 else []
        return {
            "metadata": {"labels": {"rack": f"r{number % 2}"}},
            "status": {"declaredFeatures": features},
        }


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


class TestVolumePluginsWithDriversAndCapacity(TestVolumePlugins):
    """As of 1.37: the driver runs on some nodes only and has to, and reports what room it has."""

    pods = (*TestVolumePlugins.pods, using("made", "small"), using("made", "more"))
    objects = (
        *TestVolumePlugins.objects,
        claim("more", "2Gi", storageClassName="fast"),
        driver("csi.example.com", storageCapacity=True, preventPodSchedulingIfMissing=True),
        *(capacity(f"n{number}", f"{number}Gi", node=f"n{number}") for number in range(1, 5)),
        capacity("wide", "9Gi", nodeTopology={"matchLabels": {"topology.kubernetes.io/zone": "a"}}),
    )

    def config(self):
        return replace(super().config(), kubernetes="1.37")


EVERYTHING = {"deviceClassName": GPU}


def with_devices(*claims: str, template: str = "") -> dict[str, object]:
    named = [{"name": each, "resourceClaimName": each} for each in claims]
    made = [{"name": "made", "resourceClaimTemplateName": template}] if template else []
    return {"resourceClaims": [*named, *made]}


def given(name: str, device_name: str, node_name: str):
    """A claim that has a device on a node."""
    driver = {"driver": "gpu.example.com", "pool": node_name, "device": device_name}
    fields = [{"key": "metadata.name", "operator": "In", "values": [node_name]}]
    allocation = {
        "devices": {"results": [{"request": "gpu", **driver}]},
        "nodeSelector": {"nodeSelectorTerms": [{"matchFields": fields}]},
    }
    return device_claim(name) | {"status": {"allocation": allocation}}


CHOICE = {
    "name": "gpu",
    "firstAvailable": [
        EVERYTHING | {"name": "two", "count": 2},
        EVERYTHING | {"name": "one"},
    ],
}


class TestDynamicResources(PluginSuite):
    plugin = DynamicResources
    pods = (
        with_devices("given"),
        with_devices("pair"),
        with_devices("pair", template="one"),
        with_devices(template="one"),
        with_devices("everything"),
        with_devices("picky"),
        with_devices("missing"),
        with_devices(template="missing"),
        with_devices("unknown"),
        with_devices("choice"),
        with_devices("choice", template="choices"),
        with_devices("given", "choice"),
    )
    objects = (
        device_class(),
        given("given", "gpu-0", "n1"),
        given("other", "gpu-0", "n2"),
        device_claim("pair", asking(2)),
        device_claim(
            "everything", {"name": "all", "exactly": EVERYTHING | {"allocationMode": "All"}}
        ),
        device_claim("picky", asking(1, 'device.attributes["gpu.example.com"].model == "b"')),
        device_claim("unknown", asking(class_name="unknown")),
        claim_template("one"),
        device_claim("choice", CHOICE),
        claim_template("choices", CHOICE),
        *(
            resource_slice(f"n{number}", device("gpu-0", model="a"), device("gpu-1", model="b"))
            for number in range(3)
        ),
        resource_slice(None, device("far", model="b"), allNodes=True),
    )

    def node(self, number):
        return {"metadata": {"labels": {"kubernetes.io/hostname": f"n{number}"}}}
