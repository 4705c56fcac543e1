"""Objects whose names are made of `metadata.generateName`."""

import re
from typing import Any

import msgspec
import pytest

from service.model.core.generate_name import SUFFIXES, suffix_of
from tests.api.harness import CLUSTER, Harness, node, pod, problem

PODS = f"{CLUSTER}/namespaces/shop/pods"
ENDING = "[bcdfghjklmnpqrstvwxz2456789]{5}"


def unnamed(prefix: str = "web-", **spec: Any) -> dict[str, Any]:
    made = pod("any", **spec)
    del made["metadata"]["name"]
    made["metadata"]["generateName"] = prefix
    return made


async def test_a_name_is_made_and_the_prefix_kept(over_each_store: Harness):
    names = set()
    for _ in range(3):
        answer = await over_each_store.client.post(PODS, json=unnamed())
        assert answer.status_code == 201, answer.text
        made = answer.json()
        assert re.fullmatch(f"web-{ENDING}", made["metadata"]["name"])
        assert made["metadata"]["generateName"] == "web-"
        names.add(made["metadata"]["name"])
        stored = await over_each_store.client.get(f"{PODS}/{made['metadata']['name']}")
        assert stored.json()["metadata"]["uid"] == made["metadata"]["uid"]
    assert len(names) == 3


async def test_a_replay_has_the_same_name(over_each_store: Harness):
    key = {"idempotency-key": "k"}
    first = await over_each_store.client.post(PODS, json=unnamed(), headers=key)
    again = await over_each_store.client.post(PODS, json=unnamed(), headers=key)
    assert again.json() == first.json()
    assert (again.status_code, again.headers["idempotent-replayed"]) == (201, "true")
    assert again.headers["etag"] == first.headers["etag"]
    assert len((await over_each_store.client.get(PODS)).json()["items"]) == 1


async def test_a_name_that_is_taken_is_drawn_again(harness: Harness, monkeypatch):
    drawn = iter(["bbbbb", "bbbbb", "ccccc", "ccccc", "ddddd", "ddddd"])
    monkeypatch.setattr("service.runtime.ids.RandomIds.suffix", lambda _: next(drawn))
    first = (await harness.client.post(PODS, json=unnamed())).json()
    second = (await harness.client.post(PODS, json=unnamed())).json()
    assert first["metadata"]["name"] == "web-bbbbb"
    assert second["metadata"]["name"] == "web-ccccc"
    placed = await harness.place(unnamed(), unnamed("api-"), onUnschedulable="Queue")
    assert [each["name"] for each in placed["results"]] == ["web-ddddd", "api-ddddd"]


async def test_what_has_a_name_is_created_once(over_each_store: Harness):
    both = pod("web-0")
    both["metadata"]["generateName"] = "web-"
    made = await over_each_store.client.post(PODS, json=both)
    assert made.json()["metadata"]["name"] == "web-0"
    again = await over_each_store.client.post(PODS, json=both)
    assert problem(again, 409) == "Conflict"
    assert "shop/web-0" in again.json()["detail"]
    dry = await over_each_store.client.post(f"{PODS}?dryRun=All", json=unnamed())
    assert dry.status_code == 201
    assert "resourceVersion" not in dry.json()["metadata"]
    assert len((await over_each_store.client.get(PODS)).json()["items"]) == 1


async def test_what_is_wrong_with_a_prefix_is_told(harness: Harness):
    neither = unnamed()
    del neither["metadata"]["generateName"]
    for sent, field, words in (
        (neither, "metadata.name", "generateName"),
        (unnamed("Web_"), "metadata.generateName", "makes no valid name"),
        (unnamed() | {"spec": {}}, "spec.containers", "required"),
    ):
        for path, body, before in (
            (PODS, sent, ""),
            (f"{CLUSTER}/placements", {"pods": [sent]}, "pods[0]."),
            (f"{CLUSTER}/apply", {"kind": "List", "items": [sent]}, "items[0]."),
        ):
            answer = await harness.client.post(path, json=body)
            assert problem(answer, 422) == "InvalidManifest"
            (error,) = answer.json()["errors"]
            assert error["field"] == before + field
            assert words in error["message"]
    other = await harness.client.post(PODS, json=pod("a", namespace="other"))
    assert other.json()["errors"][0]["field"] == "metadata.namespace"


async def test_long_prefixes_are_cut_as_by_an_api_server(harness: Harness):
    made = (await harness.client.post(PODS, json=unnamed("w" * 80))).json()
    assert re.fullmatch(f"w{{58}}{ENDING}", made["metadata"]["name"])


async def test_pods_are_placed_and_queued_with_made_names(over_each_store: Harness):
    await over_each_store.put_node("n1")
    key = {"idempotency-key": "k"}
    body = {
        "pods": [unnamed(), unnamed(), unnamed(nodeSelector={"no": "node"}), pod("named")],
        "onUnschedulable": "Queue",
    }
    first = await over_each_store.client.post(f"{CLUSTER}/placements", json=body, headers=key)
    again = await over_each_store.client.post(f"{CLUSTER}/placements", json=body, headers=key)
    results = first.json()["results"]
    assert [each["outcome"] for each in results] == ["Placed", "Placed", "Queued", "Placed"]
    assert again.json()["results"] == results
    names = {each["name"] for each in results}
    stored = (await over_each_store.client.get(PODS)).json()["items"]
    assert {each["metadata"]["name"] for each in stored} == names
    assert len(names) == 4


async def test_each_copy_of_a_template_gets_its_own_name(over_each_store: Harness):
    await over_each_store.put_node("n1")
    template = {"metadata": {"generateName": "web-"}, "spec": pod("any")["spec"]}
    answer = await over_each_store.client.post(
        f"{CLUSTER}/placements",
        json={"template": template, "replicas": 3, "policy": "AllOrNothing"},
    )
    names = [each["name"] for each in answer.json()["results"]]
    assert all(re.fullmatch(f"web-{ENDING}", name) for name in names)
    assert len({*names}) == 3


KINDS = {
    "nodes": node("any"),
    "namespaces": {"kind": "Namespace", "metadata": {}},
    "resourcequotas": {"kind": "ResourceQuota", "metadata": {}, "spec": {}},
    "podgroups": {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {},
        "spec": {"minMember": 1},
    },
    "replicasets": {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {}},
}


async def test_a_list_and_lines_make_names_for_objects_of_all_kinds(over_each_store: Harness):
    items = [{**each, "metadata": {"generateName": "a-"}} for each in KINDS.values()]
    await over_each_store.put_node("named")
    body = {"kind": "List", "items": [node("named"), *items]}
    answer = (await over_each_store.client.post(f"{CLUSTER}/apply", json=body)).json()
    assert (answer["created"], answer["unchanged"]) == (len(items), 1)
    assert [each["item"] for each in answer["generated"]] == [1, 2, 3, 4, 5]
    lines = await over_each_store.client.post(
        f"{CLUSTER}/apply",
        content=msgspec.json.Encoder().encode_lines(items),
        headers={"content-type": "application/x-ndjson"},
    )
    told = [msgspec.json.decode(each) for each in lines.content.splitlines()]
    assert [each["result"] for each in told] == ["Created"] * len(items)
    exported = (await over_each_store.client.get(f"{CLUSTER}/export")).json()["items"]
    stored = {(each["kind"], each["metadata"]["name"]) for each in exported}
    for each in (*answer["generated"], *told):
        assert re.fullmatch(f"a-{ENDING}", each["name"])
        assert (each["kind"], each["name"]) in stored


async def test_a_priority_class_has_to_be_named(harness: Harness):
    sent = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"generateName": "a-"},
        "value": 1,
    }
    answer = await harness.client.post(f"{CLUSTER}/apply", json={"kind": "List", "items": [sent]})
    assert answer.json()["errors"][0]["field"] == "items[0].metadata.generateName"


@pytest.mark.parametrize("number", [0, 1, SUFFIXES - 1])
def test_each_number_stands_for_one_ending(number: int):
    assert re.fullmatch(ENDING, suffix_of(number))
    assert suffix_of(number) != suffix_of((number + 1) % SUFFIXES)
