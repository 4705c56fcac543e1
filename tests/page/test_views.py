"""Each view shows what the API says, of a sample cluster and of a cut of a real one."""

import re
from collections import Counter
from itertools import pairwise

import httpx
import pytest
from playwright.sync_api import Page, Route, expect

from tests.page.visiting import REAL, SAMPLE, Visit, figure, pixel, table

CARD = "alibabacloud.com/gpu-card-model"
ZONE = "topology.kubernetes.io/zone"
NONE = "\u2013"
"""What stands for a number that there is not."""
FIRST_CELL = (14, 32)
"""A place within the first node of the first domain, beside its pods."""


def get(client: httpx.Client, cluster: str, path: str) -> dict:
    answer = client.get(f"/v1/clusters/{cluster}{path}")
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_the_map_shows_the_domains_of_a_real_cluster(visit: Visit, client: httpx.Client) -> None:
    page = visit.open_map(REAL, key=CARD)
    expect(page.get_by_role("link", name="Docs")).to_have_attribute("href", "/docs")
    topology = get(client, REAL, f"/topology?key={CARD}")
    counts = get(client, REAL, "")["counts"]
    expect(figure(page, "Nodes")).to_have_text(str(counts["nodes"]))
    expect(figure(page, "Pods")).to_have_text(str(counts["pods"]))
    expect(figure(page, "Waiting")).to_have_text(str(counts["pending"]))
    shown = {name: (nodes, pods) for name, nodes, pods, _ in table(page, ".panel")}
    for domain in topology["domains"]:
        assert shown[domain["value"]] == (str(len(domain["nodes"])), str(domain["pods"]))
    assert shown["without the label"][0] == str(len(topology["nodesWithoutKey"]))


def test_a_list_of_many_pages_is_read_to_its_end(visit: Visit, client: httpx.Client) -> None:
    pages = []

    def small(route: Route) -> None:
        pages.append(route.request.url)
        route.continue_(url=route.request.url.replace("limit=5000", "limit=25"))

    visit.page.route(re.compile("limit=5000"), small)
    page = visit.open_map(REAL)
    counts = get(client, REAL, "")["counts"]
    expect(figure(page, "Nodes")).to_have_text(str(counts["nodes"]))
    expect(figure(page, "Pods")).to_have_text(str(counts["pods"]))
    assert len(pages) == -(-counts["nodes"] // 25) - (-counts["pods"] // 25)


def test_a_click_on_the_map_shows_a_node_and_its_pods(visit: Visit, client: httpx.Client) -> None:
    page = visit.open_map(SAMPLE, key=ZONE)
    page.locator(".scroller").click(position={"x": FIRST_CELL[0], "y": FIRST_CELL[1]})
    expect(page.locator(".panel .title")).to_have_text("node node-a1")
    pods = get(client, SAMPLE, "/pods?nodeName=node-a1")["items"]
    expect(page.locator(".panel h3", has_text=f"{len(pods)} pod")).to_be_visible()
    assert "select=node%3Anode-a1" in page.url
    page.get_by_role("button", name=f"{pods[0]['metadata']['namespace']}/").first.click()
    page.get_by_role("link", name="Why there?").click()
    expect(page.locator(".matrix .chosen")).to_contain_text("node-a1")


def test_the_keys_lead_from_node_to_node(visit: Visit) -> None:
    page = visit.open_map(SAMPLE, key=ZONE)
    page.locator(".scroller").focus()
    told = page.locator("#focused-node")
    for key, node in (("ArrowDown", "node-a1"), ("ArrowDown", "node-a2"), ("ArrowUp", "node-a1")):
        page.keyboard.press(key)
        expect(told).to_contain_text(node)
    expect(told).to_contain_text("zone-a")
    expect(told).to_contain_text("of cpu used")
    for _ in range(4):
        page.keyboard.press("ArrowRight")
    expect(told).to_contain_text("node-b1")
    page.keyboard.press("Enter")
    expect(page.locator(".panel .title")).to_have_text("node node-b1")
    page.keyboard.press("Escape")
    expect(figure(page, "Nodes")).to_have_text("12")


def test_each_colouring_has_a_legend_and_colours_the_map(visit: Visit) -> None:
    page = visit.open_map(SAMPLE, key=ZONE)
    colours = {}
    for mode, words in (
        ("used", "95 % and more"),
        ("priority", "0"),
        ("owner", "shop/web"),
        ("rule", "node affinity + anti-affinity"),
        ("violation", "breaks none"),
    ):
        page.get_by_label("Colour").select_option(mode)
        expect(page.locator(f".legend.{mode}")).to_contain_text(words)
        page.wait_for_function(
            "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))"
        )
        colours[mode] = pixel(page, 40, 60)
    assert len(set(colours.values())) >= 4, colours


def test_a_workload_shows_its_domains_counts_and_skew(visit: Visit, client: httpx.Client) -> None:
    page = visit.open_map(SAMPLE, key=ZONE)
    page.get_by_role("searchbox").fill("training-3")
    expect(page.locator(".hits button").first).to_have_text("pod lab/training-3")
    page.get_by_role("searchbox").fill("shop/web")
    page.locator(".hits button", has_text="workload").click()
    expect(page.locator(".hits")).to_have_count(0)
    expect(page.locator(".panel .title")).to_have_text("App shop/web")
    topology = get(client, SAMPLE, f"/topology?key={ZONE}")
    zones = {node: domain["value"] for domain in topology["domains"] for node in domain["nodes"]}
    pods = get(client, SAMPLE, "/namespaces/shop/pods?labelSelector=app%3Dweb")["items"]
    expected = Counter(zones[each["spec"]["nodeName"]] for each in pods)
    section = page.locator(".panel section").filter(
        has=page.get_by_role("heading", name=f"By {ZONE}")
    )
    rows = section.locator("tbody tr").all_inner_texts()
    assert {name: int(count) for name, count in map(str.split, rows)} == expected
    skew = max(expected.values()) - min(expected.values())
    expect(section).to_contain_text(f"Skew {skew}")
    expect(page.locator(".panel h3", has_text=re.compile("^Spread$"))).to_be_visible()


def test_lines_lead_to_the_pods_that_the_rules_of_a_workload_are_about(
    visit: Visit, client: httpx.Client
) -> None:
    nodes = {
        app: Counter(
            each["spec"]["nodeName"]
            for each in get(client, SAMPLE, f"/pods?labelSelector=app%3D{app}")["items"]
            if "nodeName" in each["spec"]
        )
        for app in ("web", "cache", "db")
    }
    together = sum(count * nodes["cache"][node] for node, count in nodes["web"].items())
    page = visit.open_map(SAMPLE, select="workload:shop/App/web")
    expect(page.locator(".scroller")).to_have_attribute("data-lines", str(together))
    expect(page.locator(".lines")).to_contain_text(f"{together} to pods that fulfil its affinity")
    page = visit.open_map(SAMPLE, select="workload:data/App/db")
    pairs = nodes["db"].total() * (nodes["db"].total() - 1) // 2
    assert together > 0 < pairs
    expect(page.locator(".scroller")).to_have_attribute("data-lines", str(pairs))
    expect(page.locator(".lines")).to_contain_text(f"{pairs} to pods that its anti-affinity")


def test_a_search_counts_what_it_finds(visit: Visit) -> None:
    page = visit.open_map(REAL)
    page.get_by_role("searchbox").fill("node-00")
    expect(page.locator(".hits")).to_contain_text(re.compile(r"[1-9]\d* nodes?"))
    page.keyboard.press("Escape")
    expect(page.locator(".hits")).to_have_count(0)


@pytest.mark.parametrize("name", ["shop/web-0", "data/db-3"])
def test_why_is_a_matrix_of_nodes_and_plugins(
    visit: Visit, client: httpx.Client, name: str
) -> None:
    namespace, pod = name.split("/")
    page = visit.open("why", SAMPLE, namespace, pod)
    expect(page.locator(".matrix")).to_be_visible()
    told = get(client, SAMPLE, f"/namespaces/{namespace}/pods/{pod}/explanation")
    rows = {
        row[0].removesuffix("chosen").strip(): row for row in table(page, ".matrix") if len(row) > 1
    }
    assert {node: row[1] for node, row in rows.items() if row[1] != NONE} == {
        node: str(total) for node, total in told.get("total", {}).items()
    }
    plugins = [
        each.replace("\u200b", "") for each in page.locator(".matrix .plugin").all_inner_texts()
    ]
    refusals = {(node, plugin) for plugin, nodes in told["filters"].items() for node in nodes}
    shown = {
        (node, plugin)
        for node, row in rows.items()
        for plugin, cell in zip(plugins, row[2:], strict=True)
        if cell.startswith("✕")
    }
    assert shown == refusals
    totals = [int(row[1]) for row in rows.values() if row[1] != NONE]
    assert all(a >= b for a, b in pairwise(totals))
    assert len(rows) == 12
    if pod == "db-3":
        expect(page.locator(".verdict")).to_contain_text("0/12 nodes are available")


def test_a_refusal_leads_to_the_pods_behind_it_and_has_a_link(
    visit: Visit, client: httpx.Client
) -> None:
    page = visit.open("why", SAMPLE, "data", "db-3")
    row = page.locator(".matrix .refused", has_text="node-a1")
    row.get_by_role("button", name="didn't match pod anti-affinity rules").click()
    path = "/namespaces/data/pods/db-3/explanation?node=node-a1"
    told = get(client, SAMPLE, path)["culprits"]
    shown = page.locator(".culprit")
    expect(shown).to_have_count(len(told))
    assert len(told) == 2
    for culprit, box in zip(told, shown.all(), strict=True):
        expect(box).to_contain_text(culprit["reason"])
        expect(box).to_contain_text(f"{culprit['domain']['key']}={culprit['domain']['value']}")
        names = box.locator("li a").all_inner_texts()
        assert names == [f"{pod['namespace']}/{pod['name']}" for pod in culprit["pods"]]
        for rule in [culprit["rule"], *(pod["rule"] for pod in culprit["pods"])]:
            expect(box).to_contain_text(rule or "")
    page.reload()
    shown.first.locator("li a").first.click()
    expect(page.locator(".panel .title")).to_contain_text(f"{told[0]['pods'][0]['name']}")


def repairs_path(pod: dict) -> str:
    return f"/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}/repairs"


def only_drops(repair: dict) -> bool:
    return [each["op"] for each in repair["changes"]] == ["DropRule"]


def test_repairs_say_what_would_let_a_pod_fit_and_can_be_tried(
    visit: Visit, client: httpx.Client
) -> None:
    name, told = next(
        (each["metadata"]["name"], repairs)
        for each in get(client, REAL, "/pods?phase=Pending")["items"]
        if "affinity" in each["spec"]
        and (repairs := get(client, REAL, repairs_path(each))["repairs"])
        and any(only_drops(repair) for repair in repairs)
    )
    page = visit.open("why", REAL, "openb", name)
    lines = page.locator(".repairs li")
    expect(lines).to_have_count(len(told))
    for repair, line in zip(told, lines.all(), strict=True):
        expect(line).to_contain_text(f"then it gets {repair['places']}")
        expect(line).to_contain_text(repair["why"])
    rule = "give up the rule spec.affinity.nodeAffinity"
    index = next(at for at, repair in enumerate(told) if only_drops(repair))
    lines.nth(index).get_by_role("link", name="Try it").click()
    expect(page.locator(".as-of")).to_contain_text(f"A repair of openb/{name}: {rule}")
    expect(page.get_by_role("heading", name="1 pod would be placed")).to_be_visible()
    assert "nodeAffinity" not in page.locator("textarea").first.input_value()


def test_a_repair_of_the_cluster_is_tried_as_a_plan(visit: Visit, client: httpx.Client) -> None:
    """Before that, the search is under way, and then ends early without any repair."""
    told = get(client, SAMPLE, "/namespaces/lab/pods/training-3/repairs")
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    visit.page.route(re.compile("/repairs$"), hold)
    page = visit.open("why", SAMPLE, "lab", "training-3")
    section = page.get_by_role("region", name="What would let it fit")
    expect(section.get_by_role("status")).to_contain_text("Trying out changes")
    none = {**told, "repairs": [], "complete": False, "unfinished": "The time is over."}
    held[0].fulfill(json=none)
    expect(section.get_by_role("status")).to_contain_text("None was found within the bounds")
    expect(section.get_by_role("status")).to_contain_text("The time is over.")
    page.get_by_role("button", name="Ask again").click()
    while len(held) < 2:
        page.wait_for_timeout(10)
    held[1].continue_()
    lowered = next(each["changes"][0] for each in told["repairs"] if "to" in each["changes"][0])
    words = f"request {lowered['to']} of {lowered['resource']} instead of {lowered['from']}"
    expect(section).to_contain_text(f"{words}, which is")
    section.get_by_role("link", name=re.compile("^Try it ?: remove")).first.click()
    expect(page.locator(".drafts")).to_contain_text("remove lab/training-")
    verdict = page.locator(".plan .verdict")
    expect(verdict).to_have_text("1 pod would get a node, and none would be without one.")
    assert page.locator(".planning textarea").input_value().count("training-3-repaired") == 1


def test_a_waiting_pod_says_what_stands_against_it_where_the_least_does(visit: Visit) -> None:
    page = visit.open("waiting", SAMPLE)
    page.get_by_role("button", name="What stands against data/db-3?").click()
    expect(page.locator(".culprit")).to_contain_text("InterPodAffinity on node-a1")
    expect(page.locator(".culprit li a")).to_contain_text(re.compile("data/db-[0-2]"))


def test_refused_nodes_are_grouped_by_reason(visit: Visit, client: httpx.Client) -> None:
    pending = get(client, REAL, "/pods?phase=Pending")["items"]
    pod = next(each for each in pending if "affinity" in each["spec"])
    page = visit.open("why", REAL, pod["metadata"]["namespace"], pod["metadata"]["name"])
    groups = page.locator(".matrix .group.bad button")
    expect(groups.first).to_be_visible()
    counts = [
        int(text.split()[1 if text.startswith(("▸", "▾")) else 0])
        for text in groups.all_inner_texts()
    ]
    told = get(client, REAL, f"/namespaces/openb/pods/{pod['metadata']['name']}/explanation")
    refused = {node for nodes in told["filters"].values() for node in nodes}
    assert sum(counts) == len(refused) > 0
    assert counts == sorted(counts, reverse=True)
    before = page.locator(".matrix .refused").count()
    groups.first.click()
    expect(page.locator(".matrix .refused")).not_to_have_count(before)


def test_waiting_pods_stand_by_reason(visit: Visit, client: httpx.Client) -> None:
    page = visit.open("waiting", SAMPLE)
    expect(page.locator("section.card")).to_have_count(2)
    expect(
        page.locator("section.card", has_text="didn't match pod anti-affinity rules")
    ).to_contain_text("data/db-3")
    expect(page.locator("section.card", has_text="Insufficient example.com/gpu")).to_contain_text(
        "lab/training-3"
    )
    expect(page.locator("section.card", has_text="Insufficient")).to_contain_text(
        "Tried again when a pod leaves, or a node gets room"
    )
    page.get_by_role("link", name="data/db-3").click()
    expect(page.locator("h1")).to_have_text("data/db-3")


def test_what_if_tells_where_pods_would_go_and_stores_nothing(
    visit: Visit, client: httpx.Client
) -> None:
    before = get(client, SAMPLE, "")["revision"]
    page = visit.open("what-if", SAMPLE)
    page.get_by_role("button", name="Try it").click()
    expect(page.get_by_role("heading", name="3 pods would be placed")).to_be_visible()
    nodes = [
        text.split("→")[1].strip() for text in page.locator(".outcomes button").all_inner_texts()
    ]
    assert {node[5] for node in nodes} == {"a", "b", "c"}, "one in each zone"
    expect(page.locator(".matrix .chosen")).to_contain_text(nodes[0])
    page.locator(".outcomes button").nth(1).click()
    expect(page.locator(".matrix .chosen")).to_contain_text(nodes[1])
    assert get(client, SAMPLE, "")["revision"] == before


def test_a_pod_that_is_tried_can_be_dropped_on_the_map(visit: Visit, client: httpx.Client) -> None:
    before = get(client, SAMPLE, "")["revision"]
    page = visit.open("what-if", SAMPLE)
    pod = (
        "kind: Pod\nmetadata: {name: p}\nspec: {nodeSelector: {disk: ssd}, containers: [{name: c}]}"
    )
    page.locator("textarea").first.fill(pod)
    page.get_by_role("button", name="Try it").click()
    stage = page.locator(".dropping .scroller")
    stage.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    told = page.locator(".dropped")
    expect(told).to_contain_text("node-a1")
    by_key = told.inner_text()
    page.keyboard.press("Escape")
    expect(told).to_have_text("")
    page.locator(".dropping .tag").drag_to(stage, target_position={"x": 30, "y": 45})
    expect(told).to_have_text(by_key)
    for _ in range(3):
        page.keyboard.press("ArrowDown")
    assert get(client, SAMPLE, "")["revision"] == before


def plan(page: Page, op: str, *inputs: tuple[str, str]) -> None:
    """Add one change to the plan on the page, with what its fields are to say."""
    form = page.get_by_role("form", name="A change")
    form.get_by_label("What if we").select_option(op)
    for label, value in inputs:
        own = form.locator(f'label:has(> span:text-is("{label}"))')
        field = own.locator("select, input")
        if field.evaluate("each => each.tagName") == "SELECT":
            field.select_option(value)
        else:
            field.fill(value)
    form.get_by_role("button", name="Add the change").click()


def test_what_if_shows_the_loss_of_a_zone_as_a_plan_says_it(
    visit: Visit, client: httpx.Client
) -> None:
    before = get(client, SAMPLE, "")["revision"]
    lost = {"op": "RemoveNodes", "topology": {"key": ZONE, "values": ["zone-a"]}}
    goal = {"type": "Place", "displaced": True}
    wanted = {"changes": [lost], "goal": goal, "explain": "Summary"}
    told = client.post(f"/v1/clusters/{SAMPLE}/plans", json=wanted).json()
    page = visit.open("what-if", SAMPLE)
    plan(page, "RemoveNodes", ("nodes by", ZONE), ("value", "zone-a"))
    page.get_by_role("button", name="Plan it").click()
    expect(page.locator(".plan .verdict")).to_contain_text(
        f"{told['unplacedTotal']} pods would have no node"
    )
    steps = page.locator(".waves .plain-list li")
    expect(steps).to_have_count(told["stepsTotal"])
    for step, line in zip(told["steps"], steps.all(), strict=True):
        expect(line).to_contain_text(f"{step['name']}: {step['from']} → {step['to']}")
    for pod, line in zip(told["unplaced"], page.locator(".unplaced li").all(), strict=True):
        expect(line).to_contain_text(pod["message"])
    totals = {name: (now, then) for name, now, then in table(page, ".totals")}
    assert totals["Nodes"] == (str(told["before"]["nodes"]), str(told["after"]["nodes"]))
    assert totals["Pods on nodes"] == (str(told["before"]["pods"]), str(told["after"]["pods"]))
    assert told["stepsTotal"] > 0 < told["unplacedTotal"]
    lines = str(told["stepsTotal"])
    expect(page.locator(".planned-map .scroller")).to_have_attribute("data-lines", lines)
    assert get(client, SAMPLE, "")["revision"] == before


def test_what_if_takes_several_changes_and_pods_to_place_after_them(visit: Visit) -> None:
    page = visit.open("what-if", SAMPLE)
    plan(page, "CordonNodes", ("nodes by", ZONE), ("value", "zone-b"))
    plan(page, "SetTaints", ("nodes by", ZONE), ("value", "zone-c"), ("taints", "no:NoSchedule"))
    plan(page, "SetTaints", ("nodes by", ""), ("node", "node-a1"), ("taints", "no=body:NoExecute"))
    plan(page, "SetLabels", ("nodes by", ""), ("node", "node-a2"), ("labels", "disk=fast"))
    plan(page, "AddNodes", ("node", "node-a1"), ("count", "2"))
    plan(page, "RemoveNodes", ("nodes by", ""), ("node", "node-a3"))
    page.get_by_role("button", name="Leave out: lose node-a3").click()
    page.get_by_text("and place pods after that").click()
    pods = "kind: Pod\nmetadata: {name: p}\nspec: {nodeSelector: {disk: fast}, containers: [{name: c}]}"
    page.locator(".planning textarea").fill(pods)
    page.get_by_role("button", name="Plan it").click()
    expect(page.locator(".waves .plain-list li")).to_contain_text("p: no node → node-a2")
    expect(page.locator(".planned-map .scroller")).to_have_attribute("data-nodes", "14")


def test_what_if_says_what_is_wrong_with_a_change(visit: Visit) -> None:
    page = visit.open("what-if", SAMPLE)
    plan(page, "SetTaints", ("nodes by", ""), ("node", "node-a1"), ("taints", "none"))
    page.get_by_role("button", name="Plan it").click()
    expect(page.get_by_role("alert")).to_contain_text("none is no taint")


def test_what_if_says_what_is_wrong(visit: Visit) -> None:
    page = visit.open("what-if", SAMPLE)
    for text, problem in (
        ("kind: ConfigMap", "A ConfigMap has no template of pods."),
        ("[", "end of"),
        (
            "kind: Pod\nmetadata: {name: NOT}\nspec: {containers: [{name: c}]}",
            "pods[0].metadata.name",
        ),
    ):
        page.locator("textarea").first.fill(text)
        page.get_by_role("button", name="Try it").click()
        expect(page.get_by_role("alert")).to_contain_text(problem)


def test_events_tell_what_happened(visit: Visit) -> None:
    page = visit.open("events", SAMPLE)
    expect(page.locator(".timeline li", has_text="shop/web-0")).to_contain_text("Scheduled")
    page.get_by_role("button", name="FailedScheduling").click()
    expect(page.locator(".timeline li")).to_have_count(2)


def test_the_slider_leads_to_the_cluster_as_it_was(visit: Visit, client: httpx.Client) -> None:
    page = visit.page
    asked = []
    page.on("request", lambda each: asked.append(each.url) if "revision=" in each.url else None)
    page.clock.install()
    visit.open("events", SAMPLE)
    slider = page.get_by_role("slider", name="Revision")
    head = get(client, SAMPLE, "")["revision"]
    expect(slider).to_have_value(str(head))
    page.clock.pause_at(page.evaluate("Date.now() / 1000 + 10"))
    for _ in range(8):
        slider.press("ArrowLeft")
    page.clock.resume()
    then = head - 8
    banner = page.locator(".as-of")
    expect(banner).to_contain_text(f"As of revision {then}, committed")
    told = get(client, SAMPLE, f"/revisions?revision={then}")["at"]
    expect(banner.locator("time")).to_have_attribute("datetime", told)
    expect(page.locator(".state")).to_contain_text("Paused")
    pods = get(client, SAMPLE, f"/pods?revision={then}")["items"]
    expect(figure(page, "Pods")).to_have_text(str(len(pods)))
    assert 0 < len(pods) < get(client, SAMPLE, "")["counts"]["pods"]
    assert len(asked) == 3, "the nodes, the pods and the time, once the slider rests"
    assert f"revision={then}" in page.url
    banner.get_by_role("button", name="Back to now").click()
    expect(banner).to_have_count(0)
    expect(slider).to_be_focused()
    expect(page.locator(".state")).to_contain_text("Live")


def test_a_placement_leads_to_its_map_and_its_explanation(
    visit: Visit, client: httpx.Client
) -> None:
    pod = get(client, SAMPLE, "/namespaces/shop/pods/web-0")
    revision, node = pod["metadata"]["resourceVersion"], pod["spec"]["nodeName"]
    page = visit.open("events", SAMPLE)
    line = page.locator(".timeline li", has_text="shop/web-0")
    line.get_by_role("link", name=f"Map at revision {revision}").press("Enter")
    expect(page.locator(".panel .title")).to_have_text("pod shop/web-0")
    expect(page.get_by_role("slider")).to_have_value(revision)
    expect(page.get_by_role("slider")).to_be_focused()
    later = [int(text.split()[3]) for text in page.locator(".later .then").all_inner_texts()]
    assert min(later) == int(revision) + 1
    page.reload()
    page.locator(".panel").get_by_role("link", name="Why there?").click()
    path = f"/namespaces/shop/pods/web-0/explanation?revision={revision}"
    told = get(client, SAMPLE, path)
    expect(page.locator(".verdict")).to_contain_text(f"It was placed on {node}, the best of")
    rows = [row for row in table(page, ".matrix") if len(row) > 1 and row[1] != NONE]
    shown = {row[0].removesuffix("chosen").strip(): int(row[1]) for row in rows}
    assert shown == told["total"] != get(client, SAMPLE, path.partition("?")[0])["total"]
    page.get_by_role("link", name="Explain it now").click()
    expect(page.locator(".verdict")).to_contain_text(f"It is on {node}")


def test_events_lead_to_earlier_revisions_once_the_slider_is_there(visit: Visit) -> None:
    page = visit.page
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.route(re.compile("/revisions$"), hold)
    visit.open("events", SAMPLE)
    line = page.locator(".timeline li", has_text="shop/web-0")
    expect(line).to_be_visible()
    expect(page.get_by_role("link", name="Map at revision")).to_have_count(0)
    held[0].continue_()
    line.get_by_role("link", name="Map at revision").press("Enter")
    expect(page.locator(".as-of")).to_be_visible()
    expect(page.get_by_role("slider")).to_be_focused()


def test_a_revision_that_is_no_longer_known_is_told(visit: Visit, client: httpx.Client) -> None:
    oldest = get(client, SAMPLE, "/revisions")["oldestByKind"]["Pod"]
    page = visit.open("events", SAMPLE, revision=str(oldest - 1))
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text("the log does not reach back so far")
    alert.get_by_role("button", name=f"Go to revision {oldest}").click()
    expect(page.locator(".as-of")).to_contain_text(f"As of revision {oldest}")
    expect(figure(page, "Nodes")).to_be_visible()


def test_health_tells_the_servers_own_figures(visit: Visit, page: Page) -> None:
    visit.open("health", SAMPLE)
    expect(page.locator(".tile", has_text="Pending pods").locator(".big")).not_to_have_text("0")
    expect(page.locator(".tile", has_text="Placement, median").locator(".big")).to_contain_text(
        "ms"
    )
    expect(page.locator(".tile", has_text="Watches").locator(".big")).to_contain_text(
        re.compile("[1-9]")
    )
    limits = page.get_by_role("region", name="Limits", exact=True)
    expect(limits).to_contain_text(re.compile("Watches[1-9][0-9]* of 1,000"))
    expect(limits).to_contain_text(
        re.compile("Objects of the largest cluster[1-9][0-9]* of 2,000,000")
    )
    limits.get_by_text("All limits as they are set").click()
    expect(limits.get_by_role("row", name="MOORAGE_BODY_BYTES_MAX")).to_contain_text("1 MiB")
    expect(limits.get_by_role("row", name="MOORAGE_PAST_CHANGES_MAX")).to_contain_text("20")


def test_an_unknown_pod_and_cluster_are_told(visit: Visit, page: Page) -> None:
    visit.open("why", SAMPLE, "shop", "nobody")
    expect(page.get_by_role("alert")).to_contain_text("nobody")
    page.goto(f"{visit.server}/#/map/nowhere")
    expect(page.get_by_role("alert")).to_contain_text("nowhere")
