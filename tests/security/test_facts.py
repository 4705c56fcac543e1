"""Facts are for observers: what each role may say of which object, and that no fact goes around admission and quotas."""

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple, get_args

import httpx
import pytest
from typing_extensions import override

from service.model.core.access import VERBS_OF, Role, Verb
from tests.api.handlers.test_admission import (
    HOSTNAME,
    REQUIRED,
    apart,
    exclusive,
    priority_class,
    require,
    sized,
)
from tests.api.handlers.test_quota import configure, put_quota, quota
from tests.api.harness import CLUSTER, Harness, node, pod, problem
from tests.kept_kinds import kept
from tests.security.test_principals import bearer, close_the_door, issue, put

Manifest = dict[str, Any]
NDJSON = {"content-type": "application/x-ndjson"}
RUNS = {"phase": "Running"}
UID = "8c1a5e0e-1111-4222-8333-000000000001"
KEPT_ROOM = {"nominatedNodeName": "n1"}
SMALLER: Manifest = {
    "containerStatuses": [
        {
            "name": "c",
            "resources": {"requests": {"cpu": "1m"}},
            "allocatedResources": {"cpu": "1m"},
        }
    ],
    "conditions": [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}],
}
"""What a kubelet says of a resize that it refuses: the pod has less than its spec asks for."""


ActingAs = Callable[..., Awaitable[dict[str, str]]]
"""Gives somebody grants; the headers of what they ask then."""


@pytest.fixture
async def acting_as(harness: Harness) -> ActingAs:
    """Principals of the server, each with a token; without one the admin asks."""
    admin = await close_the_door(harness)
    harness.client.headers.update(bearer(admin))
    tokens: dict[str, str] = {}

    async def acting(name: str, role: Role, namespace: str | None = None) -> dict[str, str]:
        grant = {"role": role} | ({} if namespace is None else {"namespace": namespace})
        await put(harness, name, [grant], by=admin)
        if name not in tokens:
            tokens[name] = await issue(harness, name, by=admin)
        return bearer(tokens[name])

    return acting


class Asking(NamedTuple):
    """One way to ask for something."""

    harness: Harness
    headers: dict[str, str]
    namespace: str
    new: str = ""
    """The name of an object that is not there."""
    waiting: str = ""
    """A stored pod of the namespace that waits for a node."""
    placed: str = ""
    """Another one that is on a node."""

    async def put(self, path: str, body: Manifest) -> httpx.Response:
        return await self.harness.client.put(self._url(path), json=body, headers=self.headers)

    async def patch(self, name: str, change: Manifest) -> httpx.Response:
        url = self._url(f"pods/{name}")
        return await self.harness.client.patch(url, json=change, headers=self.headers)

    async def delete(self, name: str) -> httpx.Response:
        return await self.harness.client.delete(self._url(f"pods/{name}"), headers=self.headers)

    async def post(self, path: str, body: Manifest) -> httpx.Response:
        return await self.harness.client.post(self._url(path), json=body, headers=self.headers)

    async def place(self, **body: Any) -> httpx.Response:
        url = f"{CLUSTER}/placements"
        return await self.harness.client.post(url, json=body, headers=self.headers)

    async def apply(self, *objects: Manifest, **parameters: str) -> httpx.Response:
        return await self.harness.client.post(
            f"{CLUSTER}/apply",
            json={"kind": "List", "items": [*objects]},
            params=parameters,
            headers=self.headers,
        )

    async def apply_lines(self, *objects: Manifest) -> httpx.Response:
        return await self.harness.client.post(
            f"{CLUSTER}/apply",
            content="\n".join(map(json.dumps, objects)),
            headers=self.headers | NDJSON,
        )

    async def place_new(self, name: str, status: Manifest | None = None) -> httpx.Response:
        return await self.place(pods=[{**self.pod(name), "status": status or {}}])

    async def store(self, name: str, **fields: Any) -> httpx.Response:
        return await self.put(f"pods/{name}", self.pod(name, **fields))

    def pod(
        self, name: str, status: Manifest | None = None, uid: str = "", **spec: Any
    ) -> Manifest:
        made = pod(name, self.namespace, **spec)
        if uid:
            made["metadata"]["uid"] = uid
        return made if status is None else {**made, "status": status}

    def group(self) -> Manifest:
        return {
            "apiVersion": "scheduling.x-k8s.io/v1alpha1",
            "kind": "PodGroup",
            "metadata": {"name": self.new, "namespace": self.namespace},
            "spec": {"minMember": 2},
        }

    def _url(self, path: str) -> str:
        return f"{CLUSTER}/namespaces/{self.namespace}/{path}"


class Way(NamedTuple):
    """Something that is asked for, and all verbs that it takes; in every namespace if it is `wide`."""

    ask: Callable[[Asking], Awaitable[httpx.Response]]
    takes: frozenset[Verb]
    wide: bool = False


def way(*takes: Verb, wide: bool = False) -> Callable[[Any], Way]:
    return lambda ask: Way(ask, frozenset(takes), wide)


WAYS: Mapping[str, Way] = {
    "place a new pod": way("place")(lambda a: a.place_new(a.new)),
    "place a new pod, or keep it": way("place")(
        lambda a: a.place(pods=[a.pod(a.new)], onUnschedulable="Queue")
    ),
    "place a new pod on a node of its wish": way("place")(
        lambda a: a.place(pods=[a.pod(a.new, nodeName="n1")])
    ),
    "place as a dry run": way("place")(lambda a: a.place(pods=[a.pod(a.new)], dryRun=True)),
    "place a stored pod": way("place")(
        lambda a: a.place(podRefs=[{"namespace": a.namespace, "name": a.waiting}])
    ),
    "place replicas": way("place")(lambda a: a.place(template=a.pod(a.new), replicas=2)),
    "place a pod that is pending": way("place")(lambda a: a.place_new(a.new, {"phase": "Pending"})),
    "place a pod that runs": way("place", "observe")(lambda a: a.place_new(a.new, RUNS)),
    "place a pod with room that is kept for it": way("place", "observe")(
        lambda a: a.place_new(a.new, KEPT_ROOM)
    ),
    "place a pod that has less than it asks for": way("place", "observe")(
        lambda a: a.place_new(a.new, SMALLER)
    ),
    "store a waiting pod": way("edit")(lambda a: a.store(a.new)),
    "store a pod that is pending": way("edit")(
        lambda a: a.store(a.new, status={"phase": "Pending"})
    ),
    "store a placed pod": way("observe")(lambda a: a.store(a.new, nodeName="n1")),
    "store a pod that runs": way("observe")(lambda a: a.store(a.new, status=RUNS)),
    "store a pod that has ended": way("observe")(
        lambda a: a.store(a.new, status={"phase": "Succeeded"})
    ),
    "store a pod that has less than it asks for": way("observe")(
        lambda a: a.store(a.new, status=SMALLER)
    ),
    "store a pod with room that is kept for it": way("observe")(
        lambda a: a.store(a.new, status=KEPT_ROOM)
    ),
    "keep room for a waiting pod": way("observe")(
        lambda a: a.patch(a.waiting, {"status": KEPT_ROOM})
    ),
    "replace a waiting pod": way("edit")(
        lambda a: a.store(a.waiting, priorityClassName="system-node-critical")
    ),
    "give a waiting pod a node": way("observe")(lambda a: a.store(a.waiting, nodeName="n1")),
    "move a placed pod": way("observe")(lambda a: a.store(a.placed, nodeName="n2")),
    "say that a placed pod runs": way("observe")(
        lambda a: a.store(a.placed, nodeName="n1", status=RUNS)
    ),
    "label a waiting pod": way("edit")(
        lambda a: a.patch(a.waiting, {"metadata": {"labels": {"x": "y"}}})
    ),
    "label a placed pod": way("observe")(
        lambda a: a.patch(a.placed, {"metadata": {"labels": {"x": "y"}}})
    ),
    "patch a node into a waiting pod": way("observe")(
        lambda a: a.patch(a.waiting, {"spec": {"nodeName": "n1"}})
    ),
    "patch the status of a waiting pod": way("observe")(
        lambda a: a.patch(a.waiting, {"status": {"phase": "Failed"}})
    ),
    "patch the status of a placed pod": way("observe")(
        lambda a: a.patch(a.placed, {"status": {"phase": "Succeeded"}})
    ),
    "delete a waiting pod": way("edit")(lambda a: a.delete(a.waiting)),
    "delete a placed pod": way("observe")(lambda a: a.delete(a.placed)),
    "apply a waiting pod": way("edit")(lambda a: a.apply(a.pod(a.new))),
    "apply a placed pod": way("observe")(lambda a: a.apply(a.pod(a.new, nodeName="n1"))),
    "apply another pod for a waiting one": way("edit")(
        lambda a: a.apply(a.pod(a.waiting, uid="another"))
    ),
    "apply another pod for a placed one": way("edit", "observe")(
        lambda a: a.apply(a.pod(a.placed, uid="another"))
    ),
    "apply a quota": way("configure")(
        lambda a: a.apply(quota(a.new, {"pods": "999"}, a.namespace))
    ),
    "apply a pod group": way("edit")(lambda a: a.apply(a.group())),
    "apply a node": way("observe", wide=True)(lambda a: a.apply(node(a.new))),
    "apply a namespace": way("observe", wide=True)(
        lambda a: a.apply({"kind": "Namespace", "metadata": {"name": a.new}})
    ),
    "apply a priority class": way("configure", wide=True)(
        lambda a: a.apply(priority_class(a.new, 9))
    ),
    "apply nothing and prune nodes": way("observe", wide=True)(lambda a: a.apply(prune="Node")),
    "apply nothing and prune quotas": way("configure", wide=True)(
        lambda a: a.apply(prune="ResourceQuota")
    ),
    "apply nothing and prune pods": way("edit", "observe", wide=True)(
        lambda a: a.apply(prune="Pod")
    ),
    "apply a line with a waiting pod": way("edit")(lambda a: a.apply_lines(a.pod(a.new))),
    "apply a line with a placed pod": way("observe")(
        lambda a: a.apply_lines(a.pod(a.new, nodeName="n1"))
    ),
    "apply a line with a quota": way("configure")(
        lambda a: a.apply_lines(quota(a.new, {"pods": "999"}, a.namespace))
    ),
    "apply a line with a node": way("observe", wide=True)(lambda a: a.apply_lines(node(a.new))),
    "apply a line with a priority class": way("configure", wide=True)(
        lambda a: a.apply_lines(priority_class(a.new, 9))
    ),
    "bind": way("bind")(
        lambda a: a.post(f"pods/{a.waiting}/binding", {"target": {"name": "n1"}})
    ),
    "bind by force": way("bind", "observe")(
        lambda a: a.post(f"pods/{a.waiting}/binding", {"target": {"name": "n1"}, "force": True})
    ),
    "evict": way("evict")(lambda a: a.post(f"pods/{a.placed}/eviction", {})),
}  # fmt: skip


class Cell(NamedTuple):
    """A role, where it is granted, and the namespace that something is asked of."""

    role: Role
    granted: str | None
    namespace: str

    @override
    def __str__(self) -> str:
        return f"{self.role} of {self.granted or 'all'} in {self.namespace}"


CELLS = [
    Cell(role, granted, namespace)
    for role in get_args(Role)
    for granted, namespace in ((None, "shop"), ("shop", "shop"), ("shop", "other"))
]


def is_allowed(cell: Cell, asked: Way) -> bool:
    reaches = cell.granted is None or (cell.granted == cell.namespace and not asked.wide)
    return reaches and asked.takes <= VERBS_OF[cell.role]


ROOMY: Manifest = {"cpu": "999", "memory": "999Gi", "pods": "999"}


async def prepared(
    harness: Harness, headers: dict[str, str], namespace: str, number: int = 0
) -> tuple[Asking, int]:
    """Two nodes, and a waiting and a placed pod that nobody has touched; with the revision then."""
    asking = Asking(
        harness, headers, namespace, f"new-{number}", f"waits-{number}", f"runs-{number}"
    )
    answer = await asking._replace(headers={}).apply(
        *({**node(name), "status": {"allocatable": ROOMY}} for name in ("n1", "n2")),
        asking.pod(asking.waiting),
        asking.pod(asking.placed, nodeName="n1"),
    )
    return asking, answer.json()["revision"]


def was_done(answer: httpx.Response, before: int) -> bool:
    """Whether something was not refused for who asked. What was refused changed nothing."""
    if answer.headers["content-type"] == NDJSON["content-type"]:
        result = json.loads(answer.text)["result"]
    else:
        result = "Created" if answer.status_code in {200, 201} else problem(answer, 403)
    assert result in {"Created", "Forbidden"}, answer.text
    assert result == "Created" or int(answer.headers["moorage-revision"]) == before
    return result == "Created"


@pytest.mark.parametrize("cell", CELLS, ids=str)
async def test_whoever_has_all_verbs_that_it_takes_may_and_nobody_else(
    harness: Harness, acting_as: ActingAs, cell: Cell
) -> None:
    """Each role, in its own namespace, in another one's, and where it is granted for all."""
    await configure(harness, placePendingPods=False)
    headers = await acting_as("somebody", cell.role, namespace=cell.granted)
    told = {}
    for number, (name, asked) in enumerate(WAYS.items()):
        asking, before = await prepared(harness, headers, cell.namespace, number)
        told[name] = was_done(await asked.ask(asking), before)
    assert told == {name: is_allowed(cell, asked) for name, asked in WAYS.items()}


async def test_a_refusal_names_the_object_who_asked_and_the_verb(
    harness: Harness, acting_as: ActingAs
) -> None:
    asking, _ = await prepared(harness, await acting_as("sam", "editor", namespace="shop"), "shop")
    mine, other = pod("a"), pod("b", "other")

    async def told(answer: httpx.Response) -> str:
        assert problem(answer, 403) == "Forbidden"
        return str(answer.json()["detail"])

    cluster = "on the cluster default"
    foreign = f"sam may not place in the namespace other {cluster}."
    assert await told(await asking.place(pods=[mine, other])) == f"pods[1]: {foreign}"
    refs = [{"namespace": "other", "name": "b"}]
    assert await told(await asking.place(podRefs=refs)) == f"podRefs[0]: {foreign}"
    assert await told(await asking.place(template=other, replicas=1)) == f"template: {foreign}"
    assert await told(await asking.apply(mine, other)) == (
        f"items[1]: sam may not edit or observe in the namespace other {cluster}."
    )
    fact = (
        f"sam may not observe in the namespace shop {cluster}: that the pod is on a node is a fact."
    )
    assert (await told(await asking.apply(mine, pod("b", nodeName="n1")))).startswith(
        f"items[1]: {fact}"
    )
    assert (await told(await asking.store("b", nodeName="n1"))).startswith(fact)
    assert await told(await asking.place(pods=[mine, asking.pod("b", status=RUNS)])) == (
        f"pods[1]: sam may not observe in the namespace shop {cluster}: that the pod has run, or what it runs "
        "with, is a fact."
    )
    assert (
        await told(await asking.apply(prune="Node"))
        == f"prune=Node: sam may not observe {cluster}."
    )


async def test_who_may_evict_nobody_has_nobody_evicted(
    harness: Harness, acting_as: ActingAs
) -> None:
    headers = await acting_as("sam", "scheduler", namespace="shop")
    asking, _ = await prepared(harness, headers, "shop")
    answer = await asking.place(pods=[pod("a")], preemption="Evict")
    assert problem(answer, 403) == "Forbidden"
    told = "preemption: sam may evict in no namespace of the cluster default."
    assert answer.json()["detail"] == told
    allowed = await asking.place(pods=[pod("a")], preemption="Propose")
    assert allowed.status_code == 200


async def test_a_line_that_is_forbidden_stops_no_other(
    harness: Harness, acting_as: ActingAs
) -> None:
    asking, _ = await prepared(harness, await acting_as("sam", "editor", namespace="shop"), "shop")
    lines = [pod("a"), pod("b", "other"), pod("c", nodeName="n1"), node("n3"), pod("d")]
    answer = await asking.apply_lines(*lines)
    results = [json.loads(line) for line in answer.text.splitlines()]
    assert [(each["name"], each["namespace"], each["result"]) for each in results] == [
        ("a", "shop", "Created"),
        ("b", "other", "Forbidden"),
        ("c", "shop", "Forbidden"),
        ("n3", None, "Forbidden"),
        ("d", "shop", "Created"),
    ]
    assert "sam may not observe" in results[3]["errors"][0]["message"]


async def test_what_says_nothing_new_takes_nothing(harness: Harness, acting_as: ActingAs) -> None:
    """A manifest that is applied again after its pod was placed is no fact."""
    await configure(harness, placePendingPods=False)
    asking, _ = await prepared(harness, await acting_as("sam", "editor"), "shop")
    assert (await asking.apply(asking.pod("new"))).json()["created"] == 1
    assert (await asking.place_new("new")).json()["results"][0]["outcome"] == "Placed"
    assert (await asking.apply(asking.pod("new"))).json()["unchanged"] == 1
    assert (await asking.store("new")).status_code == 200
    observing = asking._replace(headers=await acting_as("oz", "observer"))
    assert (await observing.store(observing.waiting)).status_code == 200


# No fact goes around admission and quotas


HOGS: Mapping[str, Manifest] = {
    "K01": {"pod": pod("hog", **apart("zone", namespaceSelector={}))},
    "K02": {"pod": pod("hog", **apart("zone", REQUIRED, namespaceSelector={}))},
    "K03": {
        "pod": pod("hog", **apart("zone", namespaceSelector={})),
        "config": {"trustedNamespaces": ["other"]},
    },
    "K04": {
        "pod": pod("hog", **apart(HOSTNAME, namespaces=["other"])),
        "quota": ({"pods": "0"}, ["CrossNamespaceAffinity"]),
    },
    "K05": {
        "pod": pod("hog", **apart(HOSTNAME, namespaces=["other"])),
        "quota": ({"pods": "0"}, ["CrossNamespacePodAffinity"]),
    },
    "K06": {
        "pod": pod("hog", **apart(HOSTNAME, namespaces=["other"])),
        "config": {
            "limitedResources": [
                {
                    "resource": "pods",
                    "matchScopes": [
                        {"scopeName": "CrossNamespacePodAffinity", "operator": "Exists"}
                    ],
                }
            ]
        },
    },
    "K07": {
        "pod": pod("hog", **apart(HOSTNAME, namespaces=["shop"])),
        "quota": ({"pods": "0"}, ["CrossNamespacePodAffinity"]),
    },
    "K08": {"pod": exclusive("hog"), "quota": ({"opportunity.cpu": "3"}, [])},
    "K09": {
        "pod": exclusive("hog", affinity=require(HOSTNAME, "n-large")),
        "quota": ({"opportunity.cpu": "15"}, []),
    },
    "no pods": {"pod": pod("hog"), "quota": ({"pods": "0"}, [])},
    "too much": {"pod": pod("hog"), "quota": ({"requests.cpu": "500m"}, [])},
}
"""Pods that admission or a quota refuses, with the quota and the settings for it."""


def carrying(made: Manifest, status: Manifest | None = None, **spec: Any) -> Manifest:
    return {**made, "spec": made["spec"] | spec} | ({} if status is None else {"status": status})


CARRIED: Mapping[str, Callable[[Manifest], Manifest]] = {
    "nothing": carrying,
    "a node": lambda hog: carrying(hog, nodeName="n1"),
    "a node that is not there": lambda hog: carrying(hog, nodeName="nowhere"),
    "that it runs": lambda hog: carrying(hog, RUNS),
    "that it has ended": lambda hog: carrying(hog, {"phase": "Succeeded"}),
    "that it has less": lambda hog: carrying(hog, SMALLER),
    "a node and that it has ended": lambda hog: carrying(hog, {"phase": "Failed"}, nodeName="n1"),
}


async def beset(harness: Harness, row: str) -> Manifest:
    """What makes a hog one; the hog."""
    hog = HOGS[row]
    await configure(harness, placePendingPods=False, **hog.get("config", {}))
    await harness.put("nodes/n1", sized("n1", "4", "8Gi", zone="a"))
    await harness.put("nodes/n-large", sized("n-large", "16", "8Gi", zone="b"))
    if "quota" in hog:
        hard, scopes = hog["quota"]
        await put_quota(harness, "q", hard, scopes=scopes)
    return hog["pod"]


@pytest.mark.parametrize("row", HOGS)
async def test_no_fact_goes_around_admission_and_quotas(
    harness: Harness, acting_as: ActingAs, row: str
) -> None:
    """K01, K02, K03, K04, K05, K06, K07, K08, K09: whatever the pod carries, however it comes."""
    hog = await beset(harness, row)
    asking = Asking(harness, await acting_as("sam", "editor", namespace="shop"), "shop")
    for name, carried in CARRIED.items():
        sent = carried(hog)
        assert (await asking.put("pods/hog", sent)).status_code == 403, name
        assert (await asking.apply(sent)).status_code == 403, name
        line = json.loads((await asking.apply_lines(sent)).text)
        assert line["result"] in {"Denied", "Forbidden"}, name
        placed = await asking.place(pods=[sent], onUnschedulable="Queue")
        if placed.status_code != 403:
            assert placed.json()["results"][0]["outcome"] == "Denied", name
    pods = (await harness.client.get(f"{CLUSTER}/pods")).json()["items"]
    assert pods == []


@pytest.mark.parametrize("row", ["K01", "K02", "K05", "K08"])
async def test_nor_does_what_is_made_of_a_pod_that_was_let_in(
    harness: Harness, acting_as: ActingAs, row: str
) -> None:
    """K01, K02, K05, K08: as a change, also under another uid, in two steps, and of a placed pod."""
    hog = await beset(harness, row)
    asking = Asking(harness, await acting_as("sam", "editor", namespace="shop"), "shop")
    modest, affinity = pod("hog"), hog["spec"]["affinity"]
    assert (await asking.put("pods/hog", modest)).status_code == 201
    for _ in ("waiting", "placed"):
        for name, carried in CARRIED.items():
            sent = carried(hog)
            again = {**sent, "metadata": {**hog["metadata"], "uid": "another"}}
            assert (await asking.put("pods/hog", sent)).status_code == 403, name
            assert (await asking.apply(sent)).status_code == 403, name
            assert (await asking.apply(again)).status_code == 403, name
            change = {"spec": sent["spec"], "status": sent.get("status")}
            assert (await asking.patch("hog", change)).status_code == 403, name
        [stored] = (await harness.client.get(f"{CLUSTER}/pods")).json()["items"]
        assert stored["spec"].get("affinity") != affinity
        bound = await asking.post("pods/hog/binding", {"target": {"name": "n1"}})
        assert bound.status_code == 200, bound.text


@pytest.mark.parametrize("row", HOGS)
async def test_an_observer_is_believed(harness: Harness, acting_as: ActingAs, row: str) -> None:
    """K01, K02, K03, K04, K05, K06, K07, K08, K09: what is there cannot be refused, only told of."""
    hog = await beset(harness, row)
    asking = Asking(harness, await acting_as("oz", "observer", namespace="shop"), "shop")
    assert (await asking.put("pods/hog", carrying(hog, nodeName="n1"))).status_code == 201


async def test_a_uid_is_believed_of_observers_only(harness: Harness, acting_as: ActingAs) -> None:
    """A pod that an API server has created was admitted there; anybody could invent its uid."""
    sandboxed = kept("RuntimeClass", name="sandboxed")
    assert (await harness.put("runtimeclasses/sandboxed", sandboxed)).is_success
    for name, role, expected in (
        ("ed", "editor", "RuntimeClassConflict"),
        ("ops", "orchestrator", ""),
    ):
        asking = Asking(harness, await acting_as(name, role, namespace="shop"), "shop")
        sent = asking.pod(name, runtimeClassName="sandboxed", overhead={"cpu": "1"})
        sent["metadata"]["uid"] = UID
        answer = await asking.put(f"pods/{name}", sent)
        assert (problem(answer, 403) if expected else answer.status_code) == (expected or 201)
    bounds = {"limits": [{"type": "PersistentVolumeClaim", "max": {"storage": "1Gi"}}]}
    limit_range = {"metadata": {"name": "small"}, "spec": bounds}
    assert (await harness.put("namespaces/shop/limitranges/small", limit_range)).is_success
    for name, role, status in (("ed", "editor", 403), ("ops", "orchestrator", 201)):
        asking = Asking(harness, await acting_as(name, role, namespace="shop"), "shop")
        claim = kept("PersistentVolumeClaim", name=name, uid=UID)
        answer = await asking.put(f"persistentvolumeclaims/{name}", claim)
        assert answer.status_code == status


async def test_the_capability_is_the_namespaces(harness: Harness, acting_as: ActingAs) -> None:
    """K03: an editor of a trusted namespace needs no fact, and one of another cannot borrow it."""
    hog = await beset(harness, "K03")
    theirs = {**hog, "metadata": {**hog["metadata"], "namespace": "other"}}
    trusted = Asking(harness, await acting_as("tom", "editor", namespace="other"), "other")
    asking = Asking(harness, await acting_as("sam", "editor", namespace="shop"), "shop")
    assert problem(await asking.apply(theirs), 403) == "Forbidden"
    assert problem(await asking.apply(hog), 403) == "AntiAffinityTooBroad"
    assert (await trusted.apply(theirs)).json()["created"] == 1
