"""Events over HTTP: what happened to pods, counted and not repeated."""

from typing import Any

from tests.api.harness import CLUSTER, Harness, pod, problem
from tests.waiting import once

RDE = "requiredDuringSchedulingRequiredDuringExecution"

Told = tuple[str, str, int]
"""Reason, message and count."""


async def events(harness: Harness, scope: str = "", **parameters: Any) -> list[dict[str, Any]]:
    answer = await harness.client.get(f"{CLUSTER}{scope}/events", params=parameters)
    assert answer.status_code == 200, answer.text
    return list(answer.json()["items"])


async def told(harness: Harness, name: str) -> list[Told]:
    found = await events(harness, fieldSelector=f"involvedObject.name={name}")
    return sorted((each["reason"], each["message"], each["count"]) for each in found)


async def when_told(harness: Harness, name: str, wanted: Told) -> list[Told]:
    """What is told of a pod once this is."""

    async def found() -> list[Told]:
        events = await told(harness, name)
        return events if wanted in events else []

    return await once(found)


async def when_counted(harness: Harness, line: str) -> None:
    """Return once the metrics have this line."""

    async def is_counted() -> bool:
        return line in (await harness.client.get("/metrics")).text.splitlines()

    await once(is_counted)


async def bind(harness: Harness, name: str, node: str, *, force: bool = False) -> None:
    answer = await harness.client.post(
        f"{CLUSTER}/namespaces/shop/pods/{name}/binding",
        json={"target": {"name": node}, "force": force},
    )
    assert answer.status_code == 200, answer.text


async def test_a_placement_is_an_event_of_kubernetes_shape(over_each_store: Harness) -> None:
    """O04: whoever was placed has its node, and an event that says so."""
    await over_each_store.put_node("n1")
    placed = (await over_each_store.place(pod("web-0")))["results"][0]
    answer = await over_each_store.client.get(f"{CLUSTER}/events")
    page = answer.json()
    assert (page["kind"], page["apiVersion"]) == ("EventList", "v1")
    assert page["metadata"]["resourceVersion"] == answer.headers["moorage-revision"]
    (event,) = page["items"]
    about = {"kind": "Pod", "apiVersion": "v1", "namespace": "shop", "name": "web-0"}
    assert event["involvedObject"] == {**about, "uid": placed["uid"]}
    assert (event["type"], event["reason"], event["count"]) == ("Normal", "Scheduled", 1)
    assert event["message"] == "Successfully assigned shop/web-0 to n1"
    assert event["firstTimestamp"] == event["lastTimestamp"]
    assert event["source"] == {"component": "moorage"}
    assert event["metadata"]["namespace"] == "shop"
    assert event["metadata"]["name"].startswith("web-0.")
    assert int(event["metadata"]["resourceVersion"]) <= int(page["metadata"]["resourceVersion"])


async def test_what_was_observed_or_only_tried_is_no_event(harness: Harness) -> None:
    await harness.put_node("n1")
    await harness.put_pod("observed", nodeName="n1")
    await harness.place(pod("tried"), dryRun=True)
    await harness.place(pod("refused", nodeSelector={"no": "such"}))
    assert await events(harness) == []


async def test_failures_are_counted_and_not_repeated(over_each_store: Harness) -> None:
    """O04: a pod that waits has one event for each set of reasons, however often it is tried."""
    harness = over_each_store
    await harness.configure(placePendingPods=False)
    await harness.put_node("n1")
    await harness.put_pod("web-0", nodeSelector={"disk": "ssd"})
    refs = {"podRefs": [{"namespace": "shop", "name": "web-0"}]}
    for number in (1, 2, 3):
        answer = await harness.client.post(f"{CLUSTER}/placements", json=refs)
        assert answer.json()["results"][0]["outcome"] == "Unschedulable"
        if number == 2:
            await harness.put_node("n2")
    why = "2 node(s) didn't match Pod's node affinity/selector."
    (event,) = await events(harness)
    assert (event["type"], event["reason"], event["count"]) == ("Warning", "FailedScheduling", 3)
    assert event["message"].startswith(f"0/2 nodes are available: {why}")

    await harness.put_node("n3", disk="ssd")
    await harness.client.patch(f"{CLUSTER}/nodes/n3", json={"spec": {"unschedulable": True}})
    await harness.client.post(f"{CLUSTER}/placements", json=refs)
    assert [each["count"] for each in await events(harness)] in ([1, 3], [3, 1])


async def test_pods_that_wait_are_told_of_by_themselves(harness: Harness) -> None:
    await harness.put_node("n1")
    for name in ("a", "b"):
        await harness.place(pod(name, nodeSelector={"disk": "ssd"}), onUnschedulable="Queue")
    await harness.put_node("n2", disk="ssd")
    for name in ("a", "b"):
        scheduled = ("Scheduled", f"Successfully assigned shop/{name} to n2", 1)
        found = await when_told(harness, name, scheduled)
        assert [reason for reason, _, _ in found] == ["FailedScheduling", "Scheduled"]


async def test_gates_are_no_failure(harness: Harness) -> None:
    await harness.put_node("n1")
    gated = pod("web-0", schedulingGates=[{"name": "wait"}])
    answer = await harness.place(gated, onUnschedulable="Queue")
    assert answer["results"][0]["outcome"] == "Queued"
    assert await events(harness) == []


async def test_a_forced_binding_is_an_audit_event_that_names_what_it_overruled(
    over_each_store: Harness,
) -> None:
    harness = over_each_store
    await harness.configure(placePendingPods=False)
    await harness.put_node("n1")
    await harness.put_pod("web-0", nodeSelector={"disk": "ssd"})
    await harness.put_pod("web-1")
    await bind(harness, "web-0", "n1", force=True)
    await bind(harness, "web-1", "n1", force=True)
    reason = "NodeAffinity: node(s) didn't match Pod's node affinity/selector"
    forced = ("BindingForced", f"Bound to n1 by force, where it does not fit: {reason}.", 1)
    scheduled = ("Scheduled", "Successfully assigned shop/web-0 to n1", 1)
    assert await told(harness, "web-0") == [forced, scheduled]
    assert [reason for reason, _, _ in await told(harness, "web-1")] == ["Scheduled"]
    audits = await harness.store.events.list(await harness.store.clusters.find("default"), limit=9)
    assert "BindingForced" in {row.event.reason for row in audits.rows}


async def test_evictions_name_their_rule(over_each_store: Harness) -> None:
    harness = over_each_store
    await harness.put_node("n1", disk="ssd")
    terms = [{"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}]
    affinity = {"nodeAffinity": {RDE: {"nodeSelectorTerms": terms}}}
    await harness.place(pod("lasting", affinity=affinity), pod("asked"))
    path = f"{CLUSTER}/namespaces/shop/pods/asked/eviction"
    for _ in range(2):
        assert (await harness.client.post(path, json={})).status_code == 201
    assert ("Evicted", "Eviction API: evicting", 1) in await told(harness, "asked")

    await harness.put_node("n1", disk="hdd")
    field = f"spec.affinity.nodeAffinity.{RDE}"
    wanted = ("Evicted", f"{field} does not hold on node n1.", 1)
    await when_told(harness, "lasting", wanted)
    # Audits are in the commit itself, and can be read before the committer knows and counts it.
    for rule in ("NodeAffinity", "EvictionAPI"):
        await when_counted(harness, f'moorage_evictions_total{{rule="{rule}"}} 1.0')


async def test_lists_of_events_are_filtered_and_paged(over_each_store: Harness) -> None:
    harness = over_each_store
    await harness.put_node("n1")
    await harness.place(pod("a"), pod("b"), pod("c", namespace="other"))
    stuck = pod("d", nodeSelector={"no": "such"})
    await harness.place(stuck, onUnschedulable="Queue")

    def pods(found: list[dict[str, Any]]) -> list[str]:
        return [each["involvedObject"]["name"] for each in found]

    assert pods(await events(harness, "/namespaces/other")) == ["c"]
    assert pods(await events(harness, fieldSelector="type=Warning")) == ["d"]
    assert pods(await events(harness, fieldSelector="reason=Scheduled,type!=Warning")) == [
        *("c", "a", "b")
    ]
    uid = (await events(harness, fieldSelector="involvedObject.name=b"))[0]["involvedObject"]["uid"]
    assert pods(await events(harness, fieldSelector=f"involvedObject.uid={uid}")) == ["b"]
    assert pods(await events(harness, fieldSelector="involvedObject.kind=Node")) == []

    first = (await harness.client.get(f"{CLUSTER}/events", params={"limit": 3})).json()
    more = {"limit": 3, "continue": first["metadata"]["continue"]}
    second = (await harness.client.get(f"{CLUSTER}/events", params=more)).json()
    assert pods(first["items"]) + pods(second["items"]) == ["c", "a", "b", "d"]
    assert "continue" not in second["metadata"]


async def test_wrong_questions_about_events(harness: Harness) -> None:
    ask = harness.client.get
    wrong = await ask(f"{CLUSTER}/events", params={"fieldSelector": "spec.nodeName=n1"})
    assert problem(wrong, 400)
    assert problem(await ask(f"{CLUSTER}/events", params={"labelSelector": "a=b"}), 400)
    assert problem(await ask("/v1/clusters/none/events"), 404) == "NotFound"
