"""The page follows changes and comes back after a lost connection."""

import json

import httpx
import pytest
from playwright.sync_api import Page, Route, expect

from tests.api.handlers.test_replacement_plans import READY
from tests.api.harness import node, pod
from tests.page.visiting import Visit, figure, watched

MOVING = "moving"
"""A cluster of this module's own, which its tests change."""
CLUSTER = f"/v1/clusters/{MOVING}"
HOST = "kubernetes.io/hostname"


@pytest.fixture(autouse=True)
def a_few_nodes(client: httpx.Client) -> None:
    """Three nodes and no pods, whatever the test before has left."""
    client.put(CLUSTER, json={"config": {}}).raise_for_status()
    for each in client.get(f"{CLUSTER}/pods").json()["items"]:
        name = each["metadata"]["name"]
        client.delete(f"{CLUSTER}/namespaces/shop/pods/{name}").raise_for_status()
    for name in ("n1", "n2", "n3"):
        put(client, f"nodes/{name}", node(name, **{HOST: name}))


def put(client: httpx.Client, path: str, body: dict) -> None:
    answer = client.put(f"{CLUSTER}/{path}", json=body)
    assert answer.status_code in {200, 201}, answer.text


def place(client: httpx.Client, *names: str) -> None:
    answer = client.post(f"{CLUSTER}/placements", json={"pods": [pod(name) for name in names]})
    assert answer.status_code == 200, answer.text


def test_pods_and_nodes_come_and_go_while_one_looks(visit: Visit, client: httpx.Client) -> None:
    page = visit.open_map(MOVING)
    expect(figure(page, "Pods")).to_have_text("0")
    place(client, "web-0", "web-1")
    expect(figure(page, "Pods")).to_have_text("2")
    put(client, "nodes/n4", node("n4", **{HOST: "n4"}))
    expect(page.locator(".scroller")).to_have_attribute("data-nodes", "4")
    client.delete(f"{CLUSTER}/nodes/n4").raise_for_status()
    expect(page.locator(".scroller")).to_have_attribute("data-nodes", "3")
    client.delete(f"{CLUSTER}/namespaces/shop/pods/web-0").raise_for_status()
    expect(figure(page, "Pods")).to_have_text("1")
    put(client, "namespaces/shop/pods/huge", pod("huge", nodeSelector={"no": "where"}))
    expect(page.locator("nav .badge")).to_have_text("1")


def test_a_broken_rule_is_shown_until_it_holds_again(visit: Visit, client: httpx.Client) -> None:
    page = visit.open_map(MOVING)
    apart = {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"topologyKey": HOST, "labelSelector": {"matchLabels": {"app": "web"}}}
            ]
        }
    }
    put(client, "namespaces/shop/pods/web-0", pod("web-0", nodeName="n1", affinity=apart))
    put(client, "namespaces/shop/pods/web-1", pod("web-1", nodeName="n1"))
    expect(figure(page, "Violations")).to_have_text("1")
    page.get_by_role("button", name="shop/web-0").click()
    expect(page.locator(".broken")).to_contain_text("didn't match pod anti-affinity rules")
    expect(page.locator(".broken button")).to_have_text("shop/web-1")
    page.get_by_role("button", name="Whole cluster").click()
    client.delete(f"{CLUSTER}/namespaces/shop/pods/web-1").raise_for_status()
    expect(figure(page, "Violations")).to_have_text("0")


def test_a_group_says_what_it_waits_for_until_its_last_member_comes(
    visit: Visit, client: httpx.Client
) -> None:
    group = {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": "ring", "namespace": "shop"},
        "spec": {"minMember": 2},
    }
    put(client, "namespaces/shop/podgroups/ring", group)

    def member(name: str) -> None:
        manifest = pod(name)
        manifest["metadata"]["labels"] = {"scheduling.x-k8s.io/pod-group": "ring"}
        put(client, f"namespaces/shop/pods/{name}", manifest)

    member("ring-0")
    page = visit.open("waiting", MOVING)
    shown = page.locator("details.group")
    expect(shown).to_contain_text("It is tried when 1 more member comes.")
    expect(shown.locator("li")).to_contain_text("ring-0: 1 of 2 members of group ring are here")
    member("ring-1")
    expect(shown).to_contain_text("2 of 2 placed")
    expect(shown.locator("li")).to_contain_text([" on n", " on n"])
    client.delete(f"{CLUSTER}/namespaces/shop/podgroups/ring").raise_for_status()


def plan_to_drain(page: Page, *nodes: str) -> None:
    form = page.get_by_role("form", name="A change")
    form.get_by_label("What if we").select_option("Drain")
    for each in nodes:
        form.locator('label:has(> span:text-is("node")) select').select_option(each)
        form.get_by_role("button", name="Add the change").click()
    page.get_by_role("button", name="Plan it").click()


def test_a_drain_is_kept_and_followed_to_its_end(visit: Visit, client: httpx.Client) -> None:
    put(client, "namespaces/shop/pods/web-0", pod("web-0", nodeName="n1"))
    page = visit.open("what-if", MOVING)
    plan_to_drain(page, "n1")
    expect(page.locator(".waves li li")).to_contain_text(["n1", "shop/web-0: n1 → n"])
    assert client.get(f"{CLUSTER}/plans").json()["items"] == []
    page.get_by_role("button", name="Drain n1", exact=True).click()
    kept = page.locator(".kept .card")
    page.get_by_role("button", name="Pause drain-n1").click()
    expect(kept.locator(".tag")).to_have_text("Paused")
    page.get_by_role("button", name="Resume drain-n1").click()
    expect(kept).to_contain_text("1 evicted, 1 of them still there")
    client.delete(f"{CLUSTER}/namespaces/shop/pods/web-0").raise_for_status()
    expect(kept.locator(".tag")).to_have_text("Succeeded")
    client.delete(f"{CLUSTER}/plans/drain-n1").raise_for_status()
    expect(kept).to_have_count(0)


def test_several_nodes_are_drained_by_one_plan_that_can_be_cancelled(
    visit: Visit, client: httpx.Client
) -> None:
    """The pod may only run on the nodes that are drained, so the drain cannot end."""
    put(client, "nodes/n1", node("n1", **{HOST: "n1", "disk": "fast"}))
    bound = pod("web-0", nodeName="n1", nodeSelector={"disk": "fast"})
    put(client, "namespaces/shop/pods/web-0", bound)
    page = visit.open("what-if", MOVING)
    plan_to_drain(page, "n1", "n2")
    expect(page.locator(".plan .verdict")).to_contain_text("1 pod would have to stay")
    page.get_by_role("button", name="Drain 2 nodes").click()
    kept = page.locator(".kept .card")
    expect(kept).to_contain_text("shop/web-0: 0/3 nodes are available")
    page.get_by_role("button", name="Cancel").click()
    expect(kept.locator(".tag")).to_have_text("Cancelled")
    expect(kept.get_by_role("button")).to_have_count(0)
    (plan,) = client.get(f"{CLUSTER}/plans").json()["items"]
    assert plan["spec"]["goal"]["nodes"]["names"] == ["n1", "n2"]
    client.delete(f"{CLUSTER}/plans/{plan['metadata']['name']}").raise_for_status()


def test_a_release_says_what_comes_in_whose_place_and_why_it_waits(
    visit: Visit, client: httpx.Client
) -> None:
    put(client, "namespaces/shop/pods/old-0", {**pod("old-0", nodeName="n1"), "status": READY})
    new = {
        "metadata": {"name": "new", "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "web", "image": "web:2"}]},
    }
    goal = {
        "type": "Replace",
        "namespace": "shop",
        "selector": {"matchLabels": {"app": "web"}},
        "template": new,
        "replicas": 1,
        "maxSurge": 1,
        "maxUnavailable": 0,
    }
    put(client, "plans/to-new", {"metadata": {"name": "to-new"}, "spec": {"goal": goal}})
    kept = visit.open("what-if", MOVING).locator(".kept .card")
    expect(kept).to_contain_text("shop: app=web → 1 pod of new (web:2)")
    expect(kept).to_contain_text("Wave 1: 1 of 1 new pods there, 0 of them ready; 1 old ones to go")
    expect(kept.locator("li")).to_have_text(
        "shop/new-0: It is not reported as ready, and the next wave waits for it."
    )
    client.delete(f"{CLUSTER}/plans/to-new").raise_for_status()
    for name in ("old-0", "new-0"):
        client.delete(f"{CLUSTER}/namespaces/shop/pods/{name}").raise_for_status()


def test_after_a_lost_connection_nothing_is_missed(
    visit: Visit, client: httpx.Client, page: Page
) -> None:
    """The stream of changes ends after a second, and the server is out of reach until the page has said so."""
    is_away = False

    def meet(route: Route) -> None:
        if is_away:
            route.abort()
        else:
            route.continue_(url=f"{route.request.url}&timeoutSeconds=1")

    page.route(watched, meet)
    visit.open_map(MOVING)
    is_away = True
    expect(page.locator(".state")).to_contain_text("Reconnecting")
    place(client, "web-0")
    expect(figure(page, "Pods")).to_have_text("0")
    is_away = False
    expect(page.locator(".state")).to_contain_text("Live")
    expect(figure(page, "Pods")).to_have_text("1")
    visit.complaints = [each for each in visit.complaints if "ERR_FAILED" not in each]


def test_after_410_everything_is_listed_again(
    visit: Visit, client: httpx.Client, page: Page
) -> None:
    """What the watch leads on from is gone from the log, so only a new list can tell of the pod."""
    place(client, "web-0")
    asked: list[str] = []

    def compacted(route: Route) -> None:
        asked.append(route.request.url)
        if len(asked) > 1:
            route.continue_()
            return
        place(client, "web-1")
        problem = {
            "type": "/errors/Compacted",
            "code": "Compacted",
            "title": "Compacted",
            "status": 410,
        }
        route.fulfill(status=410, json=problem, content_type="application/problem+json")

    page.route(watched, compacted)
    visit.open_map(MOVING)
    expect(figure(page, "Pods")).to_have_text("2")
    first, second = (int(url.rpartition("sinceRevision=")[2]) for url in asked[:2])
    assert second > first


def test_a_stream_that_says_one_may_read_no_longer_is_asked_once_more(
    visit: Visit, client: httpx.Client, page: Page
) -> None:
    """Only the answer to a request tells whether it was the token that ended; here nothing did."""
    asked: list[str] = []

    def forbidden(route: Route) -> None:
        asked.append(route.request.url)
        if len(asked) > 1:
            route.continue_()
            return
        problem = json.dumps({"code": "Forbidden", "title": "Forbidden", "status": 403})
        stream = f"event: ERROR\ndata: {problem}\n\n"
        route.fulfill(status=200, body=stream, content_type="text/event-stream")

    page.route(watched, forbidden)
    visit.open_map(MOVING)
    place(client, "web-2")
    expect(page.locator(".state")).to_contain_text("Live")
    expect(figure(page, "Pods")).to_have_text("1")
    assert len(asked) > 1
