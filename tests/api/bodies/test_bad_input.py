"""Whatever arrives is answered with a 4xx that says why: 500 is always a bug."""

import json

import pytest

from tests.api.harness import CLUSTER, Harness, node, pod, problem

POD = f"{CLUSTER}/namespaces/shop/pods/web-0"
WRITES = {
    "put pod": ("PUT", POD),
    "put node": ("PUT", f"{CLUSTER}/nodes/n1"),
    "put namespace": ("PUT", f"{CLUSTER}/namespaces/shop"),
    "put cluster": ("PUT", CLUSTER),
    "patch pod": ("PATCH", POD),
    "patch cluster": ("PATCH", CLUSTER),
    "delete pod": ("DELETE", POD),
    "apply": ("POST", f"{CLUSTER}/apply"),
    "place": ("POST", f"{CLUSTER}/placements"),
    "evict": ("POST", f"{POD}/eviction"),
    "bind": ("POST", f"{POD}/binding"),
    "simulate": ("POST", "/v1/simulations"),
}
MALFORMED = {
    "cut off": b'{"a": ',
    "nothing but space": b"   ",
    "trailing": b'{"metadata": {}} {}',
    "not UTF-8": b'{"metadata": {"name": "\xff"}}',
    "lone surrogate": b'{"metadata": {"name": "\\ud800"}}',
    "NaN": b'{"metadata": NaN}',
    "infinity": b'{"metadata": -Infinity}',
    "deep": b'{"metadata": ' + b"[" * 1000 + b"]" * 1000 + b"}",
    "very deep": b"[" * 100_000,
    "duplicate key": b'{"metadata": {"name": "a"}, "metadata": {"name": "b"}}',
    "duplicate key inside": b'{"metadata": {"name": "a", "name": "b"}}',
    "single quotes": b"{'metadata': {}}",
    "comment": b'{"metadata": {} /* no */}',
    "byte order mark": b'\xef\xbb\xbf{"metadata": {}}',
}


OPTIONAL_BODIES = {"delete pod", "evict"}
MALFORMED_WRITES = [
    (write, content)
    for write in WRITES
    for content in MALFORMED
    if not (write in OPTIONAL_BODIES and content == "nothing but space")
]


@pytest.mark.parametrize(("write", "content"), MALFORMED_WRITES)
async def test_malformed_json(harness: Harness, write: str, content: str) -> None:
    method, path = WRITES[write]
    answer = await harness.client.request(
        method, path, content=MALFORMED[content], headers={"content-type": "application/json"}
    )
    assert problem(answer, 400) == "MalformedJSON"


OTHER_JSON = [b"null", b"1", b'"text"', b"[]", b"true", b"[{}]"]


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("content", OTHER_JSON)
async def test_json_that_is_no_object(harness: Harness, write: str, content: bytes) -> None:
    method, path = WRITES[write]
    await harness.put_pod("web-0")
    answer = await harness.client.request(
        method, path, content=content, headers={"content-type": "application/json"}
    )
    assert problem(answer, 422) == "InvalidManifest"


def changed(path: str, value: object, base: dict) -> dict:
    """A copy of a manifest with one value replaced, at `a.b.0.c`."""
    copy = json.loads(json.dumps(base))
    target, *keys = copy, *path.split(".")
    for key in keys[:-1]:
        target = target[int(key)] if isinstance(target, list) else target.setdefault(key, {})
    target[keys[-1]] = value
    return copy


REQUESTS = "spec.containers.0.resources.requests.cpu"
PODS = {
    "NUL": ("metadata.annotations", {"a": "x\0y"}),
    "NUL in a key": ("metadata.annotations", {"x\0y": "a"}),
    "large integer": ("spec.priority", 2**63),
    "huge integer": ("spec.anything", 10**400),
    "huge float": ("spec.anything", 10**400 * 10),
    "exponent": (REQUESTS, "1e400"),
    "exponent with suffix": (REQUESTS, "1e400Gi"),
    "long quantity": (REQUESTS, "1" * 33),
    "negative request": (REQUESTS, "-1"),
    "beyond int64": (REQUESTS, "9223372036854775808"),
    "quantity with a newline": (REQUESTS, "1\n"),
    "name with a newline": ("metadata.name", "web-0\n"),
    "label": ("metadata.labels", {"a": "-"}),
    "label key": ("metadata.labels", {"a b": "c"}),
    "label no string": ("metadata.labels", {"a": 1}),
    "labels no object": ("metadata.labels", []),
    "skew": ("spec.topologySpreadConstraints", [{"maxSkew": 0, "topologyKey": "zone"}]),
    "metadata no object": ("metadata", []),
    "spec no object": ("spec", "x"),
    "containers no list": ("spec.containers", {}),
    "container no object": ("spec.containers", [None]),
    "kind": ("kind", "Node"),
    "kind no string": ("kind", 1),
    "version": ("apiVersion", "v2"),
    "resource version": ("metadata.resourceVersion", 7),
    "uid": ("metadata.uid", 7),
    "timestamp": ("metadata.creationTimestamp", "yesterday"),
}


@pytest.mark.parametrize("case", PODS)
async def test_invalid_pods_name_the_field(harness: Harness, case: str) -> None:
    body = changed(*PODS[case], pod("web-0"))
    direct = await harness.client.put(POD, json=body)
    assert problem(direct, 422) == "InvalidManifest"
    placed = await harness.client.post(f"{CLUSTER}/placements", json={"pods": [body]})
    assert problem(placed, 422) == "InvalidManifest"
    fields = [error["field"] for error in direct.json()["errors"]]
    assert all(fields), fields
    assert {f"pods[0].{field}" for field in fields} & {
        error["field"] for error in placed.json()["errors"]
    } or case in {"name with a newline", "kind"}


NODES = {
    "NUL": ("metadata.annotations", {"a": "\0"}),
    "taint": ("spec.taints", [{"key": "a", "effect": "Never"}]),
    "quantity": ("status.allocatable", {"cpu": "lots"}),
    "quantities no object": ("status.allocatable", ["1"]),
    "status no object": ("status", 1),
    "name": ("metadata.name", "UPPER"),
}


@pytest.mark.parametrize("case", NODES)
async def test_invalid_nodes(harness: Harness, case: str) -> None:
    body = changed(*NODES[case], node("n1"))
    answer = await harness.client.put(f"{CLUSTER}/nodes/n1", json=body)
    assert problem(answer, 422) == "InvalidManifest"


STRANGE_PATHS = [
    f"{CLUSTER}/nodes/UPPER",
    f"{CLUSTER}/nodes/%F0%9F%90%99",
    f"{CLUSTER}/nodes/" + "a" * 300,
    f"{CLUSTER}/namespaces/%20/pods/%20",
    "/v1/clusters/%F0%9F%90%99",
    "/v1/clusters/" + "a" * 300 + "/nodes",
]


@pytest.mark.parametrize("path", STRANGE_PATHS)
async def test_strange_names_are_not_found(over_each_store: Harness, path: str) -> None:
    answer = await over_each_store.client.get(path)
    assert problem(answer, 404) in {"NotFound", "NoSuchPath"}


@pytest.mark.parametrize("path", [p for p in STRANGE_PATHS if "/nodes/" in p])
async def test_strange_names_cannot_be_put(harness: Harness, path: str) -> None:
    answer = await harness.client.put(path, json={})
    assert answer.status_code in {404, 422}
    assert problem(answer, answer.status_code)


PATCHES = {
    "merge to nonsense": ("application/merge-patch+json", {"spec": {"containers": 1}}),
    "merge the name": ("application/merge-patch+json", {"metadata": {"name": "other"}}),
    "bad labels": ("application/merge-patch+json", {"metadata": {"labels": {"a": 1}}}),
    "unknown operation": ("application/json-patch+json", [{"op": "jump", "path": "/a"}]),
    "no such path": ("application/json-patch+json", [{"op": "remove", "path": "/none"}]),
    "no pointer": ("application/json-patch+json", [{"op": "remove", "path": "none"}]),
    "no list": ("application/json-patch+json", {"op": "remove"}),
    "the whole": ("application/json-patch+json", [{"op": "replace", "path": "", "value": 1}]),
    "strategic nonsense": (
        "application/strategic-merge-patch+json",
        {"spec": {"containers": [{"$patch": "explode", "name": "c"}]}},
    ),
    "move a placed pod's spec": (
        "application/merge-patch+json",
        {"spec": {"nodeSelector": {"a": "b"}}},
    ),
}


@pytest.mark.parametrize("case", PATCHES)
async def test_bad_patches_change_nothing(harness: Harness, case: str) -> None:
    await harness.put_node("n1")
    before = (await harness.put_pod("web-0", nodeName="n1")).json()
    content_type, patch = PATCHES[case]
    answer = await harness.client.patch(POD, json=patch, headers={"content-type": content_type})
    assert problem(answer, 422) == "InvalidManifest"
    assert (await harness.client.get(POD)).json() == before


async def test_options_are_answered(harness: Harness) -> None:
    answer = await harness.client.options(POD)
    assert answer.status_code == 204
    assert answer.headers["allow"] == "DELETE, GET, HEAD, OPTIONS, PATCH, PUT"
    answer = await harness.client.options(f"{CLUSTER}/placements")
    assert answer.headers["allow"] == "OPTIONS, POST"
