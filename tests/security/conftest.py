"""The application in this process, as the tests of the API have it."""

from tests.api.conftest import each_database_url, harness, make_harness, over_each_store

__all__ = ["each_database_url", "harness", "make_harness", "over_each_store"]
