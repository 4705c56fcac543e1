"""Both stores have what the scheduler asks of a store, under the same names."""

import inspect

import pytest

from service.scheduler.protocol.ports import Store
from service.store.memory.memory_store import MemoryStore
from service.store.postgres import PostgresStore

PUBLIC = {name: each for name, each in vars(Store).items() if not name.startswith("_")}
ASKED = sorted(name for name, each in PUBLIC.items() if not isinstance(each, property))
READ = sorted(PUBLIC.keys() - set(ASKED))


def parameters(method: object) -> list[str]:
    assert callable(method)
    return list(inspect.signature(method).parameters)


@pytest.mark.parametrize("name", ASKED)
@pytest.mark.parametrize("store", [MemoryStore, PostgresStore], ids=["memory", "postgres"])
def test_a_store_answers_what_the_scheduler_asks(store: type, name: str):
    asked, given = parameters(getattr(Store, name)), parameters(getattr(store, name))
    assert given[: len(asked)] == asked


@pytest.mark.parametrize("store", [MemoryStore, PostgresStore], ids=["memory", "postgres"])
def test_a_store_has_what_the_scheduler_reads(store: type):
    assert READ
    assert all(hasattr(store, name) for name in READ)


def test_both_stores_offer_the_same():
    def offered(store: type) -> dict[str, list[str]]:
        methods = inspect.getmembers(store, inspect.isfunction)
        return {name: parameters(method) for name, method in methods if not name.startswith("_")}

    own = {"finish", "to_its_end", "commit_to", "state_of"}
    stores = [offered(PostgresStore), offered(MemoryStore)]
    in_database, in_memory = ({k: v for k, v in each.items() if k not in own} for each in stores)
    assert in_database == in_memory
