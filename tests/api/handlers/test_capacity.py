"""Capacity over HTTP: as many fit as really placing them shows, and nothing is stored."""

from typing import Any

from tests.api.harness import CLUSTER, Harness, pod, problem

ZONE = "topology.kubernetes.io/zone"


def template(**spec: Any) -> dict[str, Any]:
    made = pod("more", **spec)
    return {"metadata": made["metadata"], "spec": made["spec"]}


async def capacity(harness: Harness, **body: Any) -> dict[str, Any]:
    answer = await harness.client.post(f"{CLUSTER}/capacity", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_as_many_fit_as_placing_them_shows(harness: Harness) -> None:
    await harness.configure()
    for number, zone in enumerate("aab"):
        await harness.put_node(f"n{number}", **{ZONE: zone})
    await harness.put_node("elsewhere")
    await harness.put_pod("there", nodeName="n0")
    spread = {
        "maxSkew": 2,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    wanted = template(topologySpreadConstraints=[spread])
    told = await capacity(harness, template=wanted, topologyKey=ZONE, explain="Summary")
    body = {"template": wanted, "replicas": told["fits"] + 1, "dryRun": True}
    placed = (await harness.client.post(f"{CLUSTER}/placements", json=body)).json()["results"]
    assert [each["outcome"] for each in placed].count("Placed") == told["fits"] == 9
    assert told["domains"] == {"a": 5, "b": 4}
    assert told["withoutKey"] == 0
    assert told["limited"]
    assert told["reason"] == "Unschedulable"
    assert "topology spread" in told["message"]
    assert "PodTopologySpread" in str(told["explanation"])
    pods = (await harness.client.get(f"{CLUSTER}/pods")).json()["items"]
    assert len(pods) == 1


async def test_it_ends_at_a_limit_and_says_so(harness: Harness) -> None:
    await harness.configure()
    await harness.put_node("only")
    told = await capacity(harness, template=template(), limit=2)
    assert (told["fits"], told["limited"], told["message"]) == (2, False, None)
    assert "domains" not in told
    assert "explanation" not in told


async def test_wrong_fields_are_named(harness: Harness) -> None:
    await harness.configure()
    for field, body in {
        "template": {},
        "limit": {"template": template(), "limit": 0},
        "topologyKey": {"template": template(), "topologyKey": "a b"},
        "template.spec.nodeSelector": {"template": template(nodeSelector=[])},
    }.items():
        answer = await harness.client.post(f"{CLUSTER}/capacity", json=body)
        assert problem(answer, 422) == "InvalidManifest"
        assert answer.json()["errors"][0]["field"] == field
