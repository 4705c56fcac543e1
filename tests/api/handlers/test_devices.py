"""Claims to devices over HTTP: kept, checked, given with pods, and taken back."""

import asyncio
from typing import Any

import msgspec
import pytest

from tests.api.harness import CLUSTER, Harness, problem
from tests.api.story import Story, path_of, tell
from tests.builders import (
    GPU,
    Manifest,
    ObjectBuilder,
    asking,
    claim_template,
    device,
    device_claim,
    device_class,
    node,
    pod,
    resource_slice,
)

GPUS = resource_slice("n1", device("gpu-0", model="a"), device("gpu-1", model="b"))
SCENE = (node("n1"), node("n2"), device_class(), GPUS)
IS_A = f'device.attributes["{GPU}"].model == "a"'


async def devices_of(story: Story, claim: Manifest) -> list[str]:
    status = (await story.read(claim)).get("status", {})
    results = status.get("allocation", {}).get("devices", {}).get("results", [])
    return [each["device"] for each in results]


async def test_of_placements_at_once_for_one_device_one_gets_it(over_each_store: Harness) -> None:
    claims = [device_claim(f"c{n}", asking(1, IS_A)) for n in range(4)]
    story = await tell(over_each_store, *SCENE, *claims)
    names = await asyncio.gather(
        *(story.place(pod(f"p{n}").devices(f"c{n}")) for n in range(len(claims)))
    )
    assert sorted(str(*each) for each in names) == ["None", "None", "None", "n1"]
    given = [await devices_of(story, each) for each in claims]
    assert sorted(given) == [[], [], [], ["gpu-0"]]


async def test_a_pod_of_a_template_takes_its_claim_with_it(over_each_store: Harness) -> None:
    story = await tell(over_each_store, *SCENE, claim_template("one"))
    made = pod("p").devices(template="one")
    assert await story.place(made) == ["n1"]
    (status,) = (await story.read(made))["status"]["resourceClaimStatuses"]
    claim = device_claim(status["resourceClaimName"])
    assert await devices_of(story, claim) == ["gpu-0"]
    await story.delete(made)
    gone = await over_each_store.client.get(f"{CLUSTER}/{path_of(claim)}")
    assert gone.status_code == 404


async def test_a_claim_is_not_deleted_while_a_pod_has_its_devices(harness: Harness) -> None:
    claim, user = device_claim("c"), pod("p").devices("c")
    story = await tell(harness, *SCENE, claim)
    await story.place(user)
    refused = await harness.client.delete(f"{CLUSTER}/{path_of(claim)}")
    assert problem(refused, 409) == "Conflict"
    await story.delete(user)
    assert await devices_of(story, claim) == []
    await story.delete(claim)


async def test_a_simulation_gives_devices_of_its_own_objects(harness: Harness) -> None:
    asked = {
        "nodes": [node("n1"), node("n2")],
        "objects": [device_class(), GPUS, device_claim("c", asking(1, IS_A)), claim_template("t")],
        "place": [
            pod("p").devices("c"),
            pod("q").devices(template="t"),
            pod("r").devices(template="t"),
        ],
    }
    answer = await harness.client.post("/v1/simulations", json=asked)
    assert answer.status_code == 200, answer.text
    results = answer.json()["results"]
    assert [each["nodeName"] for each in results] == ["n1", "n1", None]
    assert results[2]["explanation"]["filters"]["DynamicResources"] == {
        name: ["cannot allocate all claims"] for name in ("n1", "n2")
    }


async def test_the_message_without_preemption_is_kubernetes_own(harness: Harness) -> None:
    await tell(harness, *SCENE, device_claim("c", asking(3)))
    for version, of_claims in (("1.36", "still not schedulable, "), ("1.37", "")):
        await harness.configure(kubernetes=version)
        answer = await harness.place(pod("p").devices("c").priority(7), preemption="Propose")
        assert answer["results"][0]["message"] == (
            f"0/2 nodes are available: 2 cannot allocate all claims. {of_claims}preemption: "
            "0/2 nodes are available: 2 Preemption is not helpful for scheduling."
        )


def with_spec(thing: ObjectBuilder, **spec: Any) -> ObjectBuilder:
    return ObjectBuilder(thing | {"spec": thing["spec"] | spec})


@pytest.mark.parametrize(
    ("thing", "field", "message"),
    [
        (
            device_class(expression="device.nope("),
            "spec.selectors[0].cel.expression",
            "Syntax error",
        ),
        (device_class(expression="1"), "spec.selectors[0].cel.expression", "must be true or false"),
        (with_spec(GPUS, allNodes=True), "spec", "must have exactly one of nodeName, nodeSelector"),
        (
            resource_slice("n1", device("a"), device("a")),
            "spec.devices[1].name",
            "is that of another one",
        ),
        (
            resource_slice("n1", device("a") | {"attributes": {"x": {"strings": ["a"]}}}),
            "spec.devices[0].attributes[x].strings",
            "unknown field",
        ),
        (
            device_claim("c", {"name": "r", "deviceClassName": GPU}),
            "spec.devices.requests[0].deviceClassName",
            "did you mean exactly.deviceClassName?",
        ),
        (
            device_claim("c", asking(-1)),
            "spec.devices.requests[0].exactly.count",
            "must be greater than 0",
        ),
        (
            device_claim("c", constraints=[{"requests": ["gpu"]}]),
            "spec.devices.constraints[0]",
            "must have exactly one of matchAttribute, distinctAttribute",
        ),
        (
            resource_slice("n1", device("a") | {"nodeName": "n1"}),
            "spec.devices[0].nodeName",
            "can only be set if the slice has perDeviceNodeSelection",
        ),
        (
            resource_slice(None, device("a"), perDeviceNodeSelection=True),
            "spec.devices[0]",
            "must have exactly one of nodeName, nodeSelector, allNodes",
        ),
        (
            device_claim("c", asking(tolerations=[{"operator": "Exists", "value": "v"}])),
            "spec.devices.requests[0].exactly.tolerations[0].value",
            "must be empty if operator is Exists",
        ),
        (
            claim_template("t", constraints=[{"matchAttribute": f"{GPU}/x", "requests": ["no"]}]),
            "spec.spec.devices.constraints[0].requests[0]",
            "must be the name of a request in the claim",
        ),
    ],
)
async def test_what_is_wrong_is_named(
    harness: Harness, thing: ObjectBuilder, field: str, message: str
) -> None:
    metadata = {"namespace": "default"} | thing["metadata"]
    wrong = await Story(harness).wrong_fields(ObjectBuilder(thing | {"metadata": metadata}))
    assert message in wrong[field]


async def test_a_pod_names_one_source_for_each_claim(harness: Harness) -> None:
    wrong = pod("p").devices("c")
    wrong["spec"]["resourceClaims"] += [{"name": "gpu"}]
    assert await Story(harness).wrong_fields(wrong) == {
        "spec.resourceClaims[1]": "must have exactly one of resourceClaimName and "
        "resourceClaimTemplateName",
        "spec.resourceClaims[1].name": "is that of another one",
    }


SELECTED = {
    f'device.driver == "{GPU}"': True,
    f'device.capacity["{GPU}"].memory.compareTo(quantity("40Gi")) >= 0': True,
    f'device.capacity["{GPU}"].memory.isLessThan(quantity("40Gi"))': False,
    f'device.capacity["{GPU}"].memory.sub(quantity("30Gi")) == quantity("10Gi")': True,
    f'device.attributes["{GPU}"].version.compareTo(semver("1.10.0-rc.2")) > 0': True,
    f'device.attributes["{GPU}"].version.isGreaterThan(semver("1.9.9"))': True,
    f'device.attributes["{GPU}"].version.minor() == 10': True,
    'device.attributes["other.example.com"].link': True,
    'device.attributes["nobody.example.com"].?link.orValue(false)': False,
    '"nobody.example.com" in device.attributes': False,
    f'cel.bind(own, device.attributes["{GPU}"], own.model == "a" && own.cores > 3)': True,
    f'device.attributes["{GPU}"].model.upperAscii() == "A"': True,
}


@pytest.mark.parametrize(("expression", "selected"), SELECTED.items())
async def test_selectors_mean_what_they_mean_in_kubernetes(
    harness: Harness, expression: str, *, selected: bool
) -> None:
    gpu = device("gpu-0", model="a", cores=4, **{"other.example.com/link": True})
    gpu["attributes"]["version"] = {"version": "1.10.0"}
    gpu["capacity"] = {"memory": {"value": "40Gi"}}
    claim = device_claim("c", asking(1, expression))
    story = await tell(harness, node("n1"), device_class(), resource_slice("n1", gpu), claim)
    assert await story.feasible(pod("p").devices("c")) == (["n1"] if selected else [])


async def test_a_claim_of_v1beta1_is_placed_and_applied_as_one_of_v1(harness: Harness) -> None:
    await tell(harness, *SCENE)
    old = {
        "apiVersion": "resource.k8s.io/v1beta1",
        "kind": "ResourceClaim",
        "metadata": {"name": "c", "namespace": "default"},
        "spec": {"devices": {"requests": [{"name": "gpu", "deviceClassName": GPU}]}},
    }
    path = f"{CLUSTER}/namespaces/default/resourceclaims/c"
    headers = {"content-type": "application/apply-patch+yaml"}
    stored = []
    for _ in range(2):
        answer = await harness.client.patch(
            f"{path}?fieldManager=ops", headers=headers, content=msgspec.json.encode(old)
        )
        assert answer.is_success, answer.text
        stored.append(answer.json())
    request = {"name": "gpu", "exactly": {"deviceClassName": GPU}}
    assert stored[0]["apiVersion"] == "resource.k8s.io/v1"
    assert stored[0]["spec"]["devices"]["requests"] == [request]
    assert stored[1]["metadata"]["resourceVersion"] == stored[0]["metadata"]["resourceVersion"]
    placed = await harness.place(pod("p").devices("c"))
    assert [each["nodeName"] for each in placed["results"]] == ["n1"]
