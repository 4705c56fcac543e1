"""The page follows changes and comes back after a lost connection."""

import json
import re

import httpx
import pytest
from playwright.sync_api import Page, Route, expect

from tests.api.handlers.test_replacement_plans import READY
from tests.api.harness import node, pod
from tests.page.test_views import plan
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


def say(page: Page, act: str | re.Pattern[str]) -> None:
    """Say yes in the dialog that asks."""
    page.get_by_role("dialog").get_by_role("button", name=act, exact=True).click()
    expect(page.get_by_role("dialog")).to_have_count(0)


def two_pods_of_which_one_stays(client: httpx.Client) -> None:
    put(client, "namespaces/shop/pods/free-0", pod("free-0", nodeName="n1"))
    bound = pod("held-0", nodeName="n1")
    bound["metadata"]["labels"] = {"app": "held"}
    put(client, "namespaces/shop/pods/held-0", bound)
    spec = {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "held"}}}
    budget = {"metadata": {"name": "hold"}, "spec": spec}
    put(client, "namespaces/shop/poddisruptionbudgets/hold", budget)


def test_a_drain_asks_first_and_says_who_would_be_evicted(
    visit: Visit, client: httpx.Client
) -> None:
    two_pods_of_which_one_stays(client)
    page = visit.open("what-if", MOVING)
    plan_to_drain(page, "n1")
    ask = page.get_by_role("button", name="Drain n1…")
    question = page.get_by_role("dialog", name="Drain n1?")
    for leave in (
        lambda: page.keyboard.press("Escape"),
        lambda: page.keyboard.press("Enter"),
        lambda: question.get_by_role("button", name="Cancel").click(),
    ):
        ask.focus()
        page.keyboard.press("Enter")
        expect(question.get_by_role("button", name="Cancel")).to_be_focused()
        leave()
        expect(question).to_have_count(0)
        expect(ask).to_be_focused()
    ask.dblclick()
    expect(question).to_be_visible()
    for part in (
        f"This changes the real cluster {MOVING}.",
        "n1 will take no new pods.",
        "1 pod will be evicted. 1 pod cannot leave now, and the drain waits for it.",
        "shop/free-0 n1 → n",
        "shop/held-0: The disruption budget hold does not allow that it leaves.",
    ):
        expect(question).to_contain_text(part)
    box = question.get_by_role("button", name="Drain n1").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down(click_count=2)  # the second click of two, where the dialog was not there yet
    page.mouse.up(click_count=2)
    for key in [*["Tab"] * 5, *["Shift+Tab"] * 5]:
        page.keyboard.press(key)
        assert page.evaluate("document.activeElement.closest('dialog') !== null"), key
    assert client.get(f"{CLUSTER}/plans").json()["items"] == []
    assert "spec" not in client.get(f"{CLUSTER}/nodes/n1").json()
    client.delete(f"{CLUSTER}/namespaces/shop/poddisruptionbudgets/hold").raise_for_status()


def test_a_drain_that_has_started_is_offered_no_more_but_shown(
    visit: Visit, client: httpx.Client
) -> None:
    put(client, "namespaces/shop/pods/web-0", pod("web-0", nodeName="n1"))
    page = visit.open("what-if", MOVING)
    plan_to_drain(page, "n1")
    ask = page.get_by_role("button", name=re.compile("^Drain n1"))
    ask.click()
    say(page, "Drain n1")
    begun = page.locator(".real")
    expect(begun).to_contain_text("The drain of n1 has started as the plan drain-n1.")
    expect(begun).to_be_focused()
    expect(ask).to_have_count(0)
    begun.get_by_role("button", name="Show drain-n1").click()
    expect(page.locator(".kept .card")).to_be_focused()
    page.get_by_role("button", name="Plan it").click()
    expect(begun).to_contain_text("n1 is being drained as the plan drain-n1.")
    expect(ask).to_have_count(0)
    client.post(f"{CLUSTER}/plans/drain-n1/cancel", json={}).raise_for_status()
    expect(ask).to_be_visible()
    client.delete(f"{CLUSTER}/plans/drain-n1").raise_for_status()


@pytest.mark.parametrize("change", ["cancel", "delete"])
def test_a_drain_that_was_stopped_can_be_started_again_from_the_same_answer(
    change: str, visit: Visit, client: httpx.Client
) -> None:
    put(client, "namespaces/shop/pods/web-0", pod("web-0", nodeName="n1"))
    page = visit.open("what-if", MOVING)
    plan_to_drain(page, "n1")
    ask = page.get_by_role("button", name="Drain n1…")
    for _ in range(2):
        ask.click()
        say(page, "Drain n1")
        expect(page.locator(".real")).to_contain_text("The drain of n1 has started")
        expect(page.get_by_role("button", name="Cancel drain-n1")).to_be_visible()
        if change == "cancel":
            client.post(f"{CLUSTER}/plans/drain-n1/cancel", json={}).raise_for_status()
        else:
            client.delete(f"{CLUSTER}/plans/drain-n1").raise_for_status()
        expect(ask).to_be_visible()
    client.delete(f"{CLUSTER}/plans/drain-n1")


def test_a_question_that_the_browser_closed_can_be_asked_again(visit: Visit) -> None:
    page = visit.open("what-if", MOVING)
    plan_to_drain(page, "n1")
    page.get_by_role("button", name="Drain n1…").click()
    # Chrome closes a dialog by itself at a second Escape in a row.
    page.locator("dialog").evaluate("dialog => dialog.close()")
    expect(page.locator("dialog")).to_have_count(0)
    page.get_by_role("button", name="Drain n1…").click()
    expect(page.get_by_role("dialog")).to_be_visible()


def test_a_drain_that_fails_says_why_and_can_be_tried_again(
    visit: Visit, client: httpx.Client
) -> None:
    page = visit.open("what-if", MOVING)
    plan_to_drain(page, "n1")
    ask = page.get_by_role("button", name="Drain n1…")
    expect(ask).to_be_visible()
    client.delete(f"{CLUSTER}/nodes/n1").raise_for_status()
    ask.click()
    question = page.get_by_role("dialog")
    drain = question.get_by_role("button", name="Drain n1")
    drain.click()
    expect(question.get_by_role("alert")).to_contain_text("n1")
    expect(drain).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator(".real").get_by_role("alert")).to_contain_text("n1")
    expect(ask).to_be_focused()
    assert client.get(f"{CLUSTER}/plans").json()["items"] == []


def test_a_question_tells_that_the_cluster_has_changed_since(
    visit: Visit, client: httpx.Client
) -> None:
    page = visit.open("what-if", MOVING)
    plan_to_drain(page, "n1")
    page.get_by_role("button", name="Drain n1…").click()
    question = page.get_by_role("dialog")
    expect(question).to_contain_text("No pod will be evicted now.")
    expect(question).not_to_contain_text("This was planned at revision")
    put(client, "namespaces/shop/pods/late", pod("late", nodeName="n1"))
    expect(question).to_contain_text("This was planned at revision")


def test_a_resource_that_goes_with_its_last_node_is_shown_as_lost(
    visit: Visit, client: httpx.Client
) -> None:
    made = node("n1", **{HOST: "n1"})
    made["status"]["allocatable"]["example.com/gpu"] = "8"
    put(client, "nodes/n1", made)
    page = visit.open("what-if", MOVING)
    plan(page, "RemoveNodes", ("node", "n1"))
    page.get_by_role("button", name="Plan it").click()
    lost = page.locator(".totals .lost")
    expect(lost.locator("th, td")).to_have_text(["example.com/gpu on all nodes", "8", "none"])
    expect(page.locator(".totals")).to_contain_text("cpu on all nodes")
    page.get_by_role("button", name="Leave out").click()
    plan(page, "AddNodes", ("node", "n1"), ("count", "2"))
    page.get_by_role("button", name="Plan it").click()
    expect(lost).to_have_count(0)
    expect(page.locator(".totals")).to_contain_text("example.com/gpu on all nodes")


def test_a_drain_is_kept_and_followed_to_its_end(visit: Visit, client: httpx.Client) -> None:
    put(client, "namespaces/shop/pods/web-0", pod("web-0", nodeName="n1"))
    page = visit.open("what-if", MOVING)
    plan_to_drain(page, "n1")
    expect(page.locator(".waves li li")).to_contain_text(["n1", "shop/web-0: n1 → n"])
    assert client.get(f"{CLUSTER}/plans").json()["items"] == []
    page.get_by_role("button", name="Drain n1…").click()
    say(page, "Drain n1")
    kept = page.locator(".kept .card")
    page.get_by_role("button", name="Pause drain-n1").click()
    expect(kept.locator(".tag")).to_have_text("Paused")
    page.get_by_role("button", name="Resume drain-n1").click()
    expect(page.get_by_role("dialog")).to_contain_text("The server resumes evicting pods.")
    say(page, "Resume drain-n1")
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
    page.get_by_role("button", name="Drain 2 nodes…").click()
    expect(page.get_by_role("dialog")).to_contain_text("n1 and n2 will take no new pods.")
    say(page, "Drain 2 nodes")
    kept = page.locator(".kept .card")
    expect(kept).to_contain_text("shop/web-0: 0/3 nodes are available")
    page.get_by_role("button", name="Cancel drain-n1").click()
    question = page.get_by_role("dialog")
    expect(question).to_contain_text("nodes stay cordoned")
    question.get_by_role("button", name="Not now").click()
    expect(kept.locator(".tag")).to_have_text("Running")
    page.get_by_role("button", name="Cancel drain-n1").click()
    say(page, re.compile("^Cancel drain-n1"))
    expect(kept.locator(".tag")).to_have_text("Cancelled")
    expect(kept.get_by_role("button")).to_have_count(0)
    expect(kept).to_be_focused()
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
