"""Both stores have what the scheduler asks of a store, under the same names."""

import inspect
from collections.abc import AsyncIterator
from typing import Any, get_type_hints

import pytest

from service.scheduler.protocol.ports import Store
from service.store.postgres import PostgresStore
from tests.store.history import new_id, ticking_clock
from tests.support.memory_store.store import PARTS, MemoryStore

PROPERTIES = {name: each for name, each in vars(Store).items() if isinstance(each, property)}
PORTS = {name: get_type_hints(each.fget)["return"] for name, each in PROPERTIES.items()}
ASKED = [
    (part, name)
    for part, port in sorted(PORTS.items())
    for name in sorted(vars(port))
    if part in PARTS and not name.startswith("_")
]


@pytest.fixture
async def stores() -> AsyncIterator[tuple[Any, Any]]:
    """Both stores; that on PostgreSQL connects to nothing."""
    postgres = PostgresStore("postgresql://nowhere.example/moorage")
    yield MemoryStore(ticking_clock(), new_id), postgres
    await postgres.close()


def parameters(method: object) -> list[str]:
    assert callable(method)
    return [name for name in inspect.signature(method).parameters if name != "self"]


@pytest.mark.parametrize(("part", "name"), ASKED)
def test_a_store_answers_what_the_scheduler_asks(stores: tuple[Any, Any], part: str, name: str):
    asked = parameters(getattr(PORTS[part], name))
    for store in stores:
        given = parameters(getattr(getattr(store, part), name))
        assert given[: len(asked)] == asked


def test_a_store_has_what_the_scheduler_reads(stores: tuple[Any, Any]):
    assert PORTS.keys() - {"epoch"} <= PARTS
    assert all(hasattr(store, name) for store in stores for name in ("epoch", "notify", "listen"))


def test_both_stores_offer_the_same(stores: tuple[Any, Any]):
    def offered(store: object) -> dict[str, list[str]]:
        methods = inspect.getmembers(store, inspect.ismethod)
        return {name: parameters(method) for name, method in methods if not name.startswith("_")}

    own = {"finish", "commit_to"}
    for part in (None, *sorted(PARTS)):
        parts = [offered(getattr(store, part) if part else store) for store in stores]
        in_memory, in_database = ({k: v for k, v in each.items() if k not in own} for each in parts)
        assert in_database == in_memory, part
