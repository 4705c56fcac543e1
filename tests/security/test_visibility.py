"""A tenant sees the nodes, and what is its own: nothing that is asked tells it what others have.

What others have is full of one word that nobody else writes. Each GET operation of the OpenAPI document
is asked, so that one that comes later is tried as well.
"""

import re
from collections.abc import AsyncIterator, Iterator
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import httpx
import pytest

from service.api.auth.redaction import OTHER
from service.api.http.pagination import Continue
from service.api.resources.handlers import openapi_document
from service.model.core.access import EVERYBODY, Grant, Principal
from service.model.log.events import Event as ToldEvent
from service.model.registry.kinds import DECLARED_KINDS
from tests.api.conftest import MakeHarness
from tests.api.following import changes, stream, watched
from tests.api.harness import CLUSTER, Harness, problem
from tests.builders import (
    HOST,
    REQUIRED_DURING_EXECUTION,
    Manifest,
    PodBuilder,
    claim,
    matching,
    namespace,
    node,
    pod,
    storage_class,
    volume,
    where,
)
from tests.kept_kinds import KINDS, kept
from tests.security.callers import Callers, by
from tests.waiting import once

SECRET = "hush"
"""It is in each name, label, annotation, uid and selector of the other tenant, and nowhere else."""
BANK = f"{SECRET}-bank"
BANKS_POD = where("ledger", "Exists")
SHOPS_POD = matching(app="web")
SHOP, ADMIN = by("shop"), by("admin")
READS_SHOP = Grant("orchestrator", "default", "shop")
MAY_BE = f"(it may be {OTHER})"
OWN_NAMES = ("web", "evicted", "waiting", "quota", "gang", "n1", "shop")
ASKED = {
    "cluster": ["default", f"{SECRET}-cluster"],
    "namespace": ["shop", BANK],
    "name": [*OWN_NAMES, *(f"{SECRET}-{each}" for each in ("till", "quota"))],
    "code": ["Forbidden"],
    "key": ["host"],
}
"""What is tried for the path parameters of the document's operations, and for the query parameters they cannot do without."""


class Asked(NamedTuple):
    """One GET request."""

    path: str
    is_watch: bool
    has_pages: bool


def banks(name: str, **metadata: Any) -> PodBuilder:
    """A pod of the other tenant, with all that nobody else should read of it."""
    made = pod(f"{SECRET}-{name}", BANK).label(ledger=SECRET, tier=f"{SECRET}-tier")
    made["metadata"] |= {
        "uid": f"{SECRET}-uid-{name}",
        "annotations": {f"{SECRET}.example/note": f"{SECRET} note"},
    }
    return made


def shops(name: str) -> PodBuilder:
    return pod(name, "shop").label(app="web")


def labelled(name: str) -> Manifest:
    made = namespace(name).label(team=f"{name}-team")
    made["metadata"]["annotations"] = {"note": f"{name} note"}
    return made


APART_FROM_BANK = partial(
    PodBuilder.require_anti_affinity, key="host", selector=BANKS_POD, namespaceSelector={}
)
APART_FROM_SHOP = partial(
    PodBuilder.require_anti_affinity, key="host", selector=SHOPS_POD, namespaces=["shop"]
)


@pytest.fixture
async def harness(make_harness: MakeHarness) -> Harness:
    """Two tenants on three nodes, with rules against each other."""
    harness = await make_harness()
    await harness.configure(
        trustedNamespaces=["shop", BANK],
        antiAffinityVictim="LowestPriority",
        restrictAllNamespacesAntiAffinity=False,
    )
    other = await harness.client.put(f"/v1/clusters/{SECRET}-cluster", json={"config": {}})
    assert other.status_code == 201
    stored = await harness.client.post(
        f"{CLUSTER}/apply", json={"kind": "List", "items": list(objects())}
    )
    assert stored.status_code == 200, stored.text
    callers = Callers(Principal("shop", (READS_SHOP,)), Principal("admin", EVERYBODY.grants))
    callers.call(harness)
    return harness


def objects() -> Iterator[Manifest]:
    """Nodes, and of each tenant some of every kind."""
    for name in ("n1", "n2", "n3"):
        yield of_kind("Node", node(name).label(host=name))
    for tenant, prefix in (("shop", ""), (BANK, f"{SECRET}-")):
        yield of_kind("Namespace", labelled(tenant))
        for kind, name, spec in (
            ("ResourceQuota", "quota", {"hard": {"pods": "50"}}),
            ("PodGroup", "gang", {"minMember": 2}),
        ):
            metadata = {"name": prefix + name, "namespace": tenant, "labels": {"own": tenant}}
            yield of_kind(kind, {"metadata": metadata, "spec": spec})
        for kind in (each for each in KINDS if DECLARED_KINDS[each].namespaced):
            yield kept(kind, tenant, f"{prefix}kept", labels={"own": tenant})
    for kind in (each for each in KINDS if not DECLARED_KINDS[each].namespaced):
        yield kept(kind, name="kept" if DECLARED_KINDS[kind].is_public else f"{SECRET}-kept")
    for each in pods():
        yield of_kind("Pod", each)


def of_kind(kind: str, manifest: Manifest) -> Manifest:
    version = "scheduling.x-k8s.io/v1alpha1" if kind == "PodGroup" else "v1"
    return {"apiVersion": version, "kind": kind, **manifest}


def pods() -> list[PodBuilder]:
    """On each node somebody is where another's rule does not want them."""
    enduring = {"execution": REQUIRED_DURING_EXECUTION}
    return [
        shops("web").on("n1"),
        banks("till").on("n1").priority(9),
        APART_FROM_BANK(shops("apart")).on("n1"),
        APART_FROM_SHOP(banks("apart")).on("n1").priority(9),
        banks("guarded").on("n2").priority(9),
        APART_FROM_BANK(shops("evicted"), **enduring).on("n2"),
        APART_FROM_SHOP(banks("guard"), **enduring).on("n3").priority(9),
        shops("pushed").on("n3"),
        banks("waiting").node_selector(**{SECRET: SECRET}),
        shops("waiting").node_selector(disk="ssd"),
    ]


async def put_pod(harness: Harness, each: Manifest) -> httpx.Response:
    metadata = each["metadata"]
    return await harness.put(f"namespaces/{metadata['namespace']}/pods/{metadata['name']}", each)


@pytest.fixture
async def settled(harness: Harness) -> Harness:
    """Return the same harness once those are evicted whom rules that are required during execution drive out, and others were tried."""

    async def is_settled() -> bool:
        events = (await harness.client.get(f"{CLUSTER}/events")).json()["items"]
        told = {(each["reason"], each["involvedObject"]["name"]) for each in events}
        return told >= {
            ("Evicted", "evicted"),
            ("Evicted", "pushed"),
            ("FailedScheduling", "waiting"),
            ("FailedScheduling", f"{SECRET}-waiting"),
        }

    await once(is_settled)
    return harness


def reads() -> Iterator[Asked]:
    """Each GET operation of the document, of whatever its parameters may name."""
    for template, operations in openapi_document()["paths"].items():
        operation = operations.get("get")
        if operation is None:
            continue
        content = operation["responses"]["200"].get("content", {})
        parameters = operation.get("parameters", [])
        needed = [
            each["name"] for each in parameters if each["in"] == "query" and each.get("required")
        ]
        in_path = re.findall(r"{(\w+)}", template)
        first = tuple(ASKED[name][0] for name in in_path + needed)
        for values in product(*(ASKED[name] for name in in_path + needed)):
            chosen = dict(zip(in_path + needed, values, strict=True))
            if chosen.get("cluster") == f"{SECRET}-cluster" and values[1:] != first[1:]:
                continue  # nothing in it is shown, so the first says enough
            query = "&".join(f"{name}={chosen[name]}" for name in needed)
            yield Asked(
                template.format(**chosen) + (f"?{query}" if query else ""),
                "text/event-stream" in content,
                any(each["name"] == "continue" for each in parameters),
            )


async def answers_to(harness: Harness, asked: Asked, headers: dict[str, str]) -> AsyncIterator[str]:
    """All that is told to somebody who asks: headers, body, and the pages of lists."""
    if asked.is_watch:
        assert asked.path.startswith("/v1/clusters/")
        if asked.path.startswith(f"{CLUSTER}/"):
            yield str(await watched(harness, 0, headers, path=asked.path))
        else:
            yield told(await harness.client.get(asked.path, headers=headers))
        return
    answer = await harness.client.get(asked.path, headers=headers)
    yield told(answer)
    after = ""
    while asked.has_pages and answer.status_code == 200:
        page = {"limit": 1, **({"continue": after} if after else {})}
        answer = await harness.client.get(asked.path, params=page, headers=headers)
        yield told(answer)
        after = answer.json()["metadata"].get("continue")
        if not after:
            break


def told(answer: httpx.Response) -> str:
    return f"{answer.status_code}\n{answer.headers}\n{answer.text}"


def said_unasked(text: str, asked: str) -> str:
    """What is told beside what was asked for."""
    for word in sorted(re.split(r"[/?=&]", asked), key=len, reverse=True):
        text = text.replace(word, "") if SECRET in word else text
    return text


def names_in(text: str) -> set[str]:
    """Return the names of objects, in JSON or in what was read from it."""
    return set(re.findall(r"""["']name["']: ?["']([a-z0-9.-]+)["']""", text))


async def test_no_read_of_the_document_tells_a_tenant_of_another(settled: Harness) -> None:
    all_names = set()
    for asked in reads():
        names = set()
        async for text in answers_to(settled, asked, SHOP):
            assert SECRET not in said_unasked(text, asked.path), (asked.path, text)
            assert SECRET not in asked.path or text.startswith(("403", "404")), (asked.path, text)
            names |= names_in(text)
        if SECRET not in asked.path and asked.path.startswith("/v1/clusters"):
            everything = [names_in(each) async for each in answers_to(settled, asked, ADMIN)]
            shown = set().union(*everything)
            if not asked.path.endswith("/violations"):  # those of others name one's own pods
                assert names == {each for each in shown if SECRET not in each}, asked.path
            all_names |= shown
    assert all_names > {*ASKED["name"], BANK}


async def items(harness: Harness, path: str, caller: dict[str, str] = SHOP) -> list[Any]:
    answer = await harness.client.get(f"{CLUSTER}/{path}", headers=caller)
    assert answer.status_code == 200, answer.text
    return list(answer.json()["items"])


async def test_a_page_has_as_many_of_ones_own_as_it_may_hold(harness: Harness) -> None:
    own = [each["metadata"]["name"] for each in await items(harness, "pods")]
    assert own == sorted(own)
    for limit in (1, 2, 5):
        pages = []
        page: dict[str, Any] = {"limit": limit}
        while True:
            answer = await harness.client.get(f"{CLUSTER}/pods", params=page, headers=SHOP)
            pages.append([each["metadata"]["name"] for each in answer.json()["items"]])
            if "continue" not in answer.json()["metadata"]:
                break
            page["continue"] = answer.json()["metadata"]["continue"]
        assert pages == [own[at : at + limit] for at in range(0, len(own), limit)]


async def test_a_list_goes_on_from_any_place_without_those_of_others(harness: Harness) -> None:
    for place in (BANK, "zoo"):
        token = Continue("default/Pod/", 1, place, "x").token()
        found = await items(harness, f"pods?continue={token}")
        assert {each["metadata"]["namespace"] for each in found} <= {"shop"}
        assert bool(found) == (place < "shop")


async def test_a_cluster_is_shown_with_what_is_ones_own_in_it(harness: Harness) -> None:
    [listed] = (await harness.client.get("/v1/clusters", headers=SHOP)).json()["items"]
    got = (await harness.client.get(CLUSTER, headers=SHOP)).json()
    whole = (await harness.client.get(CLUSTER, headers=ADMIN)).json()
    assert listed == got
    assert got["counts"] == {"nodes": 3, "pods": 5, "pending": 1}
    assert whole["counts"] == {"nodes": 3, "pods": 10, "pending": 2}
    assert got["config"] == whole["config"] | {
        "daemonNamespaces": [],
        "trustedNamespaces": ["shop"],
    }


async def test_the_tag_of_a_cluster_is_another_for_callers_who_see_something_else(
    harness: Harness,
) -> None:
    whole, own = [await harness.client.get(CLUSTER, headers=each) for each in (ADMIN, SHOP)]
    assert whole.headers["etag"] != own.headers["etag"]
    for caller, known, status in (
        (SHOP, own, 304),
        (SHOP, whole, 200),
        (ADMIN, own, 200),
        (ADMIN, whole, 304),
    ):
        headers = caller | {"if-none-match": known.headers["etag"]}
        assert (await harness.client.get(CLUSTER, headers=headers)).status_code == status
    condition = {"if-match": whole.headers["etag"]}
    body = {"config": whole.json()["config"]}
    written = await harness.client.put(CLUSTER, json=body, headers=ADMIN | condition)
    assert written.status_code == 200, written.text


async def test_domains_count_ones_own_pods_and_what_is_free_for_all(harness: Harness) -> None:
    path = f"{CLUSTER}/topology?key=host"
    own, everything = [
        (await harness.client.get(path, headers=each)).json()["domains"] for each in (SHOP, ADMIN)
    ]
    assert [each["pods"] for each in own] == [2, 1, 1]
    assert [each["pods"] for each in everything] == [4, 2, 2]
    assert [each["free"] for each in own] == [each["free"] for each in everything]


async def test_a_namespace_that_may_not_be_read_is_refused_whether_it_is_there_or_not(
    harness: Harness,
) -> None:
    for name in (BANK, "nowhere"):
        for path in (f"namespaces/{name}", f"watch?namespace={name}"):
            answer = await harness.client.get(f"{CLUSTER}/{path}", headers=SHOP)
            assert problem(answer, 403) == "Forbidden"


async def test_a_violation_counts_the_pods_of_others_and_names_ones_own(harness: Harness) -> None:
    own = PodBuilder.require_anti_affinity(shops("own"), "host", SHOPS_POD)
    await put_pod(harness, APART_FROM_BANK(own).on("n1"))
    found = [each for each in await items(harness, "violations") if each["name"] == "own"]
    told = {each["reason"]: each["conflictsWith"] for each in found}
    plain = "node(s) didn't match pod anti-affinity rules"
    named = [{"namespace": "shop", "name": name} for name in ("apart", "web")]
    assert told == {plain: named, f"{plain}: {OTHER}, and 1 more": []}
    by_admin = await items(harness, "violations", ADMIN)
    assert {each["reason"] for each in by_admin} == {plain}


async def test_a_binding_that_is_not_confirmed_names_no_pods_of_others(harness: Harness) -> None:
    await put_pod(harness, APART_FROM_BANK(shops("own")).on("n1"))
    path = f"{CLUSTER}/namespaces/shop/pods/own"
    metadata = (await harness.client.get(path, headers=SHOP)).json()["metadata"]
    seen = {"uid": metadata["uid"], "revision": int(metadata["resourceVersion"])}
    for caller, told in ((SHOP, f": {OTHER}"), (ADMIN, BANK)):
        refused = await harness.client.post(f"{path}/binding:confirm", json=seen, headers=caller)
        assert problem(refused, 409) == "BindingViolated"
        assert told in refused.text
        assert (SECRET in refused.text) == (caller is ADMIN)


async def test_who_was_evicted_for_another_tenant_is_told_so_without_names(
    settled: Harness,
) -> None:
    rule = f"spec.affinity.podAntiAffinity.{REQUIRED_DURING_EXECUTION}[0]"
    expected = {
        "evicted": f"{rule} does not hold on node n2: {OTHER} is in its domain.",
        "pushed": f"A rule of {OTHER} does not hold while this pod is on node n3.",
    }
    in_list = {each["metadata"]["name"]: each for each in await items(settled, "pods")}
    events = await items(settled, "events")
    for name, message in expected.items():
        [condition] = in_list[name]["status"]["conditions"]
        assert condition["message"] == message
        one = await settled.client.get(f"{CLUSTER}/namespaces/shop/pods/{name}", headers=SHOP)
        assert one.json() == in_list[name]
        [event] = [each for each in events if each["message"] == message]
        uid = in_list[name]["metadata"]["uid"]
        assert event["involvedObject"] | {"name": name, "uid": uid} == event["involvedObject"]
        assert event["metadata"]["name"] == event_name(name, uid)
    last = {each.name: each.data["object"] for each in (await watched(settled, 0, SHOP))[:-1]}
    assert {name: last[name] for name in expected} == {name: in_list[name] for name in expected}
    answer = await put_pod(settled, in_list["evicted"])
    assert answer.status_code == 200


def event_name(pod_name: str, uid: str) -> str:
    """Its hash knows the rule, and nobody whom the rule is about."""
    told = ToldEvent(
        namespace="shop",
        pod=pod_name,
        uid=uid,
        type="Warning",
        reason="Evicted",
        message="",
        words="PodAntiAffinity",
        revision=0,
        first="",
        last="",
    )
    return told.name


async def test_what_is_ones_own_is_named(harness: Harness) -> None:
    conditions = [
        {"type": "DisruptionTarget", "status": "True", "message": TOLD_OF_OWN},
        {"type": "Other", "status": "True"},
    ]
    await put_pod(harness, shops("other").on("n1") | {"status": {"conditions": conditions}})
    one = await harness.client.get(f"{CLUSTER}/namespaces/shop/pods/other", headers=SHOP)
    assert one.json()["status"]["conditions"] == conditions


TOLD_OF_OWN = (
    "spec.x does not hold on node n1: shop/web is in its domain. spec.y of shop/web does not hold while this pod is on"
    " node n1. The group of shop/web fails at shop/web: no room. 1 of 2 members of the group of shop/web are here"
)


@pytest.mark.parametrize("explain", ["None", "Summary", "Full"])
async def test_a_refusal_says_that_it_may_rest_on_another_tenant(
    harness: Harness, explain: str
) -> None:
    own = "node(s) didn't match pod anti-affinity rules"
    ports = "node(s) didn't have free ports for the requested pod ports"
    await put_pod(harness, banks("port").on("n2").host_port(80))
    wanted = APART_FROM_BANK(shops("new")).host_port(80)
    await put_pod(harness, wanted)
    body = {"podRefs": [{"namespace": "shop", "name": "new"}], "dryRun": True, "explain": explain}
    answers = [
        await harness.client.post(f"{CLUSTER}/placements", json=body, headers=each)
        for each in (SHOP, ADMIN)
    ]
    texts = [each.text for each in answers]
    assert SECRET not in texts[0]
    assert OTHER not in texts[1]
    assert texts[0].replace(f" {MAY_BE}", "") == texts[1]
    [result] = answers[0].json()["results"]
    assert f"{ports} {MAY_BE}" in result["message"]
    assert f"{own} {MAY_BE}" in result["message"]


async def test_victims_of_another_tenant_are_only_counted(harness: Harness) -> None:
    """They would have to leave a node for a pod of this tenant."""
    for each in (banks("large"), shops("small")):
        await put_pod(harness, each.on("n1").request(cpu="4").priority(0))
    wanted = shops("urgent").on("n1").request(cpu="8").priority(1000)
    body = {"pods": [wanted], "dryRun": True, "preemption": "Propose", "explain": "Full"}
    told, plain = [
        (await harness.client.post(f"{CLUSTER}/placements", json=body, headers=each)).json()
        for each in (SHOP, ADMIN)
    ]
    assert SECRET not in str(told)
    seen, whole = (each["results"][0]["preemption"] for each in (told, plain))
    named = [each for each in whole["victims"] if each["namespace"] == "shop"]
    others = len(whole["victims"]) - len(named)
    assert seen == whole | {
        "victims": named,
        "otherVictims": others,
        "candidates": seen["candidates"],
    }
    assert others
    assert seen["candidates"][whole["nodeName"]]["otherVictims"] == others


async def test_pods_that_the_caller_may_not_evict_are_no_victims(harness: Harness) -> None:
    await harness.put("nodes/n4", of_kind("Node", node("n4")))
    for each in (banks("large"), shops("small")):
        await put_pod(harness, each.on("n4").request(cpu="4").priority(0))
    path = f"{CLUSTER}/placements"
    wanted = shops("urgent").on("n4").priority(1000)
    for cpu, victims in (("8", None), ("4", [{"namespace": "shop", "name": "small"}])):
        body = {"pods": [wanted.request(cpu=cpu)], "preemption": "Evict", "dryRun": cpu == "8"}
        answer = await harness.client.post(path, json=body, headers=SHOP)
        [result] = answer.json()["results"]
        assert (result["preemption"] and result["preemption"]["victims"]) == victims
        assert SECRET not in answer.text
    banked = await harness.client.get(
        f"{CLUSTER}/namespaces/{BANK}/pods/{SECRET}-large", headers=ADMIN
    )
    assert "deletionTimestamp" not in banked.json()["metadata"]


async def test_an_explanation_says_that_it_may_rest_on_another_tenant(harness: Harness) -> None:
    path = f"{CLUSTER}/namespaces/shop/pods/web/explanation"
    told, plain = [(await harness.client.get(path, headers=each)).json() for each in (SHOP, ADMIN)]
    existing = "node(s) didn't satisfy existing pods anti-affinity rules"
    assert plain["filters"]["InterPodAffinity"]["n1"] == [existing]
    assert told["filters"]["InterPodAffinity"]["n1"] == [f"{existing} {MAY_BE}"]


async def test_culprits_of_another_tenant_are_counted_and_not_named(harness: Harness) -> None:
    path = f"{CLUSTER}/namespaces/shop/pods/web/explanation?node=n1"
    told, plain = [(await harness.client.get(path, headers=each)) for each in (SHOP, ADMIN)]
    [culprit], [seen] = plain.json()["culprits"], told.json()["culprits"]
    assert {each["namespace"] for each in culprit["pods"]} == {BANK}
    assert seen == culprit | {
        "reason": f"{culprit['reason']} {MAY_BE}",
        "pods": [],
        "otherPods": len(culprit["pods"]),
    }
    assert SECRET not in told.text


async def test_rules_that_were_left_out_are_told_of_ones_own_pods(harness: Harness) -> None:
    """The bank's pods are daemons, with a rule against all others; the shop has one against all."""
    await harness.client.patch(CLUSTER, json={"config": {"daemonNamespaces": [BANK]}})
    against_all = {"namespaceSelector": {}}
    await put_pod(harness, banks("alone").require_anti_affinity("host", {}, **against_all).on("n1"))
    body = {
        "pods": [shops("new").require_anti_affinity("host", {}, **against_all)],
        "dryRun": True,
        "explain": "Full",
    }
    listed = []
    for each in (SHOP, ADMIN):
        answer = await harness.client.post(f"{CLUSTER}/placements", json=body, headers=each)
        listed.append(answer.json()["results"][0]["explanation"]["exemptions"])
    own, everything = [[rule["ownerNamespace"] for rule in rules] for rules in listed]
    assert (own, everything) == ([None], [None, BANK, BANK])
    assert listed[0] == listed[1][:1]


async def test_what_a_claim_would_get_is_told_without_names_of_volumes(harness: Harness) -> None:
    """Volumes are in no namespace, and named by whoever made them."""
    claims = (
        claim("data", namespace="shop"),
        claim("new", namespace="shop", storageClassName="made"),
    )
    classes = storage_class(), storage_class("made", "csi.example.com")
    disk = volume(f"{SECRET}-disk", node="n4")
    items = [of_kind("Node", node("n4").label({HOST: "n4"})), *classes, disk, *claims]
    await harness.client.post(f"{CLUSTER}/apply", json={"kind": "List", "items": items})
    body = {
        "pods": [pod("db", "shop").claim("data").claim("new")],
        "dryRun": True,
        "explain": "Full",
    }
    told = []
    for each in (SHOP, ADMIN):
        answer = await harness.client.post(f"{CLUSTER}/placements", json=body, headers=each)
        told.append(answer.json()["results"][0]["explanation"]["bindings"])
    assert told[0] == {"n4": {"data": "volume", "new": "provision"}}
    assert told[1] == {"n4": {"data": f"{SECRET}-disk", "new": "provision"}}


async def test_a_binding_that_is_refused_says_so_too(harness: Harness) -> None:
    await harness.client.patch(CLUSTER, json={"config": {"placePendingPods": False}})
    await put_pod(harness, shops("new"))
    path = f"{CLUSTER}/namespaces/shop/pods/new/binding"
    answer = await harness.client.post(path, json={"target": {"name": "n1"}}, headers=SHOP)
    assert problem(answer, 409) == "BindingRefused"
    [reason] = answer.json()["reasons"]["InterPodAffinity"]
    assert reason.endswith(MAY_BE)
    assert reason in answer.json()["detail"]


async def test_a_group_of_two_tenants_tells_neither_of_the_other(harness: Harness) -> None:
    """Only who may place in both can make one."""
    fits_nowhere = banks("nowhere").node_selector(disk="none")
    members = [shops("member"), fits_nowhere]
    await harness.place(*members, policy="AllOrNothing", onUnschedulable="Queue")
    path = f"{CLUSTER}/namespaces/shop/pods/member"
    by_admin, own = [
        (await harness.client.get(path, headers=each)).json()["status"]["conditions"][0]["message"]
        for each in (ADMIN, SHOP)
    ]
    assert f"{BANK}/{SECRET}-nowhere" in by_admin
    assert OTHER in own
    assert SECRET not in own


# Watches


async def test_a_watch_leaves_out_what_is_not_seen_and_goes_on(settled: Harness) -> None:
    async with stream(settled, SHOP) as watch:
        await watch.until(1)
        await put_pod(settled, banks("new").on("n2"))
        await put_pod(settled, shops("new").on("n2"))
        await watch.until(2)
    assert changes(watch.events) == [("ADDED", "new")]


@pytest.fixture
def callers(settled: Harness) -> Callers:
    """The tenant of the shop, whose grants change."""
    callers = Callers(Principal("shop", (READS_SHOP,)))
    callers.call(settled)
    return callers


@pytest.mark.parametrize(
    ("grants", "code", "status"),
    [
        ((), "Forbidden", 403),
        ((Grant("reader", "other"),), "Forbidden", 403),
        ((Grant("reader", "default", BANK),), "GrantsChanged", 410),
        ((READS_SHOP, Grant("reader")), "GrantsChanged", 410),
    ],
)
async def test_a_watch_ends_before_the_first_change_that_comes_after_other_grants(
    settled: Harness, callers: Callers, grants: tuple[Grant, ...], code: str, status: int
) -> None:
    async with stream(settled, SHOP) as watch:
        await watch.until(1)
        if grants:
            callers.grant("shop", *grants)
        else:
            callers.revoke("shop")
        await put_pod(settled, shops("new").on("n2"))
        await watch.task
    [begin, end] = watch.events
    assert (begin.type, end.type) == ("BOOKMARK", "ERROR")
    assert (end.data["code"], end.data["status"]) == (code, status)


async def test_a_watch_goes_on_when_grants_change_nothing_that_it_shows(
    settled: Harness, callers: Callers
) -> None:
    async with stream(settled, SHOP) as watch:
        await watch.until(1)
        callers.grant("shop", Grant("reader", "default", "shop"))
        await put_pod(settled, shops("new").on("n2"))
        await watch.until(2)
    assert changes(watch.events) == [("ADDED", "new")]


async def test_chosen_fields_are_those_that_are_shown(settled: Harness) -> None:
    path = f"{CLUSTER}/pods?fields=metadata.name,status,spec"
    mine = await settled.client.get(path, headers=SHOP)
    every = await settled.client.get(path, headers=ADMIN)
    assert {each["metadata"]["namespace"] for each in mine.json()["items"]} == {"shop"}
    assert SECRET not in mine.text
    assert len(every.json()["items"]) > len(mine.json()["items"])
    assert mine.headers["etag"] != every.headers["etag"]
