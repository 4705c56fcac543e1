"""Questions to a profile's extenders and the extenders' verdicts, as decisions see them.

A decision never queries extenders itself; it ends with a question. The caller sends the question to
the extenders and has the request decided again with the verdict, on the cluster's state at that
time.
"""

from collections.abc import Mapping
from typing import Protocol

import msgspec
from typing_extensions import override

from service.model.cluster.extender_config import Extender
from service.model.core.errors import Denied
from service.model.core.primitives import ObjectName

ASKS_EXTENDERS = "AsksExtenders"
"""The reason for refusing a pod where its profile's extenders are not queried."""
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
    """The extenders interested in the pod, in their order; at least one."""
    totals: Mapping[str, int]
    """The weighted sum of the profile's own scores for each node; at least one node."""
    best: str
    """The node that the pod would get without extenders."""
    nodes: Mapping[str, bytes]
    """The nodes as JSON, by name; empty if all extenders cache nodes."""


class ExtenderVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """The combined verdict of a pod's extenders."""

    node_name: str | None
    """The best node that all extenders allow, or None."""
    added: Mapping[str, int] = {}
    """The scores that extenders add to the totals, by allowed node."""
    refused: Mapping[str, Mapping[str, str]] = {}
    """Reasons against nodes, by extender and node."""
    unresolvable: Mapping[str, tuple[str, ...]] = {}
    """The nodes on which eviction cannot help, by extender."""
    failure: str | None = None
    """Why a required extender could not be reached, or None."""


class ExtendersRequired(Denied):
    """A decision needs extender verdicts. Where extenders are not queried, the pod is refused."""

    def __init__(self, question: ExtenderQuestion, scheduler_name: str) -> None:
        super().__init__(ASKS_EXTENDERS, NOT_ASKED.format(scheduler_name))
        self.question = question

    @property
    @override
    def code(self) -> str:
        return Denied.__name__


class ExtenderCaller(Protocol):
    """Queries the extenders of profiles."""

    async def ask(self, question: ExtenderQuestion) -> ExtenderVerdict:
        """Query every extender in the question; always return a verdict within their timeouts."""
        ...
