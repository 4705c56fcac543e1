"""Filters and scores the candidates of a pod by the extenders of its profile, as kube-scheduler does.

The order is that of findNodesThatPassExtenders and prioritizeNodes (kube-scheduler v1.35): filters
one after the other, each with what is left; then all scores at once, if several nodes are left.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence

import httpx
import msgspec
from typing_extensions import override

from service.extenders.client import Calls, ExtenderFailed, require_own_certificate
from service.model.configuration.extenders import Extender, ExtenderHosts
from service.model.extender_messages import (
    EXTENDER_SCORE_MAX,
    ExtenderArgs,
    FilterResult,
    HostPriority,
    NodeList,
)
from service.scheduler.protocol.extenders import (
    ExtenderClient,
    ExtenderQuestion,
    ExtenderVerdict,
)
from service.settings import Settings

_log = logging.getLogger(__name__)

_SCALE = 100 // EXTENDER_SCORE_MAX
"""By how much its scores count more, so that they are like those of plugins (MaxNodeScore)."""
_EXTENDERS_KEPT_MAX = 1_000
"""For so many extenders the connections and failures are kept; beyond, they begin anew."""
WITHOUT_REASON = "left out without a reason"
_REASON_LENGTH_MAX = 500


class SentMetadata(msgspec.Struct, frozen=True, kw_only=True):
    """What is read of the metadata of a node that comes back."""

    name: str


class SentNode(msgspec.Struct, frozen=True, kw_only=True):
    """What is read of a node that comes back."""

    metadata: SentMetadata


_FILTERED = msgspec.json.Decoder(FilterResult[NodeList[SentNode]])
_PRIORITIES: msgspec.json.Decoder[list[HostPriority] | None] = msgspec.json.Decoder(
    list[HostPriority] | None
)


class Extenders(ExtenderClient):
    """All extenders that this process asks, with their connections and failures.

    Raises:
        InvalidSettings: the certificate that extenders are shown cannot be used.
    """

    def __init__(
        self,
        settings: Settings,
        monotonic: Callable[[], float],
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        require_own_certificate(settings)
        self._settings = settings
        self._monotonic = monotonic
        self._transport = transport
        self._hosts = ExtenderHosts(settings.extender_hosts)
        self._calls: dict[bytes, Calls] = {}

    async def close(self) -> None:
        """Close all connections."""
        calls, self._calls = self._calls, {}
        for each in calls.values():
            await each.close()

    @override
    async def ask(self, question: ExtenderQuestion) -> ExtenderVerdict:
        left = list(question.totals)
        refused: dict[str, dict[str, str]] = {}
        unresolvable: dict[str, tuple[str, ...]] = {}
        for extender in question.extenders:
            name = extender.url_prefix
            # As in kube-scheduler, `ignorable` is about an extender that fails, not about a setting.
            if (told := self._hosts.refuses(extender)) is not None:
                return _failed(name, told, refused)
            if not left or not extender.filter_verb:
                continue
            try:
                found = await self._filtered(question, extender, left)
            except ExtenderFailed as failure:
                if extender.ignorable:
                    _log.warning(
                        "An extender is passed over: %s", failure, extra={"extender": name}
                    )
                    continue
                return _failed(name, str(failure), refused)
            left, against, lost = found
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
        """The nodes that one extender leaves, its reasons against others, and where no eviction helps."""
        body = _args(question, extender, names)
        result = await (await self._of(extender)).call(extender.filter_verb, body, _FILTERED)
        if result.error:
            raise ExtenderFailed(_short(result.error))
        kept: Sequence[str] = ()
        if extender.node_cache_capable and result.node_names is not None:
            kept = result.node_names
        elif result.nodes is not None:
            kept = [each.metadata.name for each in result.nodes.items or ()]
        chosen = set(kept)
        if unknown := chosen - set(names):
            raise ExtenderFailed(f"it leaves a node that it was not asked about: {min(unknown)}")
        lost = result.failed_and_unresolvable_nodes or {}
        told = {**(result.failed_nodes or {}), **lost}
        left = [name for name in names if name in chosen]
        gone = [name for name in names if name not in chosen]
        reasons = {name: _short(told.get(name) or WITHOUT_REASON) for name in gone}
        return left, reasons, tuple(name for name in gone if name in lost)

    async def _scored(self, question: ExtenderQuestion, names: Sequence[str]) -> dict[str, int]:
        """What all extenders' scores add, by node; one that fails is passed over, as in kube-scheduler."""
        scoring = [each for each in question.extenders if each.prioritize_verb]
        found = await asyncio.gather(*(self._priorities(question, each, names) for each in scoring))
        added = dict.fromkeys(names, 0) if scoring else {}
        for extender, priorities in zip(scoring, found, strict=True):
            for name, score in priorities.items():
                added[name] += score * extender.weight * _SCALE
        return added

    async def _priorities(
        self, question: ExtenderQuestion, extender: Extender, names: Sequence[str]
    ) -> Mapping[str, int]:
        body = _args(question, extender, names)
        try:
            found = await (await self._of(extender)).call(
                extender.prioritize_verb, body, _PRIORITIES
            )
        except ExtenderFailed as failure:
            told = {"extender": extender.url_prefix}
            _log.warning("Scores of an extender are passed over: %s", failure, extra=told)
            return {}
        known = set(names)
        if any(not 0 <= each.score <= EXTENDER_SCORE_MAX for each in found or ()):
            told = {"extender": extender.url_prefix}
            _log.warning("Scores of an extender are not from 0 to 10 and passed over.", extra=told)
            return {}
        return {each.host: each.score for each in found or () if each.host in known}

    async def _of(self, extender: Extender) -> Calls:
        key = msgspec.json.encode(extender)
        calls = self._calls.get(key)
        if calls is None:
            if len(self._calls) >= _EXTENDERS_KEPT_MAX:
                await self._calls.pop(next(iter(self._calls))).close()
            calls = Calls(extender, self._settings, self._monotonic, self._transport)
            calls = self._calls.setdefault(key, calls)
        return calls


def _args(question: ExtenderQuestion, extender: Extender, names: Sequence[str]) -> bytes:
    whole = not extender.node_cache_capable
    nodes = [msgspec.Raw(question.nodes[name]) for name in names] if whole else None
    args = ExtenderArgs(
        pod=msgspec.Raw(question.manifest),
        nodes=None if nodes is None else NodeList(items=nodes),
        node_names=None if whole else names,
    )
    return msgspec.json.encode(args)


def _failed(name: str, told: str, refused: Mapping[str, Mapping[str, str]]) -> ExtenderVerdict:
    failure = f"The extender {name} could not be asked: {told}."
    return ExtenderVerdict(node_name=None, refused=refused, failure=failure)


def _best(question: ExtenderQuestion, names: Sequence[str], added: Mapping[str, int]) -> str | None:
    """The node of the greatest sum: of equal ones that which the pod would get without extenders, or the first."""
    if not names:
        return None
    sums = {name: question.totals[name] + added.get(name, 0) for name in names}
    top = max(sums.values())
    if sums.get(question.best) == top:
        return question.best
    return min(name for name, each in sums.items() if each == top)


def _short(reason: str) -> str:
    return reason if len(reason) <= _REASON_LENGTH_MAX else reason[:_REASON_LENGTH_MAX] + "…"
