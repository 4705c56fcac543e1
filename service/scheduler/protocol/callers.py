"""The caller of a request, as decisions see it."""

import msgspec

from service.model.core.access import EVERYBODY, Principal, Verb
from service.model.core.errors import Forbidden


class Caller(msgspec.Struct, frozen=True):
    """An authenticated principal, and the cluster that the request addresses."""

    principal: Principal
    cluster: str

    def may(self, verb: Verb, namespace: str) -> bool:
        """Return whether the caller has this right in a namespace."""
        return self.principal.may(verb, self.cluster, namespace)

    def require(self, verb: Verb, namespace: str, why: str) -> None:
        """Check that the caller has this right in a namespace; `why` says what needs the right.

        Raises:
            Forbidden: the caller lacks the right.
        """
        if not self.may(verb, namespace):
            raise Forbidden(
                f"{self.principal.name} may not {verb} in the namespace {namespace} on the cluster {self.cluster}: {why}"
            )


ANYBODY = Caller(EVERYBODY, "")
"""A caller with all rights: the server itself, or any client of a server without authentication."""
