"""Questions to the extenders of a profile and their verdicts, between decisions and the network.

A decision asks no extender itself: it ends with a question. The caller asks it, and has the request
decided again with the verdict, on whatever the cluster is by then.
"""

from collections.abc import Mapping
from typing import Protocol

import msgspec
from typing_extensions import override

from service.model.cluster.extender_config import Extender
from service.model.core.errors import Denied
from service.model.core.primitives import ObjectName

ASKS_EXTENDERS = "AsksExtenders"
"""The reason for refusing a pod where the extenders of its profile are not asked."""
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
    """The combined verdict of a pod's extenders."""

    node_name: str | None
    """The best node that all of them allow, or None."""
    added: Mapping[str, int] = {}
    """What their scores add to the totals, by allowed node."""
    refused: Mapping[str, Mapping[str, str]] = {}
    """Reasons against nodes, by extender and node."""
    unresolvable: Mapping[str, tuple[str, ...]] = {}
    """The nodes on which eviction cannot help, by extender."""
    failure: str | None = None
    """Why a required extender could not be reached."""


class ExtendersRequired(Denied):
    """A decision needs extender verdicts; where extenders are not asked, the pod is refused."""

    def __init__(self, question: ExtenderQuestion, scheduler_name: str) -> None:
        super().__init__(ASKS_EXTENDERS, NOT_ASKED.format(scheduler_name))
        self.question = question

    @property
    @override
    def code(self) -> str:
        return Denied.__name__


class ExtenderCaller(Protocol):
    """Asks the extenders of profiles."""

    async def ask(self, question: ExtenderQuestion) -> ExtenderVerdict:
        """Ask all extenders that the question names; return a verdict within their timeouts in any case."""
        ...
