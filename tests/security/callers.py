"""Callers of an application in this process, told apart by a header: whatever tells them apart is no part of the test."""

from service.api.auth.authentication import Headers
from service.model.core.access import EVERYBODY, Grant, Principal
from tests.api.harness import Harness

_CALLER = "x-test-caller"


class Callers:
    """Who may call an application; a request without the header is by whom the server takes it for."""

    def __init__(self, *principals: Principal) -> None:
        self._principals = {each.name: each for each in principals}

    def grant(self, name: str, *grants: Grant) -> None:
        """Give somebody these grants and no others."""
        self._principals[name] = Principal(name, grants)

    def revoke(self, name: str) -> None:
        """Somebody is nobody any more."""
        del self._principals[name]

    async def _current(self, principal: Principal) -> Principal | None:
        return principal if principal == EVERYBODY else self._principals.get(principal.name)

    def call(self, harness: Harness) -> None:
        """Have the application know them."""
        authentication = harness.app.authentication
        found = authentication.principal

        async def principal(headers: Headers) -> Principal | None:
            name = dict(headers).get(_CALLER.encode(), b"").decode()
            return self._principals.get(name) if name else await found(headers)

        authentication.principal = principal
        authentication.current = self._current


def by(name: str) -> dict[str, str]:
    """The headers of a caller's requests."""
    return {_CALLER: name}
