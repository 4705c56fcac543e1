"""What a request was about is gone with its answer: nothing of it waits until the garbage collector looks.

A worker has it look rarely. Requests that left circles behind held gigabytes before it did.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import pytest

from tests.api.harness import CLUSTER, Harness, pod

_PLACE = ("POST", f"{CLUSTER}/placements")
REQUESTS: dict[str, tuple[str, str, Any]] = {
    "a placement": (*_PLACE, {"pods": [pod("placed")]}),
    "a dry run": (*_PLACE, {"template": pod("web"), "replicas": 3, "dryRun": True}),
    "a wrong field": (*_PLACE, {"pods": [{}]}),
    "what the decision refuses": ("DELETE", f"{CLUSTER}/nodes/none", None),
    "a write": ("PUT", f"{CLUSTER}/namespaces/team", {"metadata": {"name": "team"}}),
    "a list": ("GET", f"{CLUSTER}/nodes", None),
    "what is not there": ("GET", f"{CLUSTER}/nodes/none", None),
    "what is public": ("GET", "/livez", None),
    "a page that there is not": ("GET", "/none", None),
}


@contextmanager
def collected() -> Iterator[list[Any]]:
    """All that is found to be garbage at the end."""
    found: list[Any] = []
    gc.collect()
    gc.disable()
    try:
        yield found
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        found += gc.garbage
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


def is_ours(garbage: Any) -> bool:
    if isinstance(garbage, FrameType):
        return "/service/" in garbage.f_code.co_filename
    return type(garbage).__module__.startswith("service.")


@pytest.mark.parametrize("name", REQUESTS)
async def test_nothing_of_a_request_is_left_when_it_is_answered(harness: Harness, name: str):
    await harness.put_node("n1")
    method, path, body = REQUESTS[name]
    await harness.client.request(method, path, json=body)

    with collected() as garbage:
        await harness.client.request(method, path, json=body)

    assert [each for each in garbage if is_ours(each)] == []
