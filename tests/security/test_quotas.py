"""A tenant is bound by the quotas and limit ranges of its namespaces: it reads them, and changes them in no way."""

import json
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import pytest

from service.model.core.access import Grant, Principal, Role
from tests.api.handlers.test_admission import HOSTNAME, apart
from tests.api.handlers.test_quota import quota
from tests.api.harness import CLUSTER, Harness, node, pod, problem
from tests.kept_kinds import kept
from tests.security.callers import Callers, by

Manifest = dict[str, Any]
Ask = Callable[[Harness, Manifest, str], Awaitable[httpx.Response]]

SHOP = by("shop")
TENANTS: tuple[Role, ...] = ("scheduler", "editor", "orchestrator", "observer")
"""The roles that a tenant may be given in its namespace: all that change something, but the admin's."""
PLURALS = {"ResourceQuota": "resourcequotas", "LimitRange": "limitranges"}
LIMITED: tuple[Manifest, ...] = (
    quota("bound", {"pods": "1"}),
    kept("LimitRange", name="bound")
    | {"spec": {"limits": [{"type": "Container", "max": {"cpu": "1"}}]}},
)
RAISED: dict[str, Manifest] = {
    "ResourceQuota": {"hard": {"pods": "999"}},
    "LimitRange": {"limits": [{"type": "Container", "max": {"cpu": "999"}}]},
}


@pytest.fixture
async def bound(harness: Harness) -> Harness:
    """A tenant whose namespace has a quota of one pod, which it has used, and a limit range."""
    Callers(Principal("shop", (Grant("scheduler", "default", "shop"),))).call(harness)
    objects = [{"kind": "Namespace", "metadata": {"name": "shop"}}, node("n1"), *LIMITED]
    assert (await apply(harness, *objects)).status_code == 200
    [placed] = (await harness.place(pod("first")))["results"]
    assert placed["outcome"] == "Placed"
    return harness


async def apply(
    harness: Harness, *objects: Manifest, headers: dict[str, str] | None = None, **parameters: str
) -> httpx.Response:
    return await harness.client.post(
        f"{CLUSTER}/apply",
        json={"kind": "List", "items": [*objects]},
        params=parameters,
        headers=headers or {},
    )


def path_of(made: Manifest, name: str | None = None) -> str:
    return f"{CLUSTER}/namespaces/shop/{PLURALS[made['kind']]}/{name or made['metadata']['name']}"


def raised(made: Manifest, name: str = "bound") -> Manifest:
    return {**made, "metadata": {**made["metadata"], "name": name}, "spec": RAISED[made["kind"]]}


async def by_line(harness: Harness, line: Manifest) -> httpx.Response:
    headers = SHOP | {"content-type": "application/x-ndjson"}
    return await harness.client.post(f"{CLUSTER}/apply", content=json.dumps(line), headers=headers)


WAYS: dict[str, Ask] = {
    "create": lambda h, made, kind: h.client.post(
        f"{CLUSTER}/namespaces/shop/{kind}", json=raised(made, "own"), headers=SHOP
    ),
    "replace": lambda h, made, kind: h.client.put(
        path_of(made), json=raised(made), headers=SHOP
    ),
    "patch": lambda h, made, kind: h.client.patch(
        path_of(made), json={"spec": RAISED[made["kind"]]}, headers=SHOP
    ),
    "server-side apply": lambda h, made, kind: h.client.patch(
        path_of(made, "own"),
        params={"fieldManager": "shop"},
        content=json.dumps(raised(made, "own")),
        headers=SHOP | {"content-type": "application/apply-patch+yaml"},
    ),
    "delete": lambda h, made, kind: h.client.delete(path_of(made), headers=SHOP),
    "delete those of the namespace": lambda h, made, kind: h.client.delete(
        f"{CLUSTER}/namespaces/shop/{kind}?all=true", headers=SHOP
    ),
    "delete those of all namespaces": lambda h, made, kind: h.client.delete(
        f"{CLUSTER}/{kind}?all=true", headers=SHOP
    ),
    "apply": lambda h, made, kind: apply(h, raised(made), headers=SHOP),
    "apply among others": lambda h, made, kind: apply(
        h, pod("second"), raised(made), headers=SHOP
    ),
    "apply and prune": lambda h, made, kind: apply(h, headers=SHOP, prune=made["kind"]),
    "apply a line": lambda h, made, kind: by_line(h, raised(made)),
    "apply a line that deletes": lambda h, made, kind: by_line(
        h, {"delete": {"kind": made["kind"], "metadata": made["metadata"]}}
    ),
}  # fmt: skip
"""How objects are changed: the server, one of them as it is, and the plural of its kind."""


def is_forbidden(answer: httpx.Response) -> bool:
    if answer.headers["content-type"] == "application/x-ndjson":
        return json.loads(answer.text)["result"] == "Forbidden"
    return answer.status_code == 403 and answer.json()["code"] == "Forbidden"


async def limits(harness: Harness) -> Any:
    return [
        (await harness.client.get(f"{CLUSTER}/{each}")).json()["items"] for each in PLURALS.values()
    ]


@pytest.mark.parametrize("role", TENANTS)
async def test_no_tenant_changes_what_bounds_it(bound: Harness, role: Role) -> None:
    Callers(Principal("shop", (Grant(role, "default", "shop"),))).call(bound)
    before = await limits(bound)
    told = {
        (name, made["kind"]): is_forbidden(await ask(bound, made, PLURALS[made["kind"]]))
        for name, ask in WAYS.items()
        for made in LIMITED
    }
    assert told == dict.fromkeys(told, True)
    assert await limits(bound) == before


@pytest.mark.parametrize("name", ["shop", "default"])
@pytest.mark.parametrize("role", [*TENANTS, "admin"])
async def test_no_tenant_loses_its_quota_with_its_namespace(
    bound: Harness, role: Role, name: str
) -> None:
    """Whoever deletes a namespace deletes its quotas, too: that takes the whole cluster, of an admin as well."""
    Callers(Principal("shop", (Grant(role, "default", name),))).call(bound)
    shop = {"name": name, "namespace": name}
    for answer in (
        await bound.client.delete(f"{CLUSTER}/namespaces/{name}", headers=SHOP),
        await by_line(bound, {"delete": {"kind": "Namespace", "metadata": shop}}),
        await apply(bound, headers=SHOP, prune="Namespace"),
        await apply(bound, headers=SHOP, prune="ResourceQuota"),
    ):
        assert is_forbidden(answer), answer.text
    assert all(await limits(bound))


async def test_a_tenant_reads_its_quotas(bound: Harness) -> None:
    answer = await bound.client.get(f"{CLUSTER}/namespaces/shop/resourcequotas", headers=SHOP)
    [told] = answer.json()["items"]
    assert told["status"]["used"] == {"pods": "1"}


async def test_a_raised_or_deleted_quota_lets_no_pod_in(bound: Harness) -> None:
    [own, _] = LIMITED
    assert problem(await WAYS["replace"](bound, own, ""), 403) == "Forbidden"
    assert problem(await WAYS["delete"](bound, own, ""), 403) == "Forbidden"
    [told] = await placed(bound, pod("second"))
    assert (told["outcome"], told["reason"]) == ("Denied", "QuotaExceeded")


async def placed(harness: Harness, *pods: Manifest) -> list[Manifest]:
    answer = await harness.client.post(
        f"{CLUSTER}/placements", json={"pods": [*pods]}, headers=SHOP
    )
    assert answer.status_code == 200, answer.text
    results: list[Manifest] = answer.json()["results"]
    return results


def limited_to(scope: str, values: list[str] | None = None) -> Manifest:
    operator = {"operator": "In", "values": values} if values else {"operator": "Exists"}
    return {"resource": "pods", "matchScopes": [{"scopeName": scope, **operator}]}


async def test_no_tenant_allows_itself_rules_that_keep_others_off(harness: Harness) -> None:
    """Two small pods of one tenant would shut another out of both zones."""
    Callers(Principal("shop", (Grant("scheduler", "default", "shop"),))).call(harness)
    await harness.configure(limitedResources=[limited_to("CrossNamespacePodAffinity")])
    for zone in ("a", "b"):
        await harness.put_node(f"n-{zone}", **{HOSTNAME: f"n-{zone}", "zone": zone})
    own = quota("own", {"pods": "9"}, scopes=["CrossNamespacePodAffinity"])
    assert is_forbidden(await apply(harness, own, headers=SHOP))
    hogs = [pod(f"hog-{n}", **apart("zone", namespaces=["bank"])) for n in (1, 2)]
    told = [each["outcome"] for each in await placed(harness, *hogs)]
    assert told == ["Denied", "Denied"]
    [till] = (await harness.place(pod("till", "bank")))["results"]
    assert till["outcome"] == "Placed"


async def test_no_tenant_gives_itself_a_priority_that_evicts_others(harness: Harness) -> None:
    """With `queuePreemption` its pods would evict others', though its role may evict nobody."""
    Callers(Principal("shop", (Grant("scheduler", "default", "shop"),))).call(harness)
    critical = limited_to("PriorityClass", ["system-node-critical"])
    await harness.configure(limitedResources=[critical], queuePreemption="Evict")
    await harness.put_node("n1")
    await harness.place(*(pod(f"till-{n}", "bank") for n in range(4)))
    scope = critical["matchScopes"][0]
    own = quota("own", {"pods": "9"}, scopeSelector={"matchExpressions": [scope]})
    assert is_forbidden(await apply(harness, own, headers=SHOP))
    hog = pod("hog", priorityClassName="system-node-critical")
    answer = await harness.client.put(f"{CLUSTER}/namespaces/shop/pods/hog", json=hog, headers=SHOP)
    assert problem(answer, 403) == "QuotaExceeded"
    pods = (await harness.client.get(f"{CLUSTER}/pods")).json()["items"]
    assert {each["spec"].get("nodeName") for each in pods} == {"n1"}
    assert len(pods) == 4
