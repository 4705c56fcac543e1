"""Who wants something of a cluster, as far as deciding has to know it."""

import msgspec

from service.model.errors import Forbidden
from service.model.principals import EVERYBODY, Principal, Verb


class Caller(msgspec.Struct, frozen=True):
    """Somebody who was let in, and the cluster that they ask something of."""

    principal: Principal
    cluster: str

    def may(self, verb: Verb, namespace: str) -> bool:
        """Whether they may do this in a namespace."""
        return self.principal.may(verb, self.cluster, namespace)

    def require(self, verb: Verb, namespace: str, why: str) -> None:
        """See that they may do this in a namespace; `why` says what takes it.

        Raises:
            Forbidden: they may not.
        """
        if not self.may(verb, namespace):
            raise Forbidden(
                f"{self.principal.name} may not {verb} in the namespace {namespace} on the cluster {self.cluster}: {why}"
            )


ANYBODY = Caller(EVERYBODY, "")
"""Whoever may do everything: this server itself, and its clients where it asks nobody who they are."""
