"""Dump a database that a released version made and used, for the tests of upgrades.

`python -m tools.dump_release COMMIT` writes `tests/store/schemas/0015.sql` if 0015 is the last
migration of that commit. It runs a server of that commit, sends requests over HTTP until every table
has rows, and dumps the database while the server runs. Without a commit it runs the server of this
checkout.
"""

import argparse
import asyncio
import contextlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import asyncpg

from moorage.cli.session.client import Client
from service.server.local_server import LocalServer, temporary_folder
from service.store.db.connector import data_source_name
from service.store.embedded import EmbeddedPostgres
from tools import postgres

ROOT = Path(__file__).parents[1]
CLIENT = "clients/python"
"""Where the client package is; in old commits it lies beside the others."""
SCHEMAS = ROOT / "tests" / "store" / "schemas"
CODE = ("service", "migrations", "moorage", CLIENT)

_TABLES = """
    SELECT relname::text FROM pg_class
    WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' ORDER BY relname
"""
_EVICTIONS = "SELECT EXISTS (SELECT FROM object WHERE kind = 'Evictions')"
_EXECUTION = "requiredDuringSchedulingRequiredDuringExecution"
_POLL_SECONDS = 0.1
_WAIT_SECONDS = 60


def main() -> None:
    """Write the dump, and print its path."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("commit", nargs="?", help="whose code makes the database")
    given = parser.parse_args()
    with TemporaryDirectory(prefix="moorage-") as folder:
        code = Path(folder)
        extract(given.commit, code)
        path = SCHEMAS / f"{_newest_migration(code)}.sql"
        path.write_text(_dump_of(code), encoding="utf-8")
    print(path)


def extract(commit: str | None, folder: Path) -> None:
    """Put the code of a commit into a folder, that of this checkout if it is None."""
    if commit is None:
        for part in CODE:
            if (ROOT / part).exists():
                shutil.copytree(ROOT / part, folder / part)
        _lift_client(folder)
        return
    listed = subprocess.run(
        ["git", "ls-tree", "--name-only", commit, "--", *CODE],
        cwd=ROOT,
        capture_output=True,
        check=True,
        text=True,
    )
    present = listed.stdout.split()
    archive = subprocess.run(
        ["git", "archive", commit, *present], cwd=ROOT, capture_output=True, check=True
    )
    subprocess.run(["tar", "x"], cwd=folder, input=archive.stdout, check=True)
    _lift_client(folder)


def _lift_client(folder: Path) -> None:
    """Lay the client package beside the others, where a process that is started there finds it."""
    if (folder / CLIENT).exists():
        (folder / CLIENT / "moorage").rename(folder / "moorage")


def _newest_migration(code: Path) -> str:
    versions = (code / "migrations" / "versions").glob("[0-9]*.py")
    return max(path.name.partition("_")[0] for path in versions)


def _dump_of(code: Path) -> str:
    """Return the dump of a database that a server of this code uses.

    The dump is made while the server runs, since there are leases only then.
    """
    with temporary_folder() as folder, _database(folder / "data") as url:
        environment = {
            "MOORAGE_DATABASE_URL": data_source_name(url),
            "MOORAGE_DEBUG": "true",
            "MOORAGE_AUDIT": "on",
        }
        with contextlib.chdir(code):
            server = LocalServer(folder / "unused", workers=2, environment=environment)
            server.start()
        try:
            with Client(server.url) as client:
                _use(client)
            asyncio.run(_wait_until_all_is_there(url))
            return _tidy(postgres.dump(url, "--inserts"))
        finally:
            server.stop()


@contextlib.contextmanager
def _database(folder: Path) -> Iterator[str]:
    server = EmbeddedPostgres(folder)
    try:
        yield server.start()
    finally:
        server.stop()


def _use(client: Client) -> None:
    """Send requests that make an object of every kind, changes of every sort, and kept answers."""
    for name in ("staging", "given-up"):
        client.put(f"/v1/clusters/{name}", {"config": {}})
    client.delete("/v1/clusters/given-up")
    client.put(
        client.path("namespaces", "shop"),
        {"metadata": {"name": "shop", "labels": {"team": "shop"}}},
    )
    for name, zone in (("node-a", "a"), ("node-b", "b"), ("node-c", "c")):
        client.put(client.path("nodes", name), _node(name, zone))
    _put(client, "resourcequotas", "pods", {"spec": {"hard": {"pods": "10"}}})
    _put(client, "podgroups", "train", {"spec": {"minMember": 2}})
    for name in ("web-0", "web-1", "web-2"):
        pods = {"pods": [_pod(name, {"nodeAffinity": _zones("a", "b")})]}
        client.post_once(client.path("placements"), pods, key=f"order-of-{name}")
    _put(client, "pods", "too-big", _pod("too-big", {}, cpu="64"))
    client.delete(client.path("namespaces", "shop", "pods", "web-1"))
    for name in ("node-a", "node-b"):
        client.patch(client.path("nodes", name), {"metadata": {"labels": {"zone": "c"}}})
    client.put(client.path("node-leases"), {"nodes": ["node-c"]})
    webhook = {"url": "https://orchestrator.example/", "events": "Bindings", "disabled": True}
    client.put(client.path("webhooks", "orchestrator"), webhook)
    client.put("/v1/principals/root", {"grants": [{"role": "admin"}]})
    client.post("/v1/principals/root/tokens", {})  # from now on, requests need a token


def _put(client: Client, kind: str, name: str, manifest: dict[str, Any]) -> None:
    named = {**manifest, "metadata": {"name": name, "namespace": "shop"}}
    client.put(client.path("namespaces", "shop", kind, name), named)


def _node(name: str, zone: str) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "labels": {"zone": zone}},
        "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}},
    }


def _pod(name: str, affinity: dict[str, Any], cpu: str = "500m") -> dict[str, Any]:
    container = {"name": "main", "resources": {"requests": {"cpu": cpu}}}
    return {
        "metadata": {
            "name": name,
            "namespace": "shop",
            "labels": {"app": "web"},
            "annotations": {"note": "größer als \\'"},
        },
        "spec": {"affinity": affinity, "containers": [container]},
    }


def _zones(*zones: str) -> dict[str, Any]:
    expression = {"key": "zone", "operator": "In", "values": list(zones)}
    return {_EXECUTION: {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}


async def _wait_until_all_is_there(url: str) -> None:
    """Wait until every table has rows: leases, reports, events and evictions come late."""
    connection = await asyncpg.connect(data_source_name(url))
    async with asyncio.timeout(_WAIT_SECONDS):
        tables = [row["relname"] for row in await connection.fetch(_TABLES)]
        queries = [f'SELECT EXISTS (SELECT FROM "{name}")' for name in tables]
        while not all([await connection.fetchval(query) for query in [*queries, _EVICTIONS]]):  # noqa: ASYNC110 - PostgreSQL tells nobody
            await asyncio.sleep(_POLL_SECONDS)
    await connection.close()


def _tidy(dump: str) -> str:
    """Replace the name of the machine that made the dump."""
    return re.sub(rf"'{re.escape(os.uname().nodename)}([/:])", r"'host\1", dump)


if __name__ == "__main__":
    sys.exit(main())
