"""In-tree disks count towards the limits of the CSI drivers that took their place."""

from typing import Any

import pytest

from service.engine import explain
from tests.builders import node, pod
from tests.engine import objects
from tests.reference import evaluate

DISKS = {
    "ebs.csi.aws.com": ("awsElasticBlockStore", "volumeID", "kubernetes.io/aws-ebs"),
    "pd.csi.storage.gke.io": ("gcePersistentDisk", "pdName", "kubernetes.io/gce-pd"),
    "disk.csi.azure.com": ("azureDisk", "diskURI", "kubernetes.io/azure-disk"),
    "cinder.csi.openstack.org": ("cinder", "volumeID", "kubernetes.io/cinder"),
    "pxd.portworx.com": ("portworxVolume", "volumeID", "kubernetes.io/portworx-volume"),
}
NOT_COUNTED = {
    "file.csi.azure.com": ("azureFile", "shareName", "kubernetes.io/azure-file"),
    "csi.vsphere.vmware.com": ("vsphereVolume", "volumePath", "kubernetes.io/vsphere-volume"),
}
MANAGED = {"azureDisk": {"kind": "Managed"}}
"""What a disk has to say of itself beside its name."""
CASES = [(driver, *disk, True) for driver, disk in DISKS.items()]
CASES += [(driver, *disk, False) for driver, disk in NOT_COUNTED.items()]


def with_volumes(name: str, *sources: dict[str, Any]) -> Any:
    made = pod(name)
    made["spec"]["volumes"] = [{"name": f"v{i}", **each} for i, each in enumerate(sources)]
    return made


def claim(name: str, **spec: Any) -> dict[str, Any]:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}} | spec
    metadata = {"name": name, "namespace": "default"}
    return {"kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}


def using(name: str) -> dict[str, Any]:
    return {"persistentVolumeClaim": {"claimName": name}}


def one_of(driver: str) -> dict[str, Any]:
    """The node takes one volume of a driver, and does not say what it has migrated."""
    taken = {"name": driver, "nodeID": "n1", "allocatable": {"count": 1}}
    return {"kind": "CSINode", "metadata": {"name": "n1"}, "spec": {"drivers": [taken]}}


def fits(incoming: Any, pods: list[Any], kept: list[dict[str, Any]]) -> bool:
    """Whether a pod fits, on which the engine and the reference have to agree."""
    nodes = [node("n1")]
    cluster = objects.cluster({}, [], nodes, pods, kept)
    told = explain(cluster, objects.pod(incoming, incoming=True))
    assert told.filters == evaluate({}, [], nodes, pods, incoming, kept)["filters"]
    assert told.filters in ({}, {"NodeVolumeLimits": {"n1": ["node(s) exceed max volume count"]}})
    return told.feasible == ["n1"]


@pytest.mark.parametrize(("driver", "kind", "name", "provisioner", "counts"), CASES)
def test_a_disk_that_a_pod_names_itself(driver, kind, name, provisioner, counts):
    own = MANAGED.get(kind, {})
    placed = with_volumes("placed", {kind: {name: "a", **own}}).on("n1")
    other, same = (with_volumes("p", {kind: {name: disk, **own}}) for disk in ("b", "a"))
    kept = [one_of(driver)]
    assert fits(other, [placed], kept) != counts
    if kind not in ("gcePersistentDisk", "awsElasticBlockStore"):  # they would be in conflict
        assert fits(same, [placed], kept)
    assert fits(other, [placed], [])


@pytest.mark.parametrize(("driver", "kind", "name", "provisioner", "counts"), CASES)
def test_a_disk_behind_a_claim(driver, kind, name, provisioner, counts):
    volumes = [
        {
            "kind": "PersistentVolume",
            "metadata": {"name": f"pv-{disk}"},
            "spec": {
                "capacity": {"storage": "1Gi"},
                "accessModes": ["ReadWriteOnce"],
                "claimRef": {"namespace": "default", "name": disk},
                kind: {name: disk, **MANAGED.get(kind, {})},
            },
            "status": {"phase": "Bound"},
        }
        for disk in ("a", "b")
    ]
    bound = {"pv.kubernetes.io/bind-completed": "yes"}
    claims = [claim(disk, volumeName=f"pv-{disk}") for disk in ("a", "b")]
    for each in claims:
        each["metadata"]["annotations"] = bound
    placed = with_volumes("placed", using("a")).on("n1")
    kept = [one_of(driver), *volumes, *claims]
    assert fits(with_volumes("p", using("b")), [placed], kept) != counts
    assert fits(with_volumes("p", using("a")), [placed], kept)


@pytest.mark.parametrize(("driver", "kind", "name", "provisioner", "counts"), CASES)
def test_a_claim_that_an_in_tree_provisioner_is_to_fulfil(driver, kind, name, provisioner, counts):
    storage_class = {
        "kind": "StorageClass",
        "metadata": {"name": "fast"},
        "provisioner": provisioner,
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    claims = [claim(each, storageClassName="fast") for each in ("a", "b")]
    kept = [one_of(driver), storage_class, *claims]
    assert fits(with_volumes("p", using("a")), [], kept)
    assert fits(with_volumes("p", using("a"), using("b")), [], kept) != counts


@pytest.mark.parametrize(("kind", "counts"), [("managed", True), ("Dedicated", False), ("", False)])
def test_of_azures_disks_only_managed_ones_count(kind, counts):
    said = {"kind": kind} if kind else {}
    one, other = (
        with_volumes(name, {"azureDisk": {"diskURI": name, **said}}) for name in ("p", "q")
    )
    assert fits(one, [other.on("n1")], [one_of("disk.csi.azure.com")]) != counts
