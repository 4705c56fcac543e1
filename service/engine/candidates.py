"""The nodes among which one placement chooses, and the choice."""

from collections.abc import Iterable, Sequence

import numpy as np

from service.engine.blocks import LARGE, best_block
from service.engine.columns import Ints
from service.engine.nodes import NodeTable
from service.engine.plugin import DomainScores, Vetoes
from service.engine.ranks import SIGN_BIT, TIE_BITS, VETO
from service.engine.rows import RowCache
from service.engine.topology import TopologyKey

DISAPPOINTMENTS_MAX = 32
"""After so many blocks that held less than they promised, all nodes are looked at."""


class Candidates:
    """Nodes with a rank of `rows` that no rule on other pods vetoes."""

    def __init__(
        self,
        nodes: NodeTable,
        rows: RowCache,
        vetoes: Sequence[Vetoes],
        only: Sequence[int] | None = None,
    ) -> None:
        self.rows = rows
        self._nodes = nodes
        self._vetoes = vetoes
        self._only = only
        """The slots that may be chosen, where they are few; None for all."""
        self._ranks: Ints | None = None

    @property
    def ranks(self) -> Ints:
        """Shape (nodes,): score above tie-break; negative for nodes that are left out."""
        if self._ranks is None:
            self._ranks = vetoed(self.rows.ranks, (each.nodes for each in self._vetoes))
            if self._only is not None:
                kept = np.full_like(self._ranks, VETO)
                for slot in self._only:
                    kept[slot] = self._ranks[slot]
                self._ranks = kept
        return self._ranks

    @property
    def infeasible(self) -> Ints:
        """Shape (nodes,): -1 for nodes that are left out, else 0."""
        return self.ranks >> SIGN_BIT

    def has(self, slot: int) -> bool:
        """Whether a node is among them."""
        return (self._only is None or slot in self._only) and self._rank_at(slot) >= 0

    def vacant(self, key: TopologyKey) -> list[bool]:
        """Per domain of a key of few: whether no candidate is in it; last, of those without it."""
        vetoed = [each.by_domain for each in self._vetoes if each.key is key and each.by_domain]
        if self._only is not None or len(vetoed) < len(self._vetoes):
            occupied = np.zeros(key.capacity + 1, dtype=np.bool_)
            occupied[key.domain_of[self.ranks >= 0]] = True
            return [not each for each in occupied.tolist()]
        vacant = [not nodes for nodes in self.rows.feasible_in(key)]
        for by_domain in vetoed:
            vacant = [one or veto < 0 for one, veto in zip(vacant, by_domain, strict=True)]
        return vacant

    def best(self, scores: Sequence[DomainScores | Ints], tie: int) -> tuple[int, int]:
        """The slot of the greatest rank with `scores` added, and that rank: negative without any.

        Scores have their weights; those per node, shape (nodes,), are shifted as ranks are. `tie`
        is the pod's part of the tie-break. There must be nodes.
        """
        if self._only is not None:
            return self._best_of(self._only, scores, tie)
        if self._nodes.size >= LARGE:
            by_domain = [each for each in scores if isinstance(each, DomainScores)]
            one_key = len({each.key for each in by_domain}) <= 1
            if one_key and len(by_domain) == len(scores):
                found = self._best_by_blocks(by_domain, tie)
                if found is not None:
                    return found
        totals = self.ranks
        for each in scores:
            if not isinstance(each, DomainScores):
                totals = totals + each
            elif any(each.scores):
                totals = totals + _on_nodes(each)
        slot = int((totals ^ tie).argmax())
        return slot, int(totals[slot])

    def _best_of(
        self, slots: Sequence[int], scores: Sequence[DomainScores | Ints], tie: int
    ) -> tuple[int, int]:
        """The same among few, in plain integers."""
        best, greatest = 0, VETO
        for slot in slots:
            rank = self._rank_at(slot)
            for each in scores:
                rank += (
                    each.at(slot) << TIE_BITS if isinstance(each, DomainScores) else int(each[slot])
                )
            if rank ^ tie > greatest ^ tie:
                best, greatest = slot, rank
        return best, greatest

    def _rank_at(self, slot: int) -> int:
        rank = int(self.rows.ranks[slot])
        for each in self._vetoes:
            rank |= each.at(slot)
        return rank

    def _best_by_blocks(self, scores: list[DomainScores], tie: int) -> tuple[int, int] | None:
        """The same block by block; None where too many hold less than they promise.

        They do where a rule excludes nodes one by one, not by domain.
        """
        key = self._key_of_blocks(scores)
        offsets, others = self._by_domain(key, scores)
        tops = self.rows.tops(key).scores
        promises = tops[0].copy() if key is None else (tops + offsets[:, None]).max(axis=0)
        for _ in range(DISAPPOINTMENTS_MAX):
            promised, block = best_block(promises, tie)
            if promised < 0:
                return 0, VETO
            slots = self._nodes.blocks.members(block)
            ranks = vetoed(self.rows.ranks.take(slots), (each.of(slots) for each in others))
            if key is not None:
                ranks = ranks + (offsets << TIE_BITS).take(key.domain_of.take(slots))
            best = int((ranks ^ tie).argmax())
            rank = int(ranks[best])
            if rank >> TIE_BITS == promised:
                return int(slots[best]), rank
            promises[block] = rank >> TIE_BITS
        return None

    def _key_of_blocks(self, scores: list[DomainScores]) -> TopologyKey | None:
        """The key by whose domains to look: that of the scores, or of a rule."""
        keys = [each.key for each in scores]
        return next(iter(keys + [each.key for each in self._vetoes if each.by_domain]), None)

    def _by_domain(
        self, key: TopologyKey | None, scores: list[DomainScores]
    ) -> tuple[Ints, list[Vetoes]]:
        """What is to be added to the score of each domain, and the rules that say more."""
        if key is None:
            return np.zeros(1, dtype=np.int64), list(self._vetoes)
        offsets = np.zeros(key.capacity + 1, dtype=np.int64)
        for each in scores:
            offsets += each.scores
        others = []
        for rule in self._vetoes:
            if rule.key is key and rule.by_domain:
                offsets[np.array(rule.by_domain) < 0] = VETO >> TIE_BITS
            else:
                others.append(rule)
        return offsets, others


def vetoed(ranks: Ints, vetoes: Iterable[Ints]) -> Ints:
    """The ranks, negative where any rule excludes the node."""
    for each in vetoes:
        ranks = ranks | each
    return ranks


def _on_nodes(scores: DomainScores) -> Ints:
    key, by_domain = scores
    return key.pattern([each << TIE_BITS for each in by_domain])
