"""A server recounts its replicas, and its metrics tell how often."""

import re

import httpx

from tests.api.harness import CLUSTER, node
from tests.api.live import live_server
from tests.processes import PLAIN_HTTP
from tests.waiting import eventually

ROUNDS = re.compile(r"^moorage_recount_rounds_total ([\d.]+)", re.MULTILINE)


def test_a_server_recounts_its_replicas(database_url: str) -> None:
    with (
        live_server(database_url, recount_seconds="0.05") as url,
        httpx.Client(base_url=url, **PLAIN_HTTP) as client,
    ):
        assert client.put(f"{CLUSTER}/nodes/n1", json=node("n1")).status_code == 201
        eventually(lambda: float(ROUNDS.findall(client.get("/metrics").text)[0]) > 1)
        text = client.get("/metrics").text
    assert re.search(r"^moorage_recount_seconds_total [\d.e-]*[1-9]", text, re.MULTILINE)
    mistakes = re.findall(r"^moorage_replica_mistakes_total\{.*\} ([\d.]+)", text, re.MULTILINE)
    assert mistakes
    assert set(mistakes) == {"0.0"}
