"""Reads with `fields`: objects have what was asked for and no more, in every way to read them."""

from typing import Any

import pytest

from tests.api.conftest import MakeHarness
from tests.api.harness import CLUSTER, Harness, node, pod, problem

PODS = f"{CLUSTER}/pods"
CHOSEN = r"fields=spec.nodeName,spec.containers.name,metadata.labels.example\.com/app"


def chosen(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"namespace": "shop", "name": name, "labels": {"example.com/app": name}},
        "spec": {"nodeName": "n1", "containers": [{"name": "c"}]},
    }


async def fill(harness: Harness) -> None:
    items: list[Any] = [node("n1")]
    for name in ("a", "b", "c"):
        items.append(pod(name, "shop", nodeName="n1", containers=[{"name": "c", "image": "i"}]))
        items[-1]["metadata"]["labels"] = {"example.com/app": name, "other": "yes"}
    answer = await harness.client.post(f"{CLUSTER}/apply", json={"kind": "List", "items": items})
    assert answer.status_code == 200, answer.text


async def test_every_read_has_the_chosen_fields_only(over_each_store: Harness) -> None:
    client = over_each_store.client
    await fill(over_each_store)
    revision = (await client.get(f"{PODS}?limit=1")).headers["moorage-revision"]
    for how in ("", "limit=9", f"revision={revision}", "limit=9&sort=metadata.name", "nodeName=n1"):
        answer = await client.get(f"{PODS}?{CHOSEN}&{how}".rstrip("&"))
        assert answer.json()["items"] == [chosen("a"), chosen("b"), chosen("c")], how
        assert answer.json()["metadata"]["resourceVersion"] == revision
    page = (await client.get(f"{PODS}?{CHOSEN}&limit=2")).json()
    rest = await client.get(f"{PODS}?{CHOSEN}&limit=2&continue={page['metadata']['continue']}")
    assert page["items"] + rest.json()["items"] == [chosen("a"), chosen("b"), chosen("c")]
    one = f"{CLUSTER}/namespaces/shop/pods/a?{CHOSEN}"
    assert (await client.get(one)).json() == chosen("a")
    assert (await client.get(f"{one}&revision={revision}")).json() == chosen("a")


async def test_a_tag_is_of_the_chosen_fields(harness: Harness) -> None:
    await fill(harness)
    for path in (PODS, f"{CLUSTER}/namespaces/shop/pods/a"):
        tags = set()
        for query in ("", "?fields=spec.nodeName", "?fields=spec.containers"):
            tag = (await harness.client.get(path + query)).headers["etag"]
            again = await harness.client.get(path + query, headers={"if-none-match": tag})
            assert again.status_code == 304
            tags.add(tag)
        assert len(tags) == 3
    stale = {"if-match": tag}
    answer = await harness.client.delete(path, headers=stale)
    assert problem(answer, 412) == "PreconditionFailed"


@pytest.mark.parametrize(
    "fields",
    [
        "",
        "spec..nodeName",
        "spec.nodename",
        "foo",
        "spec.tolerations.foo",
        "spec,",
        "metadata.name[",
    ],
)
async def test_a_path_that_no_object_has_is_refused(harness: Harness, fields: str) -> None:
    for path in (PODS, f"{CLUSTER}/namespaces/shop/pods/a"):
        answer = await harness.client.get(path, params={"fields": fields})
        assert problem(answer, 400) == "MalformedRequest"
        assert [each["field"] for each in answer.json()["errors"]] == ["fields"]


async def test_fields_are_limited_in_number_and_depth(make_harness: MakeHarness) -> None:
    harness = await make_harness(fields_max=2)
    deep = "metadata.labels" + ".a" * 19
    for fields, status in (("spec,status", 200), ("spec,status,kind", 400), (deep, 400)):
        answer = await harness.client.get(PODS, params={"fields": fields})
        assert answer.status_code == status, answer.text
