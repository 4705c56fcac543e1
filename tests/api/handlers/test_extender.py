"""Moorage as an extender of kube-scheduler, spoken to as kube-scheduler's HTTPExtender speaks."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from tests.api.harness import CLUSTER, Harness, node, pod, problem
from tests.builders import IGNORED_DURING_EXECUTION

APART = {
    "affinity": {
        "podAntiAffinity": {
            IGNORED_DURING_EXECUTION: [
                {
                    "topologyKey": "kubernetes.io/hostname",
                    "labelSelector": {"matchLabels": {"app": "web"}},
                }
            ]
        }
    }
}


class FilterResult(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """ExtenderFilterResult of extender/v1, whose Go struct has no tags."""

    Nodes: dict[str, Any] | None
    NodeNames: list[str] | None
    FailedNodes: dict[str, str]
    FailedAndUnresolvableNodes: dict[str, str]
    Error: str


class Priority(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """HostPriority of extender/v1."""

    Host: str
    Score: int


class MetaPod(msgspec.Struct, forbid_unknown_fields=True):
    """MetaPod of extender/v1."""

    UID: str


class MetaVictims(msgspec.Struct, forbid_unknown_fields=True):
    """MetaVictims of extender/v1."""

    Pods: list[MetaPod]
    NumPDBViolations: int


class PreemptionResult(msgspec.Struct, forbid_unknown_fields=True):
    """ExtenderPreemptionResult of extender/v1."""

    NodeNameToMetaVictims: dict[str, MetaVictims]


class BindingResult(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """ExtenderBindingResult of extender/v1."""

    Error: str


def args(asked: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Arguments as kube-scheduler sends them with nodeCacheCapable: Go writes nil as null."""
    return {"Pod": asked, "Nodes": None, "NodeNames": names}


async def filtered(harness: Harness, body: Mapping[str, Any]) -> FilterResult:
    answer = await harness.client.post(f"{CLUSTER}/extender/filter", json=body)
    assert answer.status_code == 200, answer.text
    return msgspec.json.decode(answer.content, type=FilterResult)


async def prioritized(harness: Harness, body: Mapping[str, Any]) -> dict[str, int]:
    answer = await harness.client.post(f"{CLUSTER}/extender/prioritize", json=body)
    assert answer.status_code == 200, answer.text
    return {e.Host: e.Score for e in msgspec.json.decode(answer.content, type=list[Priority])}


async def bound(harness: Harness, name: str, uid: str, to: str) -> str:
    body = {"PodName": name, "PodNamespace": "shop", "PodUID": uid, "Node": to}
    answer = await harness.client.post(f"{CLUSTER}/extender/bind", json=body)
    assert answer.status_code == 200, answer.text
    return msgspec.json.decode(answer.content, type=BindingResult).Error


async def waiting(harness: Harness, name: str, **spec: Any) -> dict[str, Any]:
    return (await harness.put_pod(name, **spec)).json()


async def three_nodes(harness: Harness) -> list[str]:
    await harness.configure(placePendingPods=False)
    names = ["n1", "n2", "n3"]
    for name in names:
        await harness.put_node(name, **{"kubernetes.io/hostname": name})
    return names


async def test_pods_that_keep_apart_are_filtered_prioritized_and_bound(
    over_each_store: Harness,
) -> None:
    names = await three_nodes(over_each_store)
    for index in range(3):
        asked = await waiting(over_each_store, f"web-{index}", **APART)
        left = await filtered(over_each_store, args(asked, names))
        assert left.Nodes is None
        assert left.NodeNames == names[index:]
        assert set(left.FailedNodes) == set(names[:index])
        assert "anti-affinity" in "".join(left.FailedNodes.values()) or not index
        scores = await prioritized(over_each_store, args(asked, left.NodeNames))
        assert max(scores.values()) == 10
        uid = asked["metadata"]["uid"]
        assert await bound(over_each_store, f"web-{index}", uid, names[index]) == ""
    answer = await over_each_store.client.get(f"{CLUSTER}/namespaces/shop/pods/web-2")
    assert answer.json()["spec"]["nodeName"] == "n3"


async def test_of_two_racing_binds_that_exclude_each_other_one_loses(
    over_each_store: Harness,
) -> None:
    await three_nodes(over_each_store)
    pods = [await waiting(over_each_store, name, **APART) for name in ("web-0", "web-1")]
    errors = await asyncio.gather(
        *(
            bound(over_each_store, each["metadata"]["name"], each["metadata"]["uid"], "n1")
            for each in pods
        )
    )
    (lost,) = [error for error in errors if error]
    assert "n1 does not fit the pod" in lost


async def test_whole_nodes_come_back_as_they_were_sent(harness: Harness) -> None:
    await three_nodes(harness)
    full = node("n1")
    full["metadata"]["annotations"] = {"kept": "as sent"}
    body = {"Pod": pod("web-0"), "Nodes": {"metadata": {}, "items": [full, node("n9")]}}
    left = await filtered(harness, body)
    assert left.NodeNames is None
    assert left.Nodes == {"items": [full]}
    assert left.FailedAndUnresolvableNodes == {"n9": "the node is not known to Moorage"}


async def test_objects_as_go_writes_them_with_all_defaults_are_understood(harness: Harness) -> None:
    """What kube-apiserver has filled in and Go writes of empty structs changes no answer."""
    await three_nodes(harness)
    asked = {
        "metadata": {
            "name": "web-0",
            "generateName": "web-",
            "namespace": "shop",
            "uid": "3f0c5a0e-2f8b-4b55-9f5e-0d7c9f4f5f11",
            "resourceVersion": "812",
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "ownerReferences": [
                {
                    "apiVersion": "apps/v1",
                    "kind": "ReplicaSet",
                    "name": "web",
                    "uid": "b1",
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
            "managedFields": [
                {
                    "manager": "kube-controller-manager",
                    "operation": "Update",
                    "apiVersion": "v1",
                    "time": "2026-01-01T00:00:00Z",
                    "fieldsType": "FieldsV1",
                    "fieldsV1": {"f:metadata": {"f:generateName": {}}},
                }
            ],
        },
        "spec": {
            "volumes": [
                {
                    "name": "kube-api-access",
                    "projected": {
                        "sources": [
                            {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}}
                        ],
                        "defaultMode": 420,
                    },
                }
            ],
            "containers": [
                {
                    "name": "c",
                    "image": "registry.k8s.io/pause:3.9",
                    "resources": {"requests": {"cpu": "100m"}},
                    "terminationMessagePath": "/dev/termination-log",
                    "terminationMessagePolicy": "File",
                    "imagePullPolicy": "IfNotPresent",
                }
            ],
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": 30,
            "dnsPolicy": "ClusterFirst",
            "serviceAccountName": "default",
            "serviceAccount": "default",
            "securityContext": {},
            "nodeSelector": {"kubernetes.io/hostname": "n2"},
            "schedulerName": "default-scheduler",
            "tolerations": [
                {
                    "key": f"node.kubernetes.io/{each}",
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": 300,
                }
                for each in ("not-ready", "unreachable")
            ],
            "priority": 0,
            "enableServiceLinks": True,
            "preemptionPolicy": "PreemptLowerPriority",
        },
        "status": {"phase": "Pending", "qosClass": "Burstable"},
    }
    nodes = [
        {
            "metadata": {"name": name, "creationTimestamp": None},
            "spec": {},
            "status": {
                "daemonEndpoints": {"kubeletEndpoint": {"Port": 0}},
                "nodeInfo": {"machineID": "", "systemUUID": "", "bootID": ""},
            },
        }
        for name in ("n1", "n2", "n3")
    ]
    body = {"Pod": asked, "Nodes": {"metadata": {}, "items": nodes}, "NodeNames": None}
    left = await filtered(harness, body)
    assert left.Nodes == {"items": [nodes[1]]}
    assert set(left.FailedAndUnresolvableNodes) == {"n1", "n3"}
    scores = await prioritized(harness, {**body, "Nodes": {"metadata": {}, "items": [nodes[1]]}})
    assert scores == {"n2": 10}


async def test_nodes_that_no_eviction_helps_are_told_apart(harness: Harness) -> None:
    names = await three_nodes(harness)
    await harness.put_node("n4", zone="a")
    big = pod("web-0", nodeSelector={"zone": "a"})
    big["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "3"}}
    other = pod("web-1", nodeSelector={"zone": "a"})
    other["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "3"}}
    assert (await harness.place(big))["results"][0]["nodeName"] == "n4"
    left = await filtered(harness, args(other, [*names, "n4"]))
    assert left.NodeNames == []
    assert left.FailedNodes == {"n4": "Insufficient cpu"}
    assert set(left.FailedAndUnresolvableNodes) == set(names)


async def test_scores_follow_those_of_placements(harness: Harness) -> None:
    names = await three_nodes(harness)
    await harness.place(pod("web-0", nodeSelector={"kubernetes.io/hostname": "n2"}))
    answer = await harness.place(pod("web-1"), dryRun=True, explain="Full")
    total = answer["results"][0]["explanation"]["total"]
    scores = await prioritized(harness, args(pod("web-1"), [*names, "n9"]))
    assert scores["n9"] == 0
    assert scores["n2"] == 0
    assert {name for name in names if scores[name] == 10} == {
        name for name in names if total[name] == max(total.values())
    }


async def test_kube_schedulers_pod_comes_with_its_status_and_is_not_stored(
    harness: Harness,
) -> None:
    names = await three_nodes(harness)
    asked = {**pod("web-0"), "status": {"phase": "Pending", "qosClass": "BestEffort"}}
    asked["metadata"]["uid"] = "7e4f9a1c-2f0b-4b59-9a57-0d2b6f6f3c11"
    assert (await filtered(harness, args(asked, names))).NodeNames == names
    path = f"{CLUSTER}/namespaces/shop/pods/web-0"
    assert problem(await harness.client.get(path), 404) == "NotFound"
    assert "web-0" in await bound(harness, "web-0", asked["metadata"]["uid"], "n1")


async def test_what_stands_against_the_pod_itself_is_told(harness: Harness) -> None:
    names = await three_nodes(harness)
    stored = await waiting(harness, "web-0")
    assert await bound(harness, "web-0", "another-uid", "n1") != ""
    assert "n9" in await bound(harness, "web-0", stored["metadata"]["uid"], "n9")
    left = await filtered(harness, args({"metadata": {"name": "Not A Name"}}, names))
    assert "metadata.name" in left.Error
    denied = await filtered(harness, args(pod("web-1", schedulerName="absent"), names))
    assert denied.NodeNames == []
    assert "absent" in denied.FailedAndUnresolvableNodes["n1"]


async def test_a_message_of_another_form_is_refused(harness: Harness) -> None:
    path = f"{CLUSTER}/extender/filter"
    both = {"Pod": pod("web-0"), "Nodes": {"items": []}, "NodeNames": []}
    for body in (both, {"Pod": pod("web-0")}, {"NodeNames": []}):
        answer = await harness.client.post(path, json=body)
        assert problem(answer, 422) == "InvalidManifest"


async def test_preempt_chooses_its_own_victims_and_drops_nodes_that_do_not_help(
    harness: Harness,
) -> None:
    await harness.configure(placePendingPods=False, priorityClasses={"high": 100})
    uids = {}
    for name in ("n1", "n2", "n3"):
        await harness.put_node(name, **{"kubernetes.io/hostname": name})
    for name, on, cpu in (("a", "n1", "1"), ("b", "n1", "3"), ("c", "n2", "4")):
        sized = pod(name, nodeSelector={"kubernetes.io/hostname": on})
        sized["spec"]["containers"][0]["resources"] = {"requests": {"cpu": cpu}}
        uids[name] = (await harness.place(sized))["results"][0]["uid"]
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "keep", "namespace": "shop"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "maxUnavailable": 0},
    }
    await harness.put("namespaces/shop/poddisruptionbudgets/keep", budget)
    asked = pod("urgent", priorityClassName="high")
    asked["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "2"}}
    guessed = {"Pods": [{"UID": uids["a"]}], "NumPDBViolations": 0}
    meta = {
        "Pod": {**asked, "status": {"phase": "Pending"}},
        "NodeNameToVictims": None,
        "NodeNameToMetaVictims": {"n1": guessed, "n3": guessed, "n9": guessed},
    }
    whole = {
        "Pod": asked,
        "NodeNameToVictims": {"n2": {"Pods": [pod("c")], "NumPDBViolations": 0}},
        "NodeNameToMetaVictims": None,
    }
    path = f"{CLUSTER}/extender/preempt"
    found = {}
    for body in (meta, whole):
        answer = await harness.client.post(path, json=body)
        assert answer.status_code == 200, answer.text
        result = msgspec.json.decode(answer.content, type=PreemptionResult)
        found.update(result.NodeNameToMetaVictims)
    # n3 has room for the pod, so nobody has to leave it; n9 is unknown.
    assert {name: [each.UID for each in found[name].Pods] for name in found} == {
        "n1": [uids["b"]],
        "n2": [uids["c"]],
    }
    assert {each.NumPDBViolations for each in found.values()} == {1}
    both = {**whole, "NodeNameToMetaVictims": {}}
    assert problem(await harness.client.post(path, json=both), 422) == "InvalidManifest"
    answer = await harness.client.get(f"{CLUSTER}/namespaces/shop/pods/b")
    assert "deletionTimestamp" not in answer.json()["metadata"]


async def test_a_node_whose_victims_may_have_gone_is_left_out_as_long_as_others_are_left(
    harness: Harness,
) -> None:
    """A kube-scheduler 1.30 gives up its attempt if it does not find one of the victims."""
    await harness.configure(placePendingPods=False, priorityClasses={"high": 100})
    uids = {}
    for number in ("1", "2"):
        await harness.put_node(f"n{number}", **{"kubernetes.io/hostname": f"n{number}"})
        sized = pod(f"low-{number}", nodeSelector={"kubernetes.io/hostname": f"n{number}"})
        sized["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "4"}}
        uids[f"n{number}"] = (await harness.place(sized))["results"][0]["uid"]
    asked = pod("urgent", priorityClassName="high")

    async def left(*, whole: bool, **named: str) -> set[str]:
        metas = {
            name: {"Pods": [{"UID": uid}], "NumPDBViolations": 0} for name, uid in named.items()
        }
        pods = {
            name: {"Pods": [{"metadata": {"uid": uid}}, {"metadata": {"uid": []}}]}
            for name, uid in named.items()
        }
        body = {
            "Pod": asked,
            "NodeNameToVictims": pods if whole else None,
            "NodeNameToMetaVictims": None if whole else metas,
        }
        answer = await harness.client.post(f"{CLUSTER}/extender/preempt", json=body)
        assert answer.status_code == 200, answer.text
        found = msgspec.json.decode(answer.content, type=PreemptionResult).NodeNameToMetaVictims
        assert all([each.UID for each in found[name].Pods] == [uids[name]] for name in found)
        return set(found)

    for whole in (False, True):
        assert await left(whole=whole, **uids) == {"n1", "n2"}
        assert await left(whole=whole, n1="gone", n2=uids["n2"]) == {"n2"}
        assert await left(whole=whole, n1="gone", n2="gone") == {"n1", "n2"}
