"""An answer to a bad request is not large because the request is."""

import msgspec
import pytest

from tests.api.harness import CLUSTER, Harness, pod, problem

MANY = 10_000


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (f"{CLUSTER}/placements", {"pods": [{}] * MANY}),
        (f"{CLUSTER}/placements", {"pods": [pod("web-0")] * MANY}),
        (f"{CLUSTER}/placements", {f"unknown-{number}": 1 for number in range(MANY)}),
        (f"{CLUSTER}/placements", {f"{number}-{'x' * 5_000}": 1 for number in range(200)}),
        ("/v1/simulations", {"nodes": [{}] * MANY, "pod": pod("web-0")}),
    ],
    ids=[
        "wrong pods",
        "one pod again and again",
        "unknown fields",
        "unknown fields with long names",
        "wrong nodes",
    ],
)
async def test_at_most_a_hundred_wrong_fields_are_told(
    harness: Harness, path: str, body: object
) -> None:
    sent = msgspec.json.encode(body)
    headers = {"content-type": "application/json"}
    answer = await harness.client.post(path, content=sent, headers=headers)
    assert problem(answer, 422) == "InvalidManifest"
    assert len(answer.json()["errors"]) == 100
    assert " more)" in answer.json()["detail"]
    assert len(answer.content) < 100_000
