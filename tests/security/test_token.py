"""The token: what is not public is not to be had without exactly it, whichever way a request takes."""

import pytest

from tests.api.conftest import MakeHarness
from tests.api.harness import CLUSTER, Harness, asked, pod

TOKEN = "Secret-4711"
RIGHT = f"Bearer {TOKEN}"

NOT_THE_TOKEN = {
    "none": [],
    "empty": [""],
    "scheme alone": ["Bearer"],
    "scheme and a space": ["Bearer "],
    "its beginning": [RIGHT[:-1]],
    "its first character": [f"Bearer {TOKEN[0]}"],
    "its end": [f"Bearer {TOKEN[1:]}"],
    "its last character": [f"Bearer {TOKEN[-1]}"],
    "lower case": [f"Bearer {TOKEN.lower()}"],
    "upper case": [f"Bearer {TOKEN.upper()}"],
    "one more character": [f"{RIGHT}x"],
    "one character before it": [f"Bearer x{TOKEN}"],
    "something after it": [f"{RIGHT} x"],
    "a parameter after it": [f"{RIGHT}, x"],
    "twice": [f"{RIGHT} {TOKEN}"],
    "quoted": [f'Bearer "{TOKEN}"'],
    "another of that length": [f"Bearer {'x' * len(TOKEN)}"],
    "not ASCII": [f"Bearer {TOKEN}\u00e9"],
    "without a scheme": [TOKEN],
    "the scheme joined to it": [f"Bearer{TOKEN}"],
    "Basic": [f"Basic {TOKEN}"],
    "a scheme that begins so": [f"BearerX {TOKEN}"],
    "a wrong one, then the right one": ["Bearer wrong", RIGHT],
    "the right one, then a wrong one": [RIGHT, "Bearer wrong"],
    "the right one twice": [RIGHT, RIGHT],
}

WAYS = {
    "read from the tables": ("GET", f"{CLUSTER}/nodes", None),
    "decided": ("POST", f"{CLUSTER}/placements", {"pods": [pod("p", schedulerName="other")]}),
    "written": ("PUT", f"{CLUSTER}/namespaces/shop", {"metadata": {"name": "shop"}}),
    "streamed": ("GET", f"{CLUSTER}/watch?timeoutSeconds=1", None),
    "replicas": ("GET", "/debug/replicas", None),
    "clusters": ("GET", "/v1/clusters", None),
}


@pytest.fixture
async def guarded(make_harness: MakeHarness) -> Harness:
    return await make_harness(token=TOKEN, debug=True)


@pytest.mark.parametrize("authorization", NOT_THE_TOKEN.values(), ids=NOT_THE_TOKEN)
async def test_whatever_is_not_exactly_the_token_is_refused_on_every_way_in(
    guarded: Harness, authorization: list[str]
) -> None:
    before = await guarded.store.log.head(1)
    for method, path, body in WAYS.values():
        status, problem = await asked(guarded, method, path, authorization, body=body)
        assert (status, problem.get("code")) == (401, "Unauthorized"), path
    assert await guarded.store.log.head(1) == before


@pytest.mark.parametrize("authorization", [RIGHT, f"bearer {TOKEN}", f"BEARER  {TOKEN} "])
async def test_the_token_opens_every_way_in(guarded: Harness, authorization: str) -> None:
    for method, path, body in WAYS.values():
        status, _ = await asked(guarded, method, path, [authorization], body=body)
        assert status in {200, 201}, path


@pytest.mark.parametrize(
    "path", ["v1/clusters", "//v1/clusters", "/%2Fv1/clusters", "/v1/clusters/"]
)
async def test_a_path_that_is_spelt_otherwise_opens_nothing(guarded: Harness, path: str) -> None:
    """Not even to who has the token: what stands before this server may have read another path."""
    for authorization in ([], [RIGHT]):
        status, problem = await asked(guarded, "GET", path, authorization)
        assert (status, problem["code"]) == (400, "MalformedRequest")


async def test_a_prefix_that_the_server_takes_off_hides_nothing(guarded: Harness) -> None:
    path = "/prefix/v1/clusters"
    assert (await asked(guarded, "GET", path, [], root_path="/prefix"))[0] == 401
    assert (await asked(guarded, "GET", path, [RIGHT], root_path="/prefix"))[0] == 200


@pytest.mark.parametrize(
    "path", ["/livez", "/readyz", "/metrics", "/openapi.json", "/docs/operations", "/errors"]
)
async def test_what_is_no_clusters_business_needs_no_token(guarded: Harness, path: str) -> None:
    assert (await asked(guarded, "GET", path, []))[0] == 200


async def test_without_a_token_of_its_own_a_server_takes_any(make_harness: MakeHarness) -> None:
    harness = await make_harness()
    for authorization in ([], ["Bearer x"], ["Basic x"]):
        assert (await asked(harness, "GET", "/v1/clusters", authorization))[0] == 200
