"""What may change in a pod that has its node: whatever scheduling does not rest on."""

from typing import Any

import pytest

from tests.api.harness import CLUSTER, Harness, pod, problem

PATH = f"{CLUSTER}/namespaces/shop/pods/a"
RDI = "requiredDuringSchedulingIgnoredDuringExecution"
HOST_PORT = {"containerPort": 80, "hostPort": 80}


def placed(**spec: Any) -> dict[str, Any]:
    """A pod as its owner wrote it."""
    container = {"name": "c", "resources": {"requests": {"cpu": "1"}}, "ports": [HOST_PORT]}
    anti = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web"}}}
    return pod(
        "a",
        **{
            "nodeName": "n1",
            "containers": [container],
            "overhead": {"cpu": "0.5"},
            "affinity": {"podAntiAffinity": {RDI: [anti]}},
            "tolerations": [{"key": "gpu", "effect": "NoExecute", "operator": "Exists"}],
        }
        | spec,
    )


def as_an_api_server_tells_it() -> dict[str, Any]:
    """The same pod with what an API server fills in, and what a kubelet and a user changed."""
    told = placed(overhead={"cpu": "500m"}, priority=0, schedulerName="default-scheduler")
    told["metadata"]["annotations"] = {"note": "new"}
    told["spec"]["affinity"] |= {"nodeAffinity": {}}
    told["spec"]["containers"][0] |= {
        "image": "web:2",
        "imagePullPolicy": "Always",
        "terminationMessagePath": "/dev/termination-log",
        "ports": [HOST_PORT | {"protocol": "TCP"}],
        "volumeMounts": [{"name": "token", "mountPath": "/var/run/secrets"}],
    }
    told["spec"] |= {
        "activeDeadlineSeconds": 60,
        "dnsPolicy": "ClusterFirst",
        "ephemeralContainers": [{"name": "debug", "image": "busybox"}],
        "nodeSelector": {},
        "preemptionPolicy": "PreemptLowerPriority",
        "restartPolicy": "Always",
        "securityContext": {},
        "terminationGracePeriodSeconds": 30,
        "tolerations": [
            {"key": "gpu", "effect": "NoExecute", "operator": "Exists", "tolerationSeconds": 9},
            {"key": "node.kubernetes.io/not-ready", "effect": "NoExecute", "operator": "Exists"},
        ],
        "topologySpreadConstraints": [],
        "volumes": [{"name": "token", "projected": {}}],
    }
    return told


async def test_what_an_api_server_makes_of_a_pod_is_the_same_pod(harness: Harness):
    await harness.put("namespaces/shop/pods/a", placed())
    told = as_an_api_server_tells_it()
    body = {"kind": "List", "items": [told]}
    answer = await harness.client.post(f"{CLUSTER}/apply", json=body)
    assert answer.status_code == 200, answer.text
    assert answer.json()["changed"] == 1
    read = (await harness.client.get(PATH)).json()
    assert read["spec"] == told["spec"]
    assert (await harness.client.post(f"{CLUSTER}/apply", json=body)).json()["unchanged"] == 1


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("affinity", {"affinity": None}),
        ("affinity", {"affinity": {"podAntiAffinity": {RDI: [{"topologyKey": "rack"}]}}}),
        ("containers", {"containers": [{"name": "d", "ports": [HOST_PORT]}]}),
        ("initContainers", {"initContainers": [{"name": "i"}]}),
        ("containers", {"containers": [{"name": "c"}]}),
        ("nodeSelector", {"nodeSelector": {"zone": "a"}}),
        ("overhead", {"overhead": {"cpu": "501m"}}),
        ("priority", {"priority": 1}),
        ("resources", {"resources": {"requests": {"cpu": "3"}}}),
        ("schedulerName", {"schedulerName": "other"}),
        ("schedulingGates", {"schedulingGates": [{"name": "example.com/gate"}]}),
        ("tolerations", {"tolerations": []}),
        (
            "topologySpreadConstraints",
            {"topologySpreadConstraints": [{"topologyKey": "zone", "labelSelector": {}}]},
        ),
    ],
)
async def test_what_scheduling_rests_on_stays(harness: Harness, field: str, change: Any):
    await harness.put("namespaces/shop/pods/a", placed())
    sent = placed(**change)
    del sent["spec"]["nodeName"]
    answer = await harness.client.put(PATH, json=sent)
    assert problem(answer, 422) == "InvalidManifest"
    assert [each["field"] for each in answer.json()["errors"]] == [f"spec.{field}"]
    assert "placed pod" in answer.json()["errors"][0]["message"]


async def test_containers_may_be_resized_in_place(harness: Harness):
    await harness.put("namespaces/shop/pods/a", placed())
    sent = placed()
    sent["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "2"}}
    await harness.put("namespaces/shop/pods/a", sent)
