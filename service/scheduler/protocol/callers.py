"""The caller of a request, as far as a decision needs to know it."""

import msgspec

from service.model.errors import Forbidden
from service.model.principals import EVERYBODY, Principal, Verb


class Caller(msgspec.Struct, frozen=True):
    """A principal who was let in, and the cluster that the request is for."""

    principal: Principal
    cluster: str

    def may(self, verb: Verb, namespace: str) -> bool:
        """Whether the caller may do this in a namespace."""
        return self.principal.may(verb, self.cluster, namespace)

    def require(self, verb: Verb, namespace: str, why: str) -> None:
        """Check that the caller may do this in a namespace; `why` says why the right is needed.

        Raises:
            Forbidden: the caller may not.
        """
        if not self.may(verb, namespace):
            raise Forbidden(
                f"{self.principal.name} may not {verb} in the namespace {namespace} on the cluster {self.cluster}: {why}"
            )


ANYBODY = Caller(EVERYBODY, "")
"""A caller who may do everything: the server itself, or any client if the server asks for no token."""
