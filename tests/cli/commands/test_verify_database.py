"""`moorage verify` finds nothing in a sound database, and names each damage that is done to it by SQL."""

import asyncio
from collections.abc import Iterator

import asyncpg
import httpx
import pytest
from sqlalchemy.engine import make_url

from service.model.core.access import ADMIN, Grant
from service.model.log.audit_chain import AuditedCaller, AuditEntry
from service.model.verification_findings import Check
from service.server.local_server import temporary_folder
from service.store.db.connector import data_source_name
from service.store.postgres import PostgresStore
from tests.api.harness import CLUSTER, node
from tests.api.live import live_server
from tests.builders import device, device_class, resource_slice
from tests.processes import PLAIN_HTTP, copy_data
from tests.store.history import commit_on, put

SHOP = f"{CLUSTER}/namespaces/shop"
BOUND = {"pv.kubernetes.io/bind-completed": "yes"}
UID = "00000000-0000-4000-8000-00000000000{}"


def pod(name: str, **spec):
    containers = [
        {"name": "c", "resources": {"requests": {"cpu": "1"}}, **spec.pop("container", {})}
    ]
    labels = {"app": spec.pop("app", "web")}
    metadata = {"name": name, "namespace": "shop", "labels": labels}
    return {"metadata": metadata, "spec": {"containers": containers, **spec}}


def claim(number: int):
    name, metadata = f"c{number}", {"name": f"c{number}", "namespace": "shop"}
    reference = {"namespace": "shop", "name": name, "uid": UID.format(number)}
    yield {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": f"v{number}"},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "claimRef": reference,
        },
        "status": {"phase": "Bound"},
    }
    yield {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {**metadata, "uid": UID.format(number), "annotations": BOUND},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
            "volumeName": f"v{number}",
        },
        "status": {"phase": "Bound"},
    }


def device_claim(name: str, given: str):
    result = {"request": "gpu", "driver": "gpu.example.com", "pool": "n1", "device": given}
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com"}}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {"devices": {"requests": [request]}},
        "status": {"allocation": {"devices": {"results": [result]}}},
    }


def fill(client: httpx.Client) -> None:
    """Objects of all kinds that are checked, with a history that has all kinds of changes."""

    def said(answer: httpx.Response) -> None:
        assert answer.status_code < 300, answer.text

    apart = {
        "topologyKey": "kubernetes.io/hostname",
        "labelSelector": {"matchLabels": {"app": "db"}},
    }
    alone = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}}
    for name in ("n1", "n2"):
        said(
            client.put(
                f"{CLUSTER}/nodes/{name}", json=node(name, **{"kubernetes.io/hostname": name})
            )
        )
    pods = [pod("web-1"), pod("web-2"), *(pod(f"db-{n}", app="db", affinity=alone) for n in (1, 2))]
    port = {"ports": [{"containerPort": 80, "hostPort": 80}]}
    pods += [pod(f"edge-{n}", app="edge", container=port) for n in (1, 2)]
    said(client.post(f"{CLUSTER}/placements", json={"pods": pods}))
    quota = {"metadata": {"name": "few", "namespace": "shop"}, "spec": {"hard": {"pods": "10"}}}
    kinds = {"apiVersion": "v1", "kind": "ResourceQuota"}
    items = [{**kinds, **quota}, *claim(1), *claim(2)]
    items += [device_class(), resource_slice("n1", device("gpu-0"), device("gpu-1"))]
    items += [device_claim("d0", "gpu-0"), device_claim("d1", "gpu-1")]
    said(client.post(f"{CLUSTER}/apply", json={"kind": "List", "items": items}))
    for disk in ("ssd", "hdd"):
        labels = {"kubernetes.io/hostname": "n2", "disk": disk}
        said(client.put(f"{CLUSTER}/nodes/n2", json=node("n2", **labels)))
    brief = {**pod("brief"), "status": {"phase": "Succeeded"}}  # so that nobody places it
    said(client.put(f"{SHOP}/pods/brief", json=brief))
    said(client.delete(f"{SHOP}/pods/brief"))
    said(client.put(f"{SHOP}/pods/brief", json=brief))


async def finish(url: str) -> None:
    """A fence, principals and an audit, which nothing else here makes."""
    store = PostgresStore(url, audit=True)
    cluster_id = await store.clusters.find("default")
    await store.log.settle_unknown(
        cluster_id, commit_on(await store.log.head(cluster_id), put("never"))
    )
    await store.access.put_principal("User", "root", [ADMIN], keep_admin=False)
    await store.access.put_principal("User", "ci", [Grant("reader")], keep_admin=False)
    await store.audit.add_refusals(
        [AuditEntry(caller=AuditedCaller(f"nobody-{n}"), status=401) for n in (1, 2)]
    )
    await store.housekeeping.compact(cluster_id, keep_changes=12, keep_seconds=0)
    await store.close()


@pytest.fixture(scope="module")
def sound(databases, module_database_url: str) -> str:
    """The name of a database with objects in it, which nobody uses any more."""
    with (
        live_server(module_database_url) as url,
        httpx.Client(base_url=url, **PLAIN_HTTP) as client,
    ):
        fill(client)
    asyncio.run(finish(module_database_url))
    return make_url(module_database_url).database


@pytest.fixture
def copy_url(databases, sound: str) -> Iterator[str]:
    name = databases.new_name()
    databases.execute(f"CREATE DATABASE {name} TEMPLATE {sound} STRATEGY FILE_COPY")
    yield databases.url(name)
    databases.execute(f"DROP DATABASE {name} WITH (FORCE)")


def damage(url: str, *statements: str) -> None:
    async def execute() -> None:
        connection = await asyncpg.connect(data_source_name(url))
        for statement in statements:
            assert await connection.execute(statement) not in {"UPDATE 0", "DELETE 0", "INSERT 0 0"}
        await connection.close()

    asyncio.run(execute())


def edited(path: str, value: str) -> str:
    """SQL for the manifest of an object with another value at a path."""
    return f"convert_to(jsonb_set(convert_from(body, 'UTF8')::jsonb, '{path}', '{value}')::text, 'UTF8')"


def test_nothing_is_found_in_a_sound_database(moorage, copy_url: str):
    ended = moorage("verify", "--database-url", copy_url, "--json")
    assert ended.code == 0, ended.out
    report = ended.json
    assert (report["ok"], report["access"]) == (True, [])
    assert report["checks"] == [each.value for each in Check]
    (cluster,) = report["clusters"]
    assert (cluster["cluster"], cluster["findings"], cluster["changes"]) == ("default", [], 12)
    assert cluster["objects"] > 15

    told = moorage("verify", "--database-url", copy_url)
    assert told.code == 0
    first = told.out.splitlines()[1].split()
    assert first == ["default", str(cluster["revision"]), "12", str(cluster["objects"]), "ok"]


def on(name: str) -> str:
    """SQL that puts placed pods on a node, in the column and in the manifest."""
    other = "n1" if name == "n2" else "n2"
    return f"""
        UPDATE object SET node_name = '{name}', body = convert_to(replace(convert_from(body, 'UTF8'),
            '"nodeName":"{other}"', '"nodeName":"{name}"'), 'UTF8')
        WHERE kind = 'Pod' AND node_name = '{other}'
    """


MIDDLE = "(SELECT max(revision) - 3 FROM change)"

DAMAGES = {
    "the head's tip": (
        Check.LOG, "head", "no commit of the log ends there",
        "UPDATE head SET tip = gen_random_uuid()",
    ),
    "the head's revision": (
        Check.LOG, "head", "no commit of the log ends there",
        "UPDATE head SET revision = revision + 1",
    ),
    "a head that goes back": (
        Check.LOG, "commit", "beyond the head",
        "UPDATE head SET revision = revision - 1",
    ),
    "no head": (Check.LOG, "head", "The cluster has no head.", "DELETE FROM head"),
    "no floor": (Check.LOG, "floor", "The cluster has no floor.", "DELETE FROM floor"),
    "a floor too high": (
        Check.LOG, "floor", "above the head",
        "UPDATE floor SET revision = 1000000",
    ),
    "a commit that is gone": (
        Check.LOG, "commit", "the log has no such commit",
        f"DELETE FROM commit WHERE {MIDDLE} BETWEEN first_revision AND last_revision",
    ),
    "another parent": (
        Check.LOG, "commit", "the log has no such commit",
        "UPDATE commit SET parent = gen_random_uuid() WHERE kind = 'Fence'",
    ),
    "two commits after one": (
        Check.LOG, "commit", "2 commits follow it",
        ("INSERT INTO commit SELECT cluster_id, last_revision, gen_random_uuid(), parent,"
        " first_revision, planned_at, kind, at FROM commit WHERE kind = 'Fence'"),
    ),
    "a change that is gone": (
        Check.LOG, "revision", "the log goes on at",
        f"DELETE FROM change WHERE revision = {MIDDLE}",
    ),
    "the last change is gone": (
        Check.LOG, "revision", "The last change is at revision",
        "DELETE FROM change WHERE revision = (SELECT max(revision) FROM change)",
    ),
    "a change of no commit": (
        Check.LOG, "revision", "does not cover it",
        f"UPDATE change SET commit_id = gen_random_uuid() WHERE revision = {MIDDLE}",
    ),
    "an object that is gone": (
        Check.OBJECTS, "Pod shop/brief", "it is not there",
        "DELETE FROM object WHERE name = 'brief'",
    ),
    "an object of the log that came back": (
        Check.OBJECTS, "Pod shop/ghost", "of which the log has no change",
        ("INSERT INTO object SELECT cluster_id, revision, kind, namespace, 'ghost', uid, node_name, body"
        " FROM object WHERE name = 'brief'"),
    ),
    "a deleted object that is there": (
        Check.OBJECTS, "Pod shop/brief", "The log deletes it",
        "DELETE FROM change WHERE name = 'brief' AND revision > (SELECT max(revision) FROM change WHERE verb = 'Delete')",
    ),
    "another body": (
        Check.OBJECTS, "Pod shop/brief", "not what the log puts",
        "UPDATE object SET body = body || ' ' WHERE name = 'brief'",
    ),
    "another node": (
        Check.OBJECTS, "Pod shop/brief", "not what the log puts",
        "UPDATE object SET node_name = 'n9' WHERE name = 'brief'",
    ),
    "an older object": (
        Check.OBJECTS, "Node n2", "the log changes it last at",
        "UPDATE object SET revision = 1 WHERE kind = 'Node' AND name = 'n2'",
    ),
    "the column of the node": (
        Check.COPIES, "Pod shop/web-1", "the node n9",
        "UPDATE object SET node_name = 'n9' WHERE name = 'web-1'",
    ),
    "the column of the uid": (
        Check.COPIES, "Pod shop/web-1", "the uid other",
        "UPDATE object SET uid = 'other' WHERE name = 'web-1'",
    ),
    "the column of the name": (
        Check.COPIES, "Pod shop/web-9", "Its manifest is that of shop/web-1",
        "UPDATE object SET name = 'web-9' WHERE name = 'web-1'",
    ),
    "a revision to come": (
        Check.COPIES, "Pod shop/web-1", "the head is at",
        "UPDATE object SET revision = 1000000 WHERE name = 'web-1'",
    ),
    "a body that nobody can read": (
        Check.COPIES, "Pod shop/web-1", "It cannot be read",
        "UPDATE object SET body = '{' WHERE name = 'web-1'",
    ),
    "a kind that nobody knows": (
        Check.COPIES, "Wishes shop/web-1", "It cannot be read",
        "UPDATE object SET kind = 'Wishes' WHERE name = 'web-1'",
    ),
    "created twice": (
        Check.COPIES, "revision", "said to be known",
        "UPDATE change SET created = false WHERE name = 'brief' AND verb = 'Put'",
    ),
    "labels that it did not have": (
        Check.COPIES, "revision", "The labels that it had before",
        """UPDATE change SET labels_before = '{"a":"b"}' WHERE kind = 'Node' AND name = 'n2' AND NOT created""",
    ),
    "more than a node has": (
        Check.CAPACITY, "Node n1", "Its pods need 6 of cpu, of which it has 4",
        on("n1"),
    ),
    "more pods than a node takes": (
        Check.CAPACITY, "Node n1", "of pods, of which it has 1",
        "UPDATE object SET body = " + edited("{status,allocatable,pods}", '"1"')
        + " WHERE kind = 'Node' AND name = 'n1'",
    ),
    "a host port of two pods": (
        Check.CAPACITY, "Node n1", "the host port 80/TCP",
        on("n1"),
    ),
    "pods that may not be together": (
        Check.RULES, "Pod shop/db-1", "breaks spec.affinity.podAntiAffinity",
        on("n2"),
    ),
    "an exceeded quota": (
        Check.QUOTAS, "ResourceQuota shop/few", "Its pods use 6 of pods, of which 3 are allowed",
        "UPDATE object SET body = " + edited("{spec,hard,pods}", '"3"') + " WHERE name = 'few'",
    ),
    "a claim to a volume that is gone": (
        Check.BINDINGS, "PersistentVolumeClaim shop/c1", "which is not there",
        "DELETE FROM object WHERE name = 'v1'",
    ),
    "two claims to one volume": (
        Check.BINDINGS, "PersistentVolumeClaim shop/c1", "which does not name it",
        "UPDATE object SET body = " + edited("{spec,volumeName}", '"v2"') + " WHERE name = 'c1'",
    ),
    "a volume of another claim": (
        Check.BINDINGS, "PersistentVolume v1", "It is of the claim shop/c1",
        "UPDATE object SET body = " + edited("{spec,volumeName}", '"v2"') + " WHERE name = 'c1'",
    ),
    "a device that was given twice": (
        Check.BINDINGS, "device gpu.example.com/n1/gpu-1", "shop/d0, shop/d1",
        "UPDATE object SET body = "
        + edited("{status,allocation,devices,results,0,device}", '"gpu-1"')
        + " WHERE name = 'd0'",
    ),
    "an admin whom nobody made": (
        Check.ACCESS, "User ci", "noted as an admin",
        "UPDATE principal SET admin = true WHERE name = 'ci'",
    ),
    "a row of the audit": (
        Check.ACCESS, "row 1 of chain", "It is not what was written",
        "UPDATE audit SET principal = 'somebody' WHERE number = 1",
    ),
    "the end of the audit": (
        Check.ACCESS, "chain", "its end is noted as",
        ("DELETE FROM audit AS a WHERE number = (SELECT max(number) FROM audit AS b WHERE b.chain = a.chain)"
        " AND number > 1"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", DAMAGES)
def test_each_damage_is_named(kind: str, moorage, copy_url: str):
    check, subject, message, statement = DAMAGES[kind]
    damage(copy_url, statement)
    ended = moorage("verify", "--database-url", copy_url, "--check", check.value, "--json")
    assert ended.code == 1, ended.out
    report = ended.json
    found = [*report["access"], *(each for one in report["clusters"] for each in one["findings"])]
    told = [each for each in found if subject in each["subject"] and message in each["message"]]
    assert told, found
    assert {each["check"] for each in found} == {check.value}


def test_people_read_what_is_wrong_of_the_clusters_that_they_name(moorage, copy_url: str):
    damage(copy_url, "SELECT create_cluster_v1('other', '{}', gen_random_uuid())")
    damage(copy_url, "DELETE FROM object WHERE name = 'brief'")
    ended = moorage("verify", "--database-url", copy_url)
    assert ended.code == 1
    lines = ended.out.splitlines()
    assert lines[1].split()[-2:] == ["objects", "1"]
    assert lines[2].split()[0] == "other"
    assert lines[2].split()[-1] == "ok"
    assert "default: objects: Pod shop/brief: The log puts it at revision" in ended.out

    assert moorage("verify", "--database-url", copy_url, "--cluster", "other").code == 0
    unknown = moorage("verify", "--database-url", copy_url, "-c", "nobody")
    assert (unknown.code, "nobody" in unknown.err) == (2, True)


def test_it_says_why_it_cannot_verify(moorage, empty_database_url: str, copy_url: str):
    old = moorage("verify", "--database-url", empty_database_url)
    assert (old.code, "moorage migrate" in old.err) == (2, True)
    nowhere = str(make_url(copy_url).set(database="nowhere"))
    assert moorage("verify", "--database-url", nowhere).code == 3
    assert moorage("verify", "--database-url", copy_url, "--check", "luck").code == 2


def test_a_restored_data_folder_is_verified_by_itself(moorage, ready_made):
    with temporary_folder() as folder:
        copy_data(ready_made, folder / "data")
        ended = moorage("verify", "--data-dir", str(folder / "data"))
        assert ended.code == 0, ended.err
        assert ended.out.splitlines()[1].split() == ["default", "1", "1", "1", "ok"]
