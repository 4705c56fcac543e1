"""P3: after a restore from a backup the revisions are lifted over all that can have been seen.

Servers do it by themselves where they can tell; an operator can do it at any time.
"""

import asyncio

import httpx
from sqlalchemy.engine import make_url

from service.store.postgres import PostgresStore
from tests.api.harness import CLUSTER, node, problem
from tests.api.live import live_server
from tests.processes import PLAIN_HTTP

LIFT = 1_000_000_000


def restore(databases, url):
    """What the last backup had: a database without any change of the day. Servers go on meanwhile."""
    name = make_url(url).database
    databases.execute(f"DROP DATABASE {name} WITH (FORCE)")
    databases.copy_template(name)


def test_p3_after_a_restore_under_a_running_server_no_revision_is_used_twice(
    databases, database_url
):
    with live_server(database_url) as url, httpx.Client(base_url=url, **PLAIN_HTTP) as client:
        for name in ("n1", "n2"):
            seen = client.put(f"{CLUSTER}/nodes/{name}", json=node(name))
        last = int(seen.headers["moorage-revision"])
        restore(databases, database_url)

        # The worker held n1 and n2; they were never there.
        pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c"}]}}
        answer = client.post(f"{CLUSTER}/placements", json={"pods": [pod]}).json()
        assert answer["results"][0]["outcome"] == "Unschedulable"
        late = client.get(f"{CLUSTER}/watch", params={"sinceRevision": last})
        assert problem(late, 410) == "Compacted"
        put = client.put(f"{CLUSTER}/nodes/n3", json=node("n3"))
        assert LIFT < int(put.json()["metadata"]["resourceVersion"]) < 2 * LIFT


def test_p3_a_server_on_a_restored_copy_lifts_the_revision(databases, database_url):
    with live_server(database_url) as url, httpx.Client(base_url=url, **PLAIN_HTTP) as client:
        client.put(f"{CLUSTER}/nodes/n1", json=node("n1"))
    name = make_url(database_url).database
    with databases.copied(name) as copy, live_server(copy) as url:
        for _ in range(2):
            put = httpx.put(f"{url}{CLUSTER}/nodes/n2", json=node("n2"), **PLAIN_HTTP)
            assert LIFT < int(put.json()["metadata"]["resourceVersion"]) < 2 * LIFT
        assert httpx.get(f"{url}{CLUSTER}/nodes/n1", **PLAIN_HTTP).status_code == 200


def test_all_clusters_are_lifted_if_none_is_named(moorage, database_url):
    ended = moorage("lift-revision", "--database-url", database_url)
    assert ended.code == 0
    assert ended.out.split() == ["CLUSTER", "REVISION", "default", str(LIFT + 1)]


def test_single_clusters_can_be_named_and_none_is_lifted_if_one_is_unknown(moorage, database_url):
    async def revisions():
        store = PostgresStore(database_url)
        try:
            return {row.name: row.head.revision for row in await store.clusters.all()}
        finally:
            await store.close()

    async def create():
        store = PostgresStore(database_url)
        await store.clusters.create("other", b"{}")
        await store.close()

    asyncio.run(create())
    unknown = moorage("lift-revision", "other", "nobody", "--database-url", database_url)
    assert unknown.code == 2
    assert "nobody" in unknown.err
    assert asyncio.run(revisions()) == {"default": 1, "other": 1}

    assert moorage("lift-revision", "other", "--database-url", database_url).code == 0
    assert asyncio.run(revisions()) == {"default": 1, "other": LIFT + 1}
