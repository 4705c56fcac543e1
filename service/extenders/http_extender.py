"""Calls to the HTTP extenders of a profile, which filter and score nodes as in kube-scheduler.

The order is that of findNodesThatPassExtenders and prioritizeNodes (kube-scheduler v1.35): the
filters in sequence, each with the remaining nodes; then all scores at once, if several nodes
remain.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence

import httpx
import msgspec
from typing_extensions import override

from service.extenders.client import ExtenderClient, ExtenderFailed, require_client_certificate
from service.model.cluster.extender_config import Extender, ExtenderHosts
from service.model.cluster.extender_messages import (
    EXTENDER_SCORE_MAX,
    ExtenderArgs,
    FilterResult,
    HostPriority,
    NodeList,
)
from service.scheduler.protocol.extenders import ExtenderCaller, ExtenderQuestion, ExtenderVerdict
from service.settings import Settings

_log = logging.getLogger(__name__)

_SCALE = 100 // EXTENDER_SCORE_MAX
"""The factor that converts scores of extenders to scores of plugins (MaxNodeScore)."""
_EXTENDERS_KEPT_MAX = 1_000
"""How many extenders' connections and failures are kept; the oldest are dropped first."""
WITHOUT_REASON = "left out without a reason"
_REASON_LENGTH_MAX = 500


class SentMetadata(msgspec.Struct, frozen=True, kw_only=True):
    """The metadata of a returned node."""

    name: str


class SentNode(msgspec.Struct, frozen=True, kw_only=True):
    """A node that an extender returns."""

    metadata: SentMetadata


_FILTERED = msgspec.json.Decoder(FilterResult[NodeList[SentNode]])
_PRIORITIES: msgspec.json.Decoder[list[HostPriority] | None] = msgspec.json.Decoder(
    list[HostPriority] | None
)


class Extenders(ExtenderCaller):
    """The extenders that this process calls, with their connections and failures.

    Raises:
        InvalidSettings: the client certificate cannot be used.
    """

    def __init__(
        self,
        settings: Settings,
        monotonic: Callable[[], float],
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        require_client_certificate(settings)
        self._settings = settings
        self._monotonic = monotonic
        self._transport = transport
        self._hosts = ExtenderHosts(settings.extender_hosts)
        self._clients: dict[bytes, ExtenderClient] = {}

    async def close(self) -> None:
        """Close all connections."""
        clients, self._clients = self._clients, {}
        for client in clients.values():
            await client.close()

    @override
    async def ask(self, question: ExtenderQuestion) -> ExtenderVerdict:
        left = list(question.totals)
        refused: dict[str, dict[str, str]] = {}
        unresolvable: dict[str, tuple[str, ...]] = {}
        for extender in question.extenders:
            name = extender.url_prefix
            # As in kube-scheduler, `ignorable` applies to failures, not to settings.
            if (reason := self._hosts.refuses(extender)) is not None:
                return _failed(name, reason, refused)
            if not left or not extender.filter_verb:
                continue
            try:
                left, against, lost = await self._filtered(question, extender, left)
            except ExtenderFailed as failure:
                if extender.ignorable:
                    _log.warning(
                        "An extender is passed over: %s", failure, extra={"extender": name}
                    )
                    continue
                return _failed(name, str(failure), refused)
            if against:
                refused.setdefault(name, {}).update(against)
                unresolvable[name] = (*unresolvable.get(name, ()), *lost)
        added = await self._scored(question, left) if len(left) > 1 else {}
        return ExtenderVerdict(
            node_name=_best(question, left, added),
            added=added,
            refused=refused,
            unresolvable=unresolvable,
        )

    async def _filtered(
        self, question: ExtenderQuestion, extender: Extender, names: Sequence[str]
    ) -> tuple[list[str], dict[str, str], tuple[str, ...]]:
        """Return the nodes kept by an extender, its reasons against others, and unresolvable ones.

        Raises:
            ExtenderFailed: it gave no usable answer.
        """
        body = _args(question, extender, names)
        client = await self._client_of(extender)
        result = await client.call(extender.filter_verb, body, _FILTERED)
        if result.error:
            raise ExtenderFailed(_short(result.error))
        kept: Sequence[str] = ()
        if extender.node_cache_capable and result.node_names is not None:
            kept = result.node_names
        elif result.nodes is not None:
            kept = [node.metadata.name for node in result.nodes.items or ()]
        chosen = set(kept)
        if unknown := chosen - set(names):
            raise ExtenderFailed(f"it leaves a node that it was not asked about: {min(unknown)}")
        lost = result.failed_and_unresolvable_nodes or {}
        given = {**(result.failed_nodes or {}), **lost}
        left = [name for name in names if name in chosen]
        gone = [name for name in names if name not in chosen]
        reasons = {name: _short(given.get(name) or WITHOUT_REASON) for name in gone}
        return left, reasons, tuple(name for name in gone if name in lost)

    async def _scored(self, question: ExtenderQuestion, names: Sequence[str]) -> dict[str, int]:
        """Return the sum of extenders' scores by node, ignoring failures as kube-scheduler does."""
        scoring = [extender for extender in question.extenders if extender.prioritize_verb]
        answers = await asyncio.gather(
            *(self._priorities(question, extender, names) for extender in scoring)
        )
        added = dict.fromkeys(names, 0) if scoring else {}
        for extender, priorities in zip(scoring, answers, strict=True):
            for name, score in priorities.items():
                added[name] += score * extender.weight * _SCALE
        return added

    async def _priorities(
        self, question: ExtenderQuestion, extender: Extender, names: Sequence[str]
    ) -> Mapping[str, int]:
        body, fields = _args(question, extender, names), {"extender": extender.url_prefix}
        client = await self._client_of(extender)
        try:
            priorities = await client.call(extender.prioritize_verb, body, _PRIORITIES) or ()
        except ExtenderFailed as failure:
            _log.warning("Scores of an extender are passed over: %s", failure, extra=fields)
            return {}
        known = set(names)
        if any(not 0 <= priority.score <= EXTENDER_SCORE_MAX for priority in priorities):
            _log.warning(
                "Scores of an extender are not from 0 to 10 and passed over.", extra=fields
            )
            return {}
        return {node.host: node.score for node in priorities if node.host in known}

    async def _client_of(self, extender: Extender) -> ExtenderClient:
        key = msgspec.json.encode(extender)
        client = self._clients.get(key)
        if client is None:
            if len(self._clients) >= _EXTENDERS_KEPT_MAX:
                await self._clients.pop(next(iter(self._clients))).close()
            client = ExtenderClient(extender, self._settings, self._monotonic, self._transport)
            client = self._clients.setdefault(key, client)
        return client


def _args(question: ExtenderQuestion, extender: Extender, names: Sequence[str]) -> bytes:
    whole = not extender.node_cache_capable
    nodes = [msgspec.Raw(question.nodes[name]) for name in names] if whole else None
    args = ExtenderArgs(
        pod=msgspec.Raw(question.manifest),
        nodes=None if nodes is None else NodeList(items=nodes),
        node_names=None if whole else names,
    )
    return msgspec.json.encode(args)


def _failed(name: str, reason: str, refused: Mapping[str, Mapping[str, str]]) -> ExtenderVerdict:
    failure = f"The extender {name} could not be asked: {reason}."
    return ExtenderVerdict(node_name=None, refused=refused, failure=failure)


def _best(question: ExtenderQuestion, names: Sequence[str], added: Mapping[str, int]) -> str | None:
    """Return the node with the highest sum; ties go to `question.best`, else to the first name."""
    if not names:
        return None
    sums = {name: question.totals[name] + added.get(name, 0) for name in names}
    top = max(sums.values())
    if sums.get(question.best) == top:
        return question.best
    return min(name for name, total in sums.items() if total == top)


def _short(reason: str) -> str:
    return reason if len(reason) <= _REASON_LENGTH_MAX else reason[:_REASON_LENGTH_MAX] + "…"
