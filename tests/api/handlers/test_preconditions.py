"""Conditions of writes: a write that names the state it was planned on is made on no other (RFC 9110, 13)."""

import re
from typing import Any

import httpx
import pytest

from service.api.resources.objects.registry import RESOURCES
from tests.api.conftest import MakeHarness
from tests.api.harness import CLUSTER, Harness, node, pod, problem
from tests.kept_kinds import QUIET

NODE = f"{CLUSTER}/nodes/n1"
ABSENT = f"{CLUSTER}/nodes/absent"
WRITES = ("PUT", "PATCH", "DELETE")

IF_MATCH = {
    '"{current}"': 200,
    "*": 200,
    " * ": 200,
    '"{stale}", "{current}"': 200,
    '"{current}","{stale}"': 200,
    'W/"x", "{current}"': 200,
    '"{stale}"': 412,
    '"{stale}", "x"': 412,
    '"{current}0"': 412,
    '"0{current}"': 412,
    '"999999"': 412,
    'W/"{current}"': 412,
    'W/"{stale}"': 412,
    '"{stale}", W/"{current}"': 412,
    '""': 412,
    '"*"': 412,
    'W/"*"': 412,
    "{current}": 400,
    '"{current}': 400,
    '"{stale}" "{current}"': 400,
    '*, "{current}"': 400,
    "**": 400,
    "w/x": 400,
    "": 400,
}

KINDS = {
    "nodes/x": node("x"),
    "namespaces/x": {"metadata": {"name": "x"}},
    "namespaces/shop/pods/x": pod("x", schedulerName="other"),
    "namespaces/shop/resourcequotas/x": {
        "metadata": {"name": "x"},
        "spec": {"hard": {"pods": "9"}},
    },
    "namespaces/shop/podgroups/x": {"metadata": {"name": "x"}, "spec": {"minMember": 2}},
}


class Versions:
    """A node that was changed once, so that there is a state before the present one."""

    def __init__(self, harness: Harness, first: dict[str, Any], second: dict[str, Any]) -> None:
        self.harness = harness
        self.stale = first["metadata"]["resourceVersion"]
        self.current = second["metadata"]["resourceVersion"]
        self.uid = second["metadata"]["uid"]

    async def write(self, method: str, path: str = NODE, *, body: Any = None, **headers: str):
        return await write(self.harness, method, path, body=body, **headers)


async def write(
    harness: Harness, method: str, path: str, *, body: Any = None, **headers: str
) -> httpx.Response:
    """A write that changes something, unless a condition given as `if_match=…` keeps it from it."""
    if body is None:
        body = {"PUT": node("n1", turn="last"), "PATCH": labelled("last")}.get(method)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return await harness.client.request(method, path, json=body, headers=named)


def labelled(turn: str, **metadata: Any) -> dict[str, Any]:
    return {"metadata": {"labels": {"turn": turn}, **metadata}}


@pytest.fixture
async def versions(over_each_store: Harness) -> Versions:
    return await two_versions(over_each_store)


@pytest.fixture
async def in_memory(make_harness: MakeHarness) -> Versions:
    return await two_versions(await make_harness())


async def two_versions(harness: Harness) -> Versions:
    first = (await harness.put_node("n1", turn="1")).json()
    return Versions(harness, first, (await harness.put_node("n1", turn="2")).json())


async def assert_only_done_if(versions: Versions, answer: httpx.Response, status: int) -> None:
    """The answer has this status, and what it refuses has not been done."""
    assert answer.status_code == status, answer.text
    present = await versions.harness.client.get(NODE)
    if status >= 400:
        assert present.json()["metadata"]["resourceVersion"] == versions.current
        assert present.headers["moorage-revision"] == versions.current


@pytest.mark.parametrize("method", WRITES)
async def test_a_write_is_refused_whose_if_match_does_not_hold(
    in_memory: Versions, method: str
) -> None:
    for condition, status in IF_MATCH.items():
        if status != 200:
            given = condition.format(current=in_memory.current, stale=in_memory.stale)
            answer = await in_memory.write(method, if_match=given)
            await assert_only_done_if(in_memory, answer, status)


@pytest.mark.parametrize("method", WRITES)
@pytest.mark.parametrize(
    "condition", [condition for condition, status in IF_MATCH.items() if status == 200]
)
async def test_a_write_is_made_whose_if_match_holds(
    in_memory: Versions, method: str, condition: str
) -> None:
    given = condition.format(current=in_memory.current, stale=in_memory.stale)
    await assert_only_done_if(in_memory, await in_memory.write(method, if_match=given), 200)


@pytest.mark.parametrize("method", WRITES)
async def test_a_stale_if_match_is_refused_over_each_store(versions: Versions, method: str) -> None:
    stale = await versions.write(method, if_match=f'"{versions.stale}"')
    assert problem(stale, 412) == "PreconditionFailed"
    await assert_only_done_if(versions, stale, 412)
    current = await versions.write(method, if_match=f'"{versions.current}"')
    await assert_only_done_if(versions, current, 200)


@pytest.mark.parametrize("method", WRITES)
@pytest.mark.parametrize("path", KINDS)
async def test_if_match_is_obeyed_by_the_writes_of_every_kind(
    harness: Harness, path: str, method: str
) -> None:
    first = await harness.put(path, KINDS[path])
    second = await write(harness, "PATCH", f"{CLUSTER}/{path}", body=labelled("2"))
    body = {"PUT": KINDS[path], "PATCH": labelled("3"), "DELETE": None}[method]
    for etag, status in ((first.headers["etag"], 412), (second.headers["etag"], 200)):
        answer = await write(harness, method, f"{CLUSTER}/{path}", body=body, if_match=etag)
        assert answer.status_code == status, answer.text


@pytest.mark.parametrize("condition", ["*", '"1"'])
async def test_of_what_is_not_there_no_version_matches(harness: Harness, condition: str) -> None:
    """A condition is looked at where there would be success without it: deleting nothing is 404."""
    put = await write(harness, "PUT", ABSENT, body=node("absent"), if_match=condition)
    assert problem(put, 412) == "PreconditionFailed"
    for method in ("PATCH", "DELETE"):
        answer = await write(harness, method, ABSENT, if_match=condition)
        assert problem(answer, 404) == "NotFound"
    assert problem(await harness.client.get(ABSENT), 404) == "NotFound"


IF_NONE_MATCH = {
    "*": 412,
    '"{current}"': 412,
    'W/"{current}"': 412,
    '"{stale}", "{current}"': 412,
    '"{stale}"': 200,
    '"x", W/"y"': 200,
    '"*"': 200,
    "{current}": 400,
    "": 400,
}


@pytest.mark.parametrize("condition", IF_NONE_MATCH)
async def test_if_none_match_keeps_a_put_from_what_is_there(
    in_memory: Versions, condition: str
) -> None:
    given = condition.format(current=in_memory.current, stale=in_memory.stale)
    answer = await in_memory.write("PUT", if_none_match=given)
    await assert_only_done_if(in_memory, answer, IF_NONE_MATCH[condition])


@pytest.mark.parametrize("condition", ["*", '"1"', 'W/"1"', '"*"'])
async def test_if_none_match_lets_a_put_create(harness: Harness, condition: str) -> None:
    body = node("absent")
    created = await write(harness, "PUT", ABSENT, body=body, if_none_match=condition)
    assert created.status_code == 201, created.text


READ = {
    '"{current}"': 304,
    'W/"{current}"': 304,
    "*": 304,
    '"{stale}", "{current}"': 304,
    '"{stale}"': 200,
    '"*"': 200,
    '"{current}0"': 200,
    "{current}": 400,
}


@pytest.mark.parametrize("condition", READ)
async def test_a_read_is_spared_to_who_has_the_present_version(
    in_memory: Versions, condition: str
) -> None:
    given = condition.format(current=in_memory.current, stale=in_memory.stale)
    answer = await in_memory.harness.client.get(NODE, headers={"if-none-match": given})
    assert answer.status_code == READ[condition], answer.text
    assert bool(answer.content) == (READ[condition] != 304)


BODIES = {
    "current version": ({"resourceVersion": "{current}"}, 200),
    "stale version": ({"resourceVersion": "{stale}"}, 409),
    "version to come": ({"resourceVersion": "999999"}, 409),
    "more than the version": ({"resourceVersion": "{current}0"}, 409),
    "own uid": ({"uid": "{uid}"}, 200),
    "another uid": ({"uid": "another"}, 409),
    "own uid, stale version": ({"uid": "{uid}", "resourceVersion": "{stale}"}, 409),
    "another uid, current version": ({"uid": "another", "resourceVersion": "{current}"}, 409),
    "both": ({"uid": "{uid}", "resourceVersion": "{current}"}, 200),
}


@pytest.mark.parametrize("method", WRITES)
@pytest.mark.parametrize("case", BODIES)
async def test_version_and_uid_in_the_body_are_conditions(
    in_memory: Versions, method: str, case: str
) -> None:
    """Of a DELETE they are its `preconditions`."""
    named, status = BODIES[case]
    known = {"current": in_memory.current, "stale": in_memory.stale, "uid": in_memory.uid}
    metadata = {name: value.format(**known) for name, value in named.items()}
    body: dict[str, Any] = {"kind": "DeleteOptions", "preconditions": metadata}
    if method != "DELETE":
        body = {**node("n1"), **labelled("last", name="n1", **metadata)}
    answer = await in_memory.write(method, body=body)
    await assert_only_done_if(in_memory, answer, status)
    if status == 409:
        assert problem(answer, 409) == "RevisionConflict"


async def test_a_version_in_the_body_keeps_a_put_from_creating(harness: Harness) -> None:
    body = {**node("absent"), "metadata": {"name": "absent", "resourceVersion": "1"}}
    answer = await write(harness, "PUT", ABSENT, body=body)
    assert problem(answer, 409) == "RevisionConflict"
    assert problem(await harness.client.get(ABSENT), 404) == "NotFound"


@pytest.mark.parametrize(
    ("tag", "version", "status"), [("stale", "current", 412), ("current", "stale", 409)]
)
@pytest.mark.parametrize("method", WRITES)
async def test_of_two_conditions_both_have_to_hold(
    in_memory: Versions, method: str, tag: str, version: str, status: int
) -> None:
    metadata = {"resourceVersion": getattr(in_memory, version)}
    body: dict[str, Any] = {"preconditions": metadata}
    if method != "DELETE":
        body = {**node("n1"), **labelled("last", name="n1", **metadata)}
    answer = await in_memory.write(method, body=body, if_match=f'"{getattr(in_memory, tag)}"')
    await assert_only_done_if(in_memory, answer, status)


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
@pytest.mark.parametrize(
    ("condition", "status"),
    [
        ('"{stale}"', 412),
        ('W/"{current}"', 412),
        ('"*"', 412),
        ("{current}", 400),
        ('"{stale}", "{current}"', 200),
        ("*", 200),
    ],
)
async def test_if_match_guards_the_configuration_in_every_form(
    harness: Harness, method: str, condition: str, status: int
) -> None:
    """Its tag is that of the configuration, whatever else has changed in the cluster since."""
    stale = (await harness.client.get(CLUSTER)).headers["etag"].strip('"')
    await harness.client.patch(CLUSTER, json={"config": {"hardPodAffinityWeight": 2}})
    await harness.put_node("n1")
    current = (await harness.client.get(CLUSTER)).headers["etag"].strip('"')
    assert current != stale
    answer = await harness.client.request(
        method,
        CLUSTER,
        json={"config": {"hardPodAffinityWeight": 3}},
        headers={"if-match": condition.format(stale=stale, current=current)},
    )
    assert answer.status_code == status, answer.text
    present = (await harness.client.get(CLUSTER)).json()["config"]
    assert present["hardPodAffinityWeight"] == (3 if status == 200 else 2)


WRITING = ("delete", "patch", "post", "put")
UNMET = {
    "If-Match": '"9-9"',
    "If-None-Match": "*",
    "If-Unmodified-Since": "Sat, 29 Oct 1994 19:43:31 GMT",
}
"""Conditions that do not hold of anything that is there."""
CHANGES = {
    "/v1/clusters/{cluster}": {"config": {"hardPodAffinityWeight": 9}},
    "/v1/clusters/{cluster}/webhooks/{name}": {"disabled": True},
}
STORED = {
    "/v1/clusters/{cluster}": {"config": {}},
    "/v1/clusters/{cluster}/webhooks/{name}": {
        "url": "https://orchestrator.example/",
        "events": "Bindings",
        "disabled": True,
    },
    "/v1/principals/{name}": {"grants": []},
    "/v1/groups/{name}": {"grants": []},
    **{
        re.sub(r":\w+}", "}", each.item): {**each.example, **QUIET.get(each.kind, {})}
        for each in RESOURCES
    },
}
"""What is there under each path that has conditions."""


async def operations(harness: Harness) -> list[tuple[str, str, set[str]]]:
    """Path, method and preconditions of everything in the document that may change something."""
    document = (await harness.client.get("/openapi.json")).json()
    return [
        (path, method, {each["name"] for each in told.get("parameters", ())} & UNMET.keys())
        for path, methods in document["paths"].items()
        for method, told in methods.items()
        if method in WRITING
    ]


def filled(path: str, body: dict[str, Any] | None = None) -> str:
    """The path of an object, as its body says, or of one that is not there."""
    metadata = (body or {}).get("metadata", {})
    named = {
        "cluster": "default",
        **{each: metadata.get(each, "x") for each in ("namespace", "name")},
    }
    return re.sub(r"{(\w+)}", lambda match: named.get(match[1], "x"), path)


async def test_a_condition_that_an_operation_does_not_declare_is_refused(harness: Harness) -> None:
    """Before anything else is looked at, so that no body has to be right for it."""
    found = 0
    for path, method, declared in await operations(harness):
        for header in UNMET.keys() - declared:
            answer = await harness.client.request(
                method, filled(path), headers={header: UNMET[header]}
            )
            assert problem(answer, 400) == "MalformedRequest"
            assert [each["field"] for each in answer.json()["errors"]] == [header]
            assert header in answer.json()["detail"]
            found += 1
    assert found > 200


async def test_a_condition_that_an_operation_declares_is_honored(harness: Harness) -> None:
    declaring = [each for each in await operations(harness) if each[2]]
    assert {path for path, _, _ in declaring} == STORED.keys()
    for path, body in STORED.items():
        made = await harness.client.put(filled(path, body), json=body)
        assert made.status_code in {200, 201}, made.text
    for path, method, declared in declaring:
        assert declared == {"If-Match", "If-None-Match"}
        body = STORED[path]
        url = filled(path, body)
        sent = {"put": body, "patch": CHANGES.get(path, labelled("9")), "delete": None}[method]
        for header in sorted(declared):
            answer = await harness.client.request(
                method, url, json=sent, headers={header: UNMET[header]}
            )
            assert problem(answer, 412) == "PreconditionFailed"
            assert (await harness.client.get(url)).status_code == 200


@pytest.mark.parametrize("path", ["", "/nodes", "/nodes/n1", "/watch?timeoutSeconds=1"])
async def test_conditions_of_reads_are_never_refused(harness: Harness, path: str) -> None:
    """Browsers and proxies send them by themselves, and a read changes nothing."""
    await harness.put_node("n1")
    for method in ("GET", "HEAD"):
        for header, condition in {**UNMET, "If-None-Match": '"9-9"'}.items():
            answer = await harness.client.request(
                method, f"{CLUSTER}{path}", headers={header: condition}
            )
            assert answer.status_code == 200, answer.text
    for page in ("/openapi.json", "/livez"):
        answer = await harness.client.get(page, headers={"if-none-match": '"9-9"'})
        assert answer.status_code == 200


async def test_conditions_that_a_write_has_to_ignore_are_ignored(harness: Harness) -> None:
    """RFC 9110, 13.1.3 and 13.1.5: they are for reads alone."""
    headers = {"if-modified-since": UNMET["If-Unmodified-Since"], "if-range": '"9-9"'}
    answer = await harness.client.put(NODE, json=node("n1"), headers=headers)
    assert answer.status_code == 201, answer.text


async def test_lines_of_a_condition_are_one_list(in_memory: Versions) -> None:
    for lines, status in (
        (["*"], 412),
        (['"x"', f'"{in_memory.current}"'], 412),
        (['"x"', '"y"'], 200),
    ):
        answer = await in_memory.harness.client.put(
            NODE,
            json=node("n1", turn="2"),
            headers=[("if-none-match", each) for each in lines],
        )
        assert answer.status_code == status, answer.text


@pytest.mark.parametrize("method", ["PATCH", "DELETE"])
@pytest.mark.parametrize("condition", IF_NONE_MATCH)
async def test_if_none_match_keeps_other_writes_from_what_is_there(
    in_memory: Versions, method: str, condition: str
) -> None:
    given = condition.format(current=in_memory.current, stale=in_memory.stale)
    answer = await in_memory.write(method, if_none_match=given)
    await assert_only_done_if(in_memory, answer, IF_NONE_MATCH[condition])


async def test_an_apply_with_if_none_match_creates_only(harness: Harness) -> None:
    applied = {"content-type": "application/apply-patch+yaml", "if-none-match": "*"}
    path = f"{NODE}?fieldManager=own"
    for status in (201, 412):
        answer = await harness.client.patch(path, json=node("n1"), headers=applied)
        assert answer.status_code == status, answer.text
