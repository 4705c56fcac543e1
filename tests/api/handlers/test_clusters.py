"""Clusters and their configuration."""

import asyncio

import pytest

from tests.api.harness import CLUSTER, Harness, problem

OTHER = "/v1/clusters/other"


async def test_the_default_cluster_is_there(over_each_store: Harness) -> None:
    answer = await over_each_store.client.get(CLUSTER)
    body = answer.json()
    assert answer.status_code == 200
    assert body["name"] == "default"
    assert body["config"]["daemonNamespaces"] == ["kube-system"]
    assert body["counts"] == {"nodes": 0, "pods": 0, "pending": 0}
    assert str(body["revision"]) == answer.headers["moorage-revision"]


async def test_clusters_are_made_listed_and_deleted(over_each_store: Harness) -> None:
    client = over_each_store.client
    created = await client.put(OTHER, json={"config": {"hardPodAffinityWeight": 7}})
    assert created.status_code == 201, created.text
    listed = (await client.get("/v1/clusters")).json()["items"]
    assert [cluster["name"] for cluster in listed] == ["default", "other"]
    assert listed[1]["config"]["hardPodAffinityWeight"] == 7
    deleted = await client.delete(OTHER)
    assert deleted.status_code == 200
    assert deleted.json()["name"] == "other"
    assert problem(await client.get(OTHER), 404) == "NotFound"
    assert problem(await client.delete(OTHER), 404) == "NotFound"


async def test_a_cluster_made_anew_is_empty(over_each_store: Harness) -> None:
    client = over_each_store.client
    for _ in range(2):
        assert (await client.put(OTHER, json={"config": {}})).status_code == 201
        assert (await client.get(f"{OTHER}/nodes")).json()["items"] == []
        put = await client.put(f"{OTHER}/nodes/n1", json={"metadata": {"name": "n1"}})
        assert put.status_code == 201
        assert (await client.delete(OTHER)).json()["counts"]["nodes"] == 1


async def test_counts(over_each_store: Harness) -> None:
    await over_each_store.put_node("n1")
    await over_each_store.put_pod("placed", nodeName="n1")
    await over_each_store.put_pod("waiting", schedulingGates=[{"name": "g"}])
    counts = (await over_each_store.client.get(CLUSTER)).json()["counts"]
    assert counts == {"nodes": 1, "pods": 2, "pending": 1}


async def test_put_replaces_the_configuration(over_each_store: Harness) -> None:
    client = over_each_store.client
    first = await client.put(CLUSTER, json={"config": {"placePendingPods": False}})
    assert first.json()["config"]["placePendingPods"] is False
    again = await client.put(CLUSTER, json={"config": {"placePendingPods": False}})
    assert again.json()["revision"] == first.json()["revision"]
    second = await client.put(CLUSTER, json=first.json() | {"config": {}})
    assert second.status_code == 200
    assert second.json()["config"]["placePendingPods"] is True
    assert second.json()["revision"] == first.json()["revision"] + 1


PATCHES = {
    "application/merge-patch+json": {"config": {"hardPodAffinityWeight": 3}},
    "application/json": {"config": {"hardPodAffinityWeight": 3}},
    "application/strategic-merge-patch+json": {"config": {"hardPodAffinityWeight": 3}},
    "application/json-patch+json": [
        {"op": "replace", "path": "/config/hardPodAffinityWeight", "value": 3}
    ],
}


@pytest.mark.parametrize("content_type", PATCHES)
async def test_patch_changes_single_settings(harness: Harness, content_type: str) -> None:
    await harness.configure(placePendingPods=False)
    answer = await harness.client.patch(
        CLUSTER, json=PATCHES[content_type], headers={"content-type": content_type}
    )
    assert answer.status_code == 200, answer.text
    config = answer.json()["config"]
    assert (config["hardPodAffinityWeight"], config["placePendingPods"]) == (3, False)


async def test_if_match_guards_the_configuration(over_each_store: Harness) -> None:
    client = over_each_store.client
    etag = (await client.get(CLUSTER)).headers["etag"]
    await over_each_store.put_node("n1")
    answer = await client.patch(
        CLUSTER, json={"config": {"placePendingPods": False}}, headers={"if-match": etag}
    )
    assert answer.status_code == 200, answer.text
    stale = await client.patch(CLUSTER, json={"config": {}}, headers={"if-match": etag})
    assert problem(stale, 412) == "PreconditionFailed"


BAD = {
    "unknown setting": ({"config": {"semantic": "Kubernetes"}}, "config.semantic"),
    "bad value": ({"config": {"hardPodAffinityWeight": 101}}, "config.hardPodAffinityWeight"),
    "bad type": ({"config": {"placePendingPods": "yes"}}, "config.placePendingPods"),
    "plugin no text": (
        {
            "config": {
                "profiles": [
                    {"schedulerName": "own", "plugins": {"filter": {"enabled": [{"name": {}}]}}}
                ]
            }
        },
        "config.profiles[0].plugins.filter.enabled[0].name",
    ),
    "config no object": ({"config": []}, "config"),
    "beside config": ({"config": {}, "settings": {}}, "settings"),
}


@pytest.mark.parametrize("case", BAD)
async def test_bad_configurations_name_the_setting(harness: Harness, case: str) -> None:
    body, field = BAD[case]
    for method in ("PUT", "PATCH"):
        answer = await harness.client.request(method, CLUSTER, json=body)
        assert problem(answer, 422) == "InvalidManifest"
        assert [error["field"] for error in answer.json()["errors"]] == [field]
    created = await harness.client.put(OTHER, json=body)
    assert problem(created, 422) == "InvalidManifest"


async def test_a_patch_without_settings_is_refused(harness: Harness) -> None:
    answer = await harness.client.patch(CLUSTER, json={})
    assert problem(answer, 422) == "InvalidManifest"
    (error,) = answer.json()["errors"]
    assert (error["field"], error["message"]) == ("config", "is required")


@pytest.mark.parametrize("body", [{}, {"name": "other"}])
async def test_a_put_without_config_makes_sure_that_the_cluster_is_there(
    over_each_store: Harness, body: dict[str, str]
) -> None:
    client = over_each_store.client
    tried = await client.put(f"{OTHER}?dryRun=true", json=body)
    assert tried.status_code == 201, tried.text
    made = await client.put(OTHER, json=body)
    assert made.status_code == 201, made.text
    assert made.json()["config"] == (await client.get(CLUSTER)).json()["config"]
    changed = await client.patch(OTHER, json={"config": {"evictionsPerMinute": 5}})
    for query in ("", "?dryRun=true"):
        again = await client.put(OTHER + query, json=body)
        assert again.status_code == 200, again.text
        assert again.json() == changed.json()


async def test_a_put_creates_and_replaces_nothing_if_asked(over_each_store: Harness) -> None:
    client, only = over_each_store.client, {"if-none-match": "*"}
    config = {"config": {"hardPodAffinityWeight": 7}}
    answers = await asyncio.gather(
        *(client.put(OTHER, json=config, headers=only) for _ in range(5))
    )
    assert sorted(each.status_code for each in answers) == [201, 412, 412, 412, 412]
    before = (await client.get(OTHER)).json()
    for body in ({"config": {}}, {}):
        for query in ("", "?dryRun=true"):
            answer = await client.put(OTHER + query, json=body, headers=only)
            assert problem(answer, 412) == "PreconditionFailed"
    assert (await client.get(OTHER)).json() == before


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE"])
async def test_every_write_of_a_cluster_honors_conditions(
    over_each_store: Harness, method: str
) -> None:
    client = over_each_store.client
    await client.put(OTHER, json={})
    stale = (await client.get(OTHER)).headers["etag"]
    await client.patch(OTHER, json={"config": {"hardPodAffinityWeight": 3}})
    await client.put(f"{OTHER}/nodes/n1", json={"metadata": {"name": "n1"}})
    before = await client.get(OTHER)
    current = before.headers["etag"]
    body = None if method == "DELETE" else {"config": {"hardPodAffinityWeight": 4}}
    for query in ("", "?dryRun=true"):
        for headers in (
            {"if-match": stale},
            {"if-match": '"9-9"'},
            {"if-match": f"W/{current}"},
            {"if-none-match": "*"},
            {"if-none-match": current},
            {"if-match": current, "if-none-match": current},
        ):
            answer = await client.request(method, OTHER + query, json=body, headers=headers)
            assert problem(answer, 412) == "PreconditionFailed"
            assert (await client.get(OTHER)).json() == before.json()
    met = {"if-match": f"{stale}, {current}", "if-none-match": stale}
    for query in ("?dryRun=true", ""):
        answer = await client.request(method, OTHER + query, json=body, headers=met)
        assert answer.status_code == 200, answer.text
    after = await client.get(OTHER)
    if method == "DELETE":
        assert problem(after, 404) == "NotFound"
        gone = await client.delete(OTHER, headers={"if-match": current})
        assert problem(gone, 404) == "NotFound"
    else:
        assert after.json()["config"]["hardPodAffinityWeight"] == 4


async def test_no_version_of_a_cluster_that_is_not_there_matches(over_each_store: Harness) -> None:
    for condition in ("*", '"1"'):
        answer = await over_each_store.client.put(OTHER, json={}, headers={"if-match": condition})
        assert problem(answer, 412) == "PreconditionFailed"
    assert problem(await over_each_store.client.get(OTHER), 404) == "NotFound"


async def test_a_read_is_spared_to_who_has_the_configuration(over_each_store: Harness) -> None:
    client = over_each_store.client
    tag = (await client.get(CLUSTER)).headers["etag"]
    await over_each_store.put_node("n1")
    for known in (tag, f'W/{tag}, "9-9"', "*"):
        answer = await client.get(CLUSTER, headers={"if-none-match": known})
        assert (answer.status_code, answer.content) == (304, b"")
        assert answer.headers["etag"] == tag
        assert answer.headers["moorage-revision"] == "2"
    await over_each_store.configure(hardPodAffinityWeight=2)
    answer = await client.get(CLUSTER, headers={"if-none-match": tag})
    assert answer.status_code == 200
    assert answer.headers["etag"] != tag


async def test_a_json_patch_stays_within_the_configuration(harness: Harness) -> None:
    answer = await harness.client.patch(
        CLUSTER,
        json=[{"op": "replace", "path": "/name", "value": "x"}],
        headers={"content-type": "application/json-patch+json"},
    )
    assert problem(answer, 422) == "InvalidManifest"
    assert answer.json()["errors"][0]["field"] == "[0].path"


@pytest.mark.parametrize("name", ["UPPER", "a_b", "-a", "a" * 64, "a.b"])
async def test_bad_names_are_refused(harness: Harness, name: str) -> None:
    answer = await harness.client.put(f"/v1/clusters/{name}", json={"config": {}})
    assert problem(answer, 422) == "InvalidManifest"
