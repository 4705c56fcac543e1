"""What is asked of the extenders of a profile, and what they say, between decisions and the network.

A decision asks nobody: it ends with a question. Whoever has the answer has the request decided again
with it, on whatever the cluster is by then.
"""

from collections.abc import Mapping
from typing import Protocol

import msgspec
from typing_extensions import override

from service.model.configuration.extenders import Extender
from service.model.core.primitives import ObjectName
from service.model.errors import Denied

ASKS_EXTENDERS = "AsksExtenders"
"""The reason of a refusal where the extenders of a pod's profile are not asked."""
NOT_ASKED = (
    "spec.schedulerName: the extenders of the profile {} are asked only where pods are placed one by one "
    "(BestEffort placements and pending pods), and not for groups, plans and simulations."
)


class ExtenderQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """A pod and the nodes that passed the profile's own filters."""

    pod: ObjectName
    manifest: bytes
    """The pod as JSON."""
    extenders: tuple[Extender, ...]
    """The extenders that are interested in the pod, in their order; at least one."""
    totals: Mapping[str, int]
    """The weighted sum of the profile's own scores, by node; at least one."""
    best: str
    """The node that the pod would get without extenders."""
    nodes: Mapping[str, bytes]
    """The nodes as JSON, by name; none if all extenders know them."""


class ExtenderVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """What the extenders of a pod say together."""

    node_name: str | None
    """The best node that all of them leave; None if there is none."""
    added: Mapping[str, int] = {}
    """What their scores add to the totals, by node that is left."""
    refused: Mapping[str, Mapping[str, str]] = {}
    """Extender to node to its reason against it."""
    unresolvable: Mapping[str, tuple[str, ...]] = {}
    """Extender to the nodes on which it says that no eviction helps."""
    failure: str | None = None
    """Why an extender could not be asked without which the pod may not be placed."""


class ExtendersToAsk(Denied):
    """A decision needs to know what extenders say; where nobody asks them, the pod is refused."""

    def __init__(self, question: ExtenderQuestion, scheduler_name: str) -> None:
        super().__init__(ASKS_EXTENDERS, NOT_ASKED.format(scheduler_name))
        self.question = question

    @property
    @override
    def code(self) -> str:
        """The name that clients see."""
        return Denied.__name__


class AsksExtenders(Protocol):
    """Asks the extenders of profiles."""

    async def ask(self, question: ExtenderQuestion) -> ExtenderVerdict:
        """Ask all extenders in question; whatever they do, there is a verdict within their timeouts."""
        ...
