"""The application in this process, as the tests of the API have it."""

from tests.api.conftest import harness, make_harness

__all__ = ["harness", "make_harness"]
