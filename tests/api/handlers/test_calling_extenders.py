"""Placements for which the extenders of a profile are asked, over real sockets."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from service.extenders import Extenders
from service.runtime.clock import SystemClock
from service.settings import InvalidSettings, Settings
from tests.api.certificates import Authority
from tests.api.conftest import MakeHarness
from tests.api.harness import CLUSTER, Harness, HurriedClock, node, pod, problem
from tests.waiting import once

Answer = Callable[[str, dict[str, Any]], Awaitable[tuple[int, Any]]]


class Extender:
    """A service that answers as the test wants, and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.refuses: dict[str, str] = {}
        self.hopeless: dict[str, str] = {}
        self.scores: dict[str, int] = {}
        self.answer: Answer = self.as_told
        self.url = ""

    async def as_told(self, verb: str, args: dict[str, Any]) -> tuple[int, Any]:
        items = (args["Nodes"] or {}).get("items", [])
        names = args["NodeNames"] or [each["metadata"]["name"] for each in items]
        if verb == "prioritize":
            return 200, [{"Host": name, "Score": self.scores.get(name, 0)} for name in names]
        left = [name for name in names if name not in self.refuses | self.hopeless]
        nodes = {"items": [each for each in items if each["metadata"]["name"] in left]}
        return 200, {
            "Nodes": nodes if args["Nodes"] else None,
            "NodeNames": left if args["NodeNames"] else None,
            "FailedNodes": self.refuses,
            "FailedAndUnresolvableNodes": self.hopeless,
            "Error": "",
        }

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            length = int(head.lower().split("content-length: ")[1].split("\r\n")[0])
            args = msgspec.json.decode(await reader.readexactly(length))
            verb = head.split(" ")[1].rsplit("/", 1)[1]
            self.asked.append((verb, args))
            status, answer = await self.answer(verb, args)
            body = msgspec.json.encode(answer)
            start = f"HTTP/1.1 {status} Told\r\nconnection: close\r\ncontent-length: {len(body)}"
            writer.write(f"{start}\r\n\r\n".encode() + body)
            await writer.drain()
        except ConnectionError:
            pass
        finally:
            writer.close()


@pytest.fixture
async def extender() -> AsyncIterator[Extender]:
    made = Extender()
    async with await asyncio.start_server(made.serve, "127.0.0.1", 0) as server:
        made.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/scheduler"
        yield made


@pytest.fixture
def clock() -> HurriedClock:
    return HurriedClock()


@pytest.fixture
async def harness(make_harness: MakeHarness, clock: HurriedClock) -> Harness:
    return await make_harness(
        clock=clock,
        extender_hosts="127.0.0.1",
        extender_failures_max=2,
        extender_answer_bytes_max=20_000,
    )


async def asking(harness: Harness, extender: Extender, **fields: Any) -> None:
    """Three nodes, and the profile `extended` with this extender."""
    profile = {"schedulerName": "extended", "extenders": [asked_at(extender, **fields)]}
    await harness.configure(profiles=[profile])
    for name in ("n1", "n2", "n3"):
        await harness.put_node(name, **{"kubernetes.io/hostname": name})


def asked_at(extender: Extender, **fields: Any) -> dict[str, Any]:
    return {
        "urlPrefix": extender.url,
        "filterVerb": "filter",
        "prioritizeVerb": "prioritize",
        "weight": 1,
        "nodeCacheCapable": True,
        **fields,
    }


def extended(name: str, **spec: Any) -> dict[str, Any]:
    return pod(name, schedulerName="extended", **spec)


async def one(harness: Harness, name: str = "web-0", **options: Any) -> dict[str, Any]:
    return (await harness.place(extended(name), **options))["results"][0]


async def test_extenders_filter_and_score_and_are_named_as_refusers(
    harness: Harness, extender: Extender
) -> None:
    await asking(harness, extender, weight=2)
    extender.refuses, extender.hopeless = {"n1": "no licence"}, {"n2": "wrong hall"}
    extender.scores = {"n3": 7}
    plain = await harness.place(pod("plain"), dryRun=True, explain="Full")
    found = await one(harness, explain="Full", dryRun=True)
    assert (found["outcome"], found["nodeName"]) == ("Placed", "n3")
    # The only node that is left needs no score.
    assert [verb for verb, _ in extender.asked] == ["filter"]
    explained = found["explanation"]
    assert explained["filters"][extender.url] == {"n1": ["no licence"], "n2": ["wrong hall"]}
    assert explained["unresolvable"][extender.url] == ["n2"]
    assert explained["feasible"] == explained["best"] == ["n3"]
    extender.refuses, extender.hopeless = {}, {}
    found = await one(harness, explain="Full")
    own = plain["results"][0]["explanation"]["total"]
    assert found["nodeName"] == "n3"
    assert found["score"] == own["n3"] + 7 * 2 * 10
    assert found["explanation"]["total"] == {**own, "n3": own["n3"] + 140}
    assert extender.asked[-1][1]["Pod"]["spec"]["schedulerName"] == "extended"
    extender.refuses = dict.fromkeys(("n1", "n2", "n3"), "no licence")
    found = await one(harness, "web-1", explain="Summary", onUnschedulable="Reject")
    assert found["outcome"] == "Unschedulable"
    assert "3 no licence" in found["message"]
    assert extender.url in found["message"]
    assert found["explanation"]["reasons"][extender.url] == {"no licence": 3}


async def test_an_extender_that_knows_no_nodes_is_sent_whole_ones(
    harness: Harness, extender: Extender
) -> None:
    await asking(harness, extender, nodeCacheCapable=False)
    extender.refuses = {"n1": "no", "n3": "no"}
    await harness.place(pod("plain"))
    assert not extender.asked
    assert (await one(harness))["nodeName"] == "n2"
    (_, args), *_ = extender.asked
    assert args["NodeNames"] is None
    nodes = {each["metadata"]["name"]: each for each in args["Nodes"]["items"]}
    assert nodes["n2"]["status"]["allocatable"]["cpu"] == "4"


async def test_an_extender_is_asked_only_for_what_it_manages(
    harness: Harness, extender: Extender
) -> None:
    await asking(harness, extender, managedResources=[{"name": "example.com/gpu"}])
    assert (await one(harness))["outcome"] == "Placed"
    assert not extender.asked
    sized = extended("web-1")
    sized["spec"]["containers"][0]["resources"]["limits"] = {"example.com/gpu": "1"}
    sized["spec"]["containers"][0]["resources"]["requests"]["example.com/gpu"] = "1"
    equipped = node("n1")
    equipped["status"]["allocatable"]["example.com/gpu"] = "1"
    await harness.put("nodes/n1", equipped)
    assert (await harness.place(sized))["results"][0]["nodeName"] == "n1"
    assert [verb for verb, _ in extender.asked] == ["filter"]


async def test_pods_of_one_request_are_asked_about_one_after_the_other(
    harness: Harness, extender: Extender
) -> None:
    await asking(harness, extender)
    extender.scores = {"n1": 10}
    big = [extended(f"web-{index}") for index in range(2)]
    for each in big:
        each["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "3"}}
    for is_again in (False, True):
        answer = await harness.client.post(
            f"{CLUSTER}/placements",
            json={"pods": [*big, pod("plain")]},
            headers={"Idempotency-Key": "one"},
        )
        assert answer.headers.get("Idempotent-Replayed", "") == ("true" if is_again else "")
        results = answer.json()["results"]
        assert results[0]["nodeName"] == "n1"
        assert results[1]["nodeName"] in {"n2", "n3"}
    filters = [args["NodeNames"] for verb, args in extender.asked if verb == "filter"]
    assert [sorted(each) for each in filters] == [["n1", "n2", "n3"], ["n2", "n3"]]


async def test_a_node_that_others_take_meanwhile_is_not_overbooked(
    harness: Harness, extender: Extender
) -> None:
    await asking(harness, extender)
    extender.scores = {"n1": 10}

    async def while_others_take_it(verb: str, args: dict[str, Any]) -> tuple[int, Any]:
        if len(extender.asked) == 1:
            rival = pod("rival", nodeSelector={"kubernetes.io/hostname": "n1"})
            rival["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "4"}}
            assert (await harness.place(rival))["results"][0]["nodeName"] == "n1"
        return await extender.as_told(verb, args)

    extender.answer = while_others_take_it
    assert (await one(harness))["nodeName"] in {"n2", "n3"}
    assert [verb for verb, _ in extender.asked] == ["filter", "prioritize"] * 2


async def test_one_that_fails_stops_placements_only_if_it_may_not_be_ignored(
    harness: Harness, extender: Extender
) -> None:
    released = asyncio.Event()

    async def silent(verb: str, args: dict[str, Any]) -> tuple[int, Any]:
        await released.wait()
        return 200, None

    async def long(verb: str, args: dict[str, Any]) -> tuple[int, Any]:
        return 200, {"Error": "x" * 30_000}

    async def strange(verb: str, args: dict[str, Any]) -> tuple[int, Any]:
        return 200, {"NodeNames": ["n9"]}

    async def cross(verb: str, args: dict[str, Any]) -> tuple[int, Any]:
        return 200, {"Error": "my own database is gone"}

    async def broken(verb: str, args: dict[str, Any]) -> tuple[int, Any]:
        return 500, {}

    told = {
        silent: "no answer to filter within 0.05 s",
        long: "over 20000 bytes",
        strange: "n9",
        cross: "my own database is gone",
        broken: "status 500",
    }
    for index, (answer, words) in enumerate(told.items()):
        # Another timeout makes it another extender, whose failures are counted by themselves.
        await asking(harness, extender, httpTimeout="50ms" if not index else f"{50 + index}s")
        extender.answer = answer
        found = await one(harness, dryRun=True)
        assert found["outcome"] == "Unschedulable"
        assert words in found["message"]
    released.set()
    await asking(harness, extender, ignorable=True)
    extender.answer = broken
    assert (await one(harness))["outcome"] == "Placed"


async def test_one_that_fails_again_and_again_is_left_alone_for_a_while(
    harness: Harness, extender: Extender, clock: HurriedClock
) -> None:
    await asking(harness, extender)

    async def broken(verb: str, args: dict[str, Any]) -> tuple[int, Any]:
        return 500, {}

    extender.answer = broken
    for _ in range(4):
        found = await one(harness, dryRun=True)
    assert "left alone for 10 s" in found["message"]
    assert len(extender.asked) == 2
    clock.advance(11)
    for _ in range(2):
        await one(harness, dryRun=True)
    assert len(extender.asked) == 3
    clock.advance(11)
    extender.answer = extender.as_told
    for _ in range(2):
        assert (await one(harness, dryRun=True))["outcome"] == "Placed"
    assert len(extender.asked) == 7


async def test_only_hosts_that_the_server_lists_are_taken(
    make_harness: MakeHarness, extender: Extender
) -> None:
    profile = {"schedulerName": "extended", "extenders": [asked_at(extender)]}
    for hosts in ("", "localhost", "127.0.0.1:1"):
        harness = await make_harness(extender_hosts=hosts)
        patch = {"config": {"profiles": [profile]}}
        answers = [
            await harness.client.put(f"{CLUSTER}-2", json=patch),
            await harness.client.put(CLUSTER, json=patch, params={"dryRun": "true"}),
            await harness.client.patch(CLUSTER, json=patch),
        ]
        for answer in answers:
            assert problem(answer, 422) == "InvalidManifest"
            (error,) = answer.json()["errors"]
            assert error["field"] == "config.profiles[0].extenders[0].urlPrefix"
            assert "MOORAGE_EXTENDER_HOSTS" in error["message"]


async def test_an_extender_whose_host_was_taken_from_the_list_is_not_called(
    make_harness: MakeHarness, harness: Harness, extender: Extender
) -> None:
    await asking(harness, extender, ignorable=True)
    later = await make_harness(store=harness.store)
    found = await one(later)
    assert found["outcome"] == "Unschedulable"
    assert "MOORAGE_EXTENDER_HOSTS" in found["message"]
    assert not extender.asked
    # Other settings can still be changed.
    await later.configure(hardPodAffinityWeight=7)


async def test_extenders_are_called_over_https(
    make_harness: MakeHarness, extender: Extender, tmp_path: Path
) -> None:
    authority, other = Authority(tmp_path, "authority"), Authority(tmp_path, "other")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=authority.certificate)
    context.load_cert_chain(*authority.vouch_for("licences.internal"))
    context.verify_mode = ssl.CERT_REQUIRED
    certificate, key = authority.vouch_for("moorage.internal")
    own = {"extender_certificate": str(certificate), "extender_key": str(key)}
    named = {"caData": authority.data, "serverName": "licences.internal"}
    async with await asyncio.start_server(extender.serve, "127.0.0.1", 0, ssl=context) as server:
        extender.url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/scheduler"
        harness = await make_harness(extender_hosts="127.0.0.1", **own)
        unknown = await make_harness(extender_hosts="127.0.0.1")
        for tls, is_called in (
            (named, True),
            ({"insecure": True}, True),
            ({"caData": authority.data}, False),
            ({**named, "caData": other.data}, False),
            ({}, False),
        ):
            await asking(harness, extender, tlsConfig=tls, enableHTTPS=True)
            found = await one(harness, dryRun=True)
            assert found["outcome"] == ("Placed" if is_called else "Unschedulable"), tls
            assert bool(extender.asked) is is_called
            extender.asked.clear()
        await asking(unknown, extender, tlsConfig=named)
        assert (await one(unknown))["outcome"] == "Unschedulable"
    for wrong in ({"extender_key": str(key)}, {**own, "extender_key": str(tmp_path / "none")}):
        with pytest.raises(InvalidSettings, match="MOORAGE_EXTENDER_KEY"):
            Extenders(Settings(**wrong), SystemClock().monotonic)


async def test_pending_pods_are_asked_about_too(harness: Harness, extender: Extender) -> None:
    await asking(harness, extender)
    extender.refuses = {"n1": "no", "n3": "no"}
    await harness.put("namespaces/shop/pods/web-0", extended("web-0"))
    path = f"{CLUSTER}/namespaces/shop/pods/web-0"

    async def placed() -> bool:
        return "nodeName" in (await harness.client.get(path)).json()["spec"]

    await once(placed)
    assert (await harness.client.get(path)).json()["spec"]["nodeName"] == "n2"


async def test_where_nobody_asks_extenders_the_pod_is_refused(
    harness: Harness, extender: Extender
) -> None:
    await asking(harness, extender)
    group = await harness.place(extended("web-0"), policy="AllOrNothing")
    assert group["results"][0]["reason"] == "AsksExtenders"
    plan = {"goal": {"type": "Place", "pods": [extended("web-0")]}}
    answer = await harness.client.post(f"{CLUSTER}/plans", json=plan)
    assert answer.status_code == 200, answer.text
    assert answer.json()["unplaced"][0]["reason"] == "AsksExtenders"
    profile = {"schedulerName": "extended", "extenders": [asked_at(extender)]}
    simulation = {
        "config": {"profiles": [profile]},
        "nodes": [node("n1")],
        "place": [extended("web-0")],
    }
    answer = await harness.client.post("/v1/simulations", json=simulation)
    assert answer.status_code == 200, answer.text
    assert answer.json()["results"][0]["reason"] == "AsksExtenders"
    assert not extender.asked


@pytest.mark.parametrize(
    ("fields", "field", "words"),
    [
        ({"bindVerb": "bind"}, "bindVerb", "commits placements itself"),
        ({"preemptVerb": "preempt"}, "preemptVerb", "chooses victims itself"),
        ({"weight": 0}, "weight", "must be positive"),
        ({"urlPrefix": "file:///etc/passwd"}, "urlPrefix", "http://"),
        ({"urlPrefix": "http://me:secret@x"}, "urlPrefix", "without user"),
        ({"httpTimeout": "2 hours"}, "httpTimeout", "duration"),
        ({"tlsConfig": {"keyFile": "/k"}}, "tlsConfig.keyFile", "no files"),
        ({"tlsConfig": {"keyData": "aa=="}}, "tlsConfig.keyData", "see the key"),
        ({"tlsConfig": {"caData": "aGVsbG8="}}, "tlsConfig.caData", "certificates in PEM"),
        ({"tlsConfig": {"caData": "?", "insecure": True}}, "tlsConfig.caData", "verifies nothing"),
    ],
)
async def test_what_an_extender_may_not_have_is_refused(
    harness: Harness, extender: Extender, fields: dict[str, Any], field: str, words: str
) -> None:
    profile = {"schedulerName": "extended", "extenders": [asked_at(extender, **fields)]}
    answer = await harness.client.put(CLUSTER, json={"config": {"profiles": [profile]}})
    assert problem(answer, 422) == "InvalidManifest"
    errors = {each["field"]: each["message"] for each in answer.json()["errors"]}
    assert words in errors[f"config.profiles[0].extenders[0].{field}"]
