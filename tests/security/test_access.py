"""Each operation says who may call it, and no spelling of its path goes around that.

Generated from the OpenAPI document, so that an operation that comes later is tried as well.
"""

import http.client
import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple
from urllib.parse import urlsplit

import httpx
import msgspec
import pytest
from litestar import get
from litestar.exceptions import ImproperlyConfiguredException

from service.api.http.permissions import (
    Admin,
    Cluster,
    Namespaced,
    Public,
    access_of,
)
from service.api.resources.handlers import HANDLERS, openapi_document
from service.app import RandomIds, create_app
from service.runtime.clock import SystemClock
from service.settings import Settings
from tests.api.live import live_server
from tests.processes import PLAIN_HTTP
from tests.seeds import EXPLORING
from tests.support.memory_store.store import MemoryStore
from tests.waiting import WAIT_SECONDS

TOKEN = "an-administrators-token-of-32-characters"
RIGHT = {"authorization": f"Bearer {TOKEN}"}
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
EXAMPLES = {
    "cluster": "default",
    "namespace": "shop",
    "name": "web-0",
    "code": "NotFound",
    "warning": "VolumesIgnored",
    "file": "page.js",
}

MAY = {
    Public(): "getLiveness getReadiness getMetrics",
    Admin(): """
        putCluster deleteCluster listPrincipals getPrincipal putPrincipal deletePrincipal
        listGroups getGroup putGroup deleteGroup createToken deleteToken listAudit""",
    Cluster("configure"): """
        patchCluster listWebhooks getWebhook putWebhook patchWebhook deleteWebhook rotateWebhookSecret pingWebhook""",
    Cluster("read"): "listClusters getCaller",
    Cluster("observe"): """
        createNode putNode patchNode deleteNode createNamespace putNamespace patchNamespace deleteNamespace
        createPersistentVolume putPersistentVolume patchPersistentVolume deletePersistentVolume createStorageClass putStorageClass
        patchStorageClass deleteStorageClass createCSINode putCSINode patchCSINode deleteCSINode createCSIDriver putCSIDriver
        patchCSIDriver deleteCSIDriver createVolumeAttachment putVolumeAttachment patchVolumeAttachment
        deleteVolumeAttachment createRuntimeClass putRuntimeClass patchRuntimeClass deleteRuntimeClass
        deleteNodes deletePersistentVolumes deleteStorageClasses deleteCSINodes
        deleteCSIDrivers deleteVolumeAttachments deleteRuntimeClasses
        createDeviceClass putDeviceClass patchDeviceClass deleteDeviceClass deleteDeviceClasses
        createResourceSlice putResourceSlice patchResourceSlice deleteResourceSlice deleteResourceSlices
        renewNodeLease reportNodes cordonNode uncordonNode""",
    Namespaced("observe"): """
        createCSIStorageCapacity putCSIStorageCapacity patchCSIStorageCapacity deleteCSIStorageCapacity
        deleteNamespacedCSIStorageCapacities deleteCSIStorageCapacities""",
    Namespaced("place"): """
        commitPlan findCapacity makePlan placePods placePodsOverClusters simulate extenderFilter extenderPrioritize
        extenderPreempt""",
    Namespaced("edit", or_verb="observe"): """
        applyObjects createPod putPod patchPod deletePod deletePods deleteNamespacedPods reportStatuses""",
    Namespaced("read"): """
        getCluster getReadableRevisions getTopology exportCluster watchChanges watchBindings
        listViolations
        listNodes getNode listNamespaces getNamespace
        listPods listNamespacedPods getPod listResourceQuotas listNamespacedResourceQuotas getResourceQuota
        listPodGroups listNamespacedPodGroups getPodGroup explainPod findRepairs confirmBinding listEvents listNamespacedEvents
        listServices listNamespacedServices getService
        listReplicationControllers listNamespacedReplicationControllers getReplicationController
        listReplicaSets listNamespacedReplicaSets getReplicaSet
        listStatefulSets listNamespacedStatefulSets getStatefulSet
        listPodDisruptionBudgets listNamespacedPodDisruptionBudgets getPodDisruptionBudget
        listCSIDrivers getCSIDriver listCSINodes getCSINode listCSIStorageCapacities
        listNamespacedCSIStorageCapacities getCSIStorageCapacity
        listNamespacedPersistentVolumeClaims getPersistentVolumeClaim
        listPersistentVolumeClaims listPersistentVolumes getPersistentVolume listStorageClasses
        getStorageClass listVolumeAttachments getVolumeAttachment listRuntimeClasses
        getRuntimeClass listLimitRanges listNamespacedLimitRanges getLimitRange
        listWorkloads listNamespacedWorkloads getWorkload
        listDataSets listNamespacedDataSets getDataSet getNodeLease listPlans getPlan
        listDeviceClasses getDeviceClass listResourceSlices getResourceSlice
        listNamespacedResourceClaims getResourceClaim listResourceClaims
        listNamespacedResourceClaimTemplates getResourceClaimTemplate
        listResourceClaimTemplates""",
    Namespaced("configure"): """
        createResourceQuota putResourceQuota patchResourceQuota deleteResourceQuota
        createLimitRange putLimitRange patchLimitRange deleteLimitRange
        deleteNamespacedResourceQuotas deleteResourceQuotas deleteNamespacedLimitRanges deleteLimitRanges""",
    Namespaced("edit"): """
        createWorkload putWorkload patchWorkload deleteWorkload
        createDataSet putDataSet patchDataSet deleteDataSet
        createPodGroup putPodGroup patchPodGroup deletePodGroup
        createService putService patchService deleteService
        createReplicationController putReplicationController patchReplicationController deleteReplicationController
        createReplicaSet putReplicaSet patchReplicaSet deleteReplicaSet
        createStatefulSet putStatefulSet patchStatefulSet deleteStatefulSet
        createPodDisruptionBudget putPodDisruptionBudget patchPodDisruptionBudget deletePodDisruptionBudget
        createPersistentVolumeClaim putPersistentVolumeClaim patchPersistentVolumeClaim deletePersistentVolumeClaim
        deleteNamespacedPodGroups deletePodGroups deleteNamespacedServices deleteServices
        deleteNamespacedReplicationControllers deleteReplicationControllers
        deleteNamespacedReplicaSets deleteReplicaSets deleteNamespacedStatefulSets
        deleteStatefulSets deleteNamespacedPodDisruptionBudgets deletePodDisruptionBudgets
        deleteNamespacedPersistentVolumeClaims deletePersistentVolumeClaims
        deleteNamespacedWorkloads deleteWorkloads deleteNamespacedDataSets deleteDataSets
        createResourceClaim putResourceClaim patchResourceClaim deleteResourceClaim
        createResourceClaimTemplate putResourceClaimTemplate patchResourceClaimTemplate deleteResourceClaimTemplate
        deleteNamespacedResourceClaims deleteResourceClaims
        deleteNamespacedResourceClaimTemplates deleteResourceClaimTemplates""",
    Namespaced("bind"): "bindPod extenderBind",
    Namespaced("evict"): "evictPod",
    Cluster("evict"): """
        drainNode putPlan patchPlan deletePlan deletePlans pausePlan resumePlan cancelPlan""",
}  # fmt: skip
"""What one has to be allowed, and for which operations."""

UNDESCRIBED = {
    "/debug/replicas": Admin(),
    "/openapi.json": Public(),
    "/docs": Public(),
    "/docs/operations": Public(),
    "/docs/{file}": Public(),
    "/errors": Public(),
    "/errors/{code}": Public(),
    "/warnings": Public(),
    "/warnings/{warning}": Public(),
    "/": Public(),
    "/page/{file}": Public(),
}
"""Paths that are no part of the API's document."""


def shown(template: str) -> str:
    """A path of a handler, with `{name:str}`, as the document names it."""
    return re.sub(r":\w+}", "}", template)


class Path(NamedTuple):
    """A path that is served, with examples in it."""

    text: str
    guarded: bool
    methods: frozenset[str]


@cache
def paths() -> list[Path]:
    """Every path of the document, and those beside it."""
    described = [
        _path(
            path,
            {method.upper() for method in operations},
            guarded=any(each.get("security") != [] for each in operations.values()),
        )
        for path, operations in openapi_document()["paths"].items()
    ]
    beside = [
        _path(path, {"GET"}, guarded=access != Public()) for path, access in UNDESCRIBED.items()
    ]
    return sorted(described + beside)


def _path(template: str, methods: set[str], *, guarded: bool) -> Path:
    also = {"OPTIONS", "HEAD"} if "GET" in methods else {"OPTIONS"}
    return Path(template.format(**EXAMPLES), guarded, frozenset(methods | also))


def other_spellings(path: str) -> dict[str, str]:
    """What a router or a proxy may take for this path."""
    if path == "/":
        return {
            "two slashes": "//",
            "three slashes": "///",
            "an encoded slash": "/%2F",
            "a dot": "/.",
            "two dots": "/x/..",
            "encoded dots": "/x/%2E%2E",
            "a backslash": "/\\",
            "an absolute form with two slashes": "http://x//",
        }
    *_, last = path.split("/")
    first = path.split("/")[1]
    percent = f"%{ord(first[0]):02X}"
    return {
        "two slashes first": f"/{path}",
        "three slashes first": f"//{path}",
        "two slashes last": path.removesuffix(last) + "/" + last,
        "a slash at the end": f"{path}/",
        "an encoded slash first": f"/%2F{path[1:]}",
        "an encoded slash in small letters": f"/%2f{path[1:]}",
        "an encoded slash at the end": f"{path}%2F",
        "an encoded letter": f"/{percent}{path[2:]}",
        "a dot": f"/.{path}",
        "two dots": f"/x/..{path}",
        "encoded dots": f"/x/%2E%2E{path}",
        "encoded dots in small letters": f"/x/%2e%2e{path}",
        "dots at the end": f"{path}/x/..",
        "a backslash": f"/\\{path[1:]}",
        "an absolute form with two slashes": f"http://x/{path}",
        "an absolute form with an encoded slash": f"http://x/%2F{path[1:]}",
    }


def spellings_for(method: str) -> list[tuple[str, str]]:
    """All spellings of all paths in exploration; in the gate, each is tried with one of the methods.

    A spelling is refused before anybody looks at the method, so that each pair would say little new.
    """
    tried = [spelling for path, *_ in paths() for spelling in other_spellings(path).items()]
    return tried if EXPLORING else tried[METHODS.index(method) :: len(METHODS)]


@pytest.fixture(scope="module")
def url(databases) -> Iterator[str]:
    name = databases.new_name()
    databases.copy_template(name)
    with live_server(databases.url(name), token=TOKEN, debug="true") as url:
        yield url
    databases.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def connection(url: str) -> Iterator[http.client.HTTPConnection]:
    parts = urlsplit(url)
    assert parts.hostname
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=WAIT_SECONDS)
    yield connection
    connection.close()


@pytest.fixture(autouse=True)
def nothing_is_changed(url: str) -> Iterator[None]:
    """Whatever is asked here."""

    def clusters() -> object:
        return httpx.get(f"{url}/v1/clusters", headers=RIGHT, **PLAIN_HTTP).json()

    before = clusters()
    yield
    assert clusters() == before


def asked(
    connection: http.client.HTTPConnection, method: str, target: str, headers: dict[str, str]
) -> tuple[int, http.client.HTTPMessage, bytes]:
    """The answer to a target exactly as written."""
    connection.putrequest(method, target)
    for name, value in headers.items():
        connection.putheader(name, value)
    connection.endheaders()
    answer = connection.getresponse()
    return answer.status, answer.headers, answer.read()


def answered_to_all(path: str) -> set[int]:
    """The statuses of a public path: `/docs` leads on, and a checkout may not have built the site yet."""
    if path == "/docs":
        return {204, 307}
    return {200, 204, 404} if path.startswith("/docs/") else {200, 204}


@pytest.mark.parametrize("method", METHODS)
def test_without_a_token_only_what_is_public_is_answered(connection, method: str) -> None:
    for path, guarded, methods in paths():
        for target in (path, f"http://x{path}"):
            status, headers, body = asked(connection, method, target, {})
            answered = {401} if guarded else answered_to_all(path)
            expected = answered if method in methods else {405}
            assert status in expected, f"{method} {target}"
            assert "moorage-revision" not in headers
            if status == 401:
                assert headers["www-authenticate"] == "Bearer"
                assert method == "HEAD" or msgspec.json.decode(body)["code"] == "Unauthorized"


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("headers", [{}, RIGHT], ids=["nobody", "admin"])
def test_a_path_that_is_spelt_otherwise_is_malformed(connection, method: str, headers) -> None:
    for name, target in spellings_for(method):
        status, told, body = asked(connection, method, target, headers)
        assert status == 400, f"{name}: {method} {target}"
        assert "moorage-revision" not in told
        assert method == "HEAD" or msgspec.json.decode(body)["code"] == "MalformedRequest"


@pytest.mark.parametrize("headers", [{}, RIGHT], ids=["nobody", "admin"])
def test_paths_in_capitals_lead_nowhere(connection, headers) -> None:
    for path, *_ in paths():
        if path == "/":
            continue
        first = path.split("/")[1]
        target = path.replace(first, first.upper(), 1)
        status, _, body = asked(connection, "GET", target, headers)
        assert (status, msgspec.json.decode(body)["code"]) == (404, "NoSuchPath"), target


def test_with_the_token_every_path_is_open(connection) -> None:
    for path, _, methods in paths():
        allowed = asked(connection, "OPTIONS", path, RIGHT)[1]["allow"].split(", ")
        assert methods == set(allowed)
        if "GET" in allowed and not path.endswith(("/watch", "/bindings")):
            assert asked(connection, "GET", path, RIGHT)[0] in {200, 307, 400, 404}, path


def test_every_operation_declares_what_was_thought_of_it() -> None:
    expected = {name: access for access, names in MAY.items() for name in names.split()}
    declared = {
        handler.opt["operation"].id: access_of(handler)
        for handler in HANDLERS
        if "operation" in handler.opt
    }
    assert declared == expected


def test_what_is_beside_the_document_declares_it_too() -> None:
    described = {shown(path) for path in openapi_document()["paths"]}
    beside = {
        shown(path): access_of(handler)
        for handler in HANDLERS
        for path in handler.paths
        if shown(path) not in described
    }
    assert beside == UNDESCRIBED


def test_a_server_with_an_operation_that_declares_nothing_does_not_start(monkeypatch) -> None:
    @get("/v1/open")
    async def forgotten() -> None:
        """Nobody has said who may call it."""

    monkeypatch.setattr("service.app.HANDLERS", [forgotten])
    store = MemoryStore(SystemClock().now, RandomIds().commit_id)
    with pytest.raises(ImproperlyConfiguredException, match=r"forgotten.*does not say who"):
        create_app(Settings(), store=store, scheduler=None, clock=SystemClock())


def test_every_answer_tells_browsers_to_keep_show_and_guess_nothing(
    connection: http.client.HTTPConnection,
):
    wrong = {}
    for path in paths():
        for authorized in ({}, RIGHT):
            connection.request("GET", path.text, headers=authorized)
            answer = connection.getresponse()
            if answer.headers["x-accel-buffering"] is None:
                answer.read()
            else:
                connection.close()
            told = answer.headers
            if (
                told["x-content-type-options"] != "nosniff"
                or told["referrer-policy"] != "no-referrer"
                or told["cache-control"] != "no-store"
                or "frame-ancestors 'none'" not in told["content-security-policy"]
                or "base-uri 'none'" not in told["content-security-policy"]
            ):
                wrong[path.text] = dict(told.items())
    assert not wrong
