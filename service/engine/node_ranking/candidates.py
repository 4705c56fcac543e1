"""The nodes among which one placement chooses, and the choice."""

from collections.abc import Iterable, Sequence

import numpy as np

from service.engine.node_ranking.rank_cache import RowCache
from service.engine.plugin_protocol.plugin import DomainScores, Scale
from service.engine.state.node_columns.columns import Ints
from service.engine.state.node_columns.node_values_from_domain_counts import Weighed
from service.engine.state.node_columns.nodes import NodeTable
from service.engine.state.node_columns.rank_as_one_integer import SIGN_BIT, TIE_BITS, VETO
from service.engine.state.node_columns.topology import TopologyKey
from service.engine.state.node_columns.vetoes import Vetoes


class Candidates:
    """The nodes that are feasible by the ranks of `rows` and that no rule on other pods vetoes."""

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
        """The slots that may be chosen, if they are few; None for all."""
        self._ranks: Ints | None = None

    @property
    def ranks(self) -> Ints:
        """The ranks, shape (nodes,), int64: score above tie-break, or negative if left out."""
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
        """A mask of shape (nodes,), int64: -1 for nodes that are left out, else 0."""
        return self.ranks >> SIGN_BIT

    def has(self, slot: int) -> bool:
        """Whether a node is a candidate."""
        return (self._only is None or slot in self._only) and self._rank_at(slot) >= 0

    def only(self, slot: int) -> "Candidates":
        """Return the same with only one node that may be chosen."""
        return Candidates(self._nodes, self.rows, self._vetoes, only=[slot])

    def vacant(self, key: TopologyKey) -> list[bool]:
        """Return for each domain of a key with few domains whether it has no candidate.

        The last entry is for the nodes without the key.
        """
        vetoed = [each.by_domain for each in self._vetoes if each.key is key and each.by_domain]
        if self._only is not None or len(vetoed) < len(self._vetoes):
            occupied = np.zeros(key.capacity + 1, dtype=np.bool_)
            occupied[key.domain_of[self.ranks >= 0]] = True
            return [not each for each in occupied.tolist()]
        vacant = self.rows.vacant_in(key)
        for by_domain in vetoed:
            vacant = [one or by_domain[domain] < 0 for domain, one in enumerate(vacant)]
        return vacant

    def best(self, scores: Sequence[DomainScores | Ints], tie: int) -> tuple[int, int]:
        """Return the slot of the greatest rank with `scores` added, and that rank.

        The rank is negative if there is no candidate. Scores include their weights; those per node,
        shape (nodes,), int64, are shifted by TIE_BITS as ranks are. `tie` is the pod's part of the
        tie-break. There must be nodes.
        """
        if self._only is not None:
            return self._best_of(self._only, scores, tie)
        found = self._best_of_tree(scores, tie)
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

    def best_by_affinity(
        self, terms: tuple[Weighed, ...], scale: Scale, tie: int
    ) -> tuple[int, int] | None:
        """Return what `best` returns if affinity terms are the only scores to add.

        This takes no pass over all nodes; it returns None if only such a pass can tell.
        """
        key = terms[0].counter.key
        if self._only is not None or self._vetoes or key.has_few_domains or self.rows.raw:
            return None
        if any(each.counter.key is not key for each in terms):
            return None
        return self.rows.best_by_affinity(terms, scale, tie)

    def _best_of(
        self, slots: Sequence[int], scores: Sequence[DomainScores | Ints], tie: int
    ) -> tuple[int, int]:
        """Do what `best` does for few slots, in plain integers."""
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

    def _best_of_tree(
        self, scores: Sequence[DomainScores | Ints], tie: int
    ) -> tuple[int, int] | None:
        """Do what `best` does by trees; return None if they cannot tell or cost more."""
        by_domain = [each for each in scores if isinstance(each, DomainScores)]
        key = by_domain[0].key if by_domain else self._excluding_key()
        if len(by_domain) < len(scores) or any(each.key is not key for each in by_domain):
            return None
        best_node_tree = self.rows.best_node_tree(key)
        if best_node_tree is None:
            return None
        if key is None:
            tops, offsets, vetoes = [best_node_tree.top(0)], [0], self._vetoes
        else:
            vetoes = [each for each in self._vetoes if each.key is not key or not each.by_domain]
            offsets = self._offsets(key, by_domain)
            tops = [best_node_tree.top(tree) + offsets[tree] for tree in range(key.capacity + 1)]
        promised, best, greatest = max(tops), 0, VETO
        for tree in range(len(tops)) if promised >= 0 else ():
            if tops[tree] == promised:
                slot = best_node_tree.find(tree, tie, vetoes)
                if slot < 0:
                    return None
                rank = int(self.rows.ranks[slot]) + (offsets[tree] << TIE_BITS)
                if rank ^ tie > greatest ^ tie:
                    best, greatest = slot, rank
        return best, greatest

    def _excluding_key(self) -> TopologyKey | None:
        """Return the first key with few domains of which a rule leaves under half of the nodes."""
        for each in self._vetoes:
            if each.by_domain and each.spared * 2 < self._nodes.size:
                return each.key
        return None

    def _offsets(self, key: TopologyKey, scores: list[DomainScores]) -> list[int]:
        """Return what is added to the score of each domain; far below zero for a veto."""
        offsets = [0] * (key.capacity + 1)
        for each in scores:
            for domain, score in enumerate(each.scores):
                offsets[domain] += score
        for rule in self._vetoes:
            if rule.key is key and rule.by_domain:
                for domain, veto in enumerate(rule.by_domain):
                    if veto:
                        offsets[domain] = VETO >> TIE_BITS
        return offsets


def vetoed(ranks: Ints, vetoes: Iterable[Ints]) -> Ints:
    """Return the ranks, shape (nodes,), int64; negative for nodes that a veto excludes."""
    for each in vetoes:
        ranks = ranks | each
    return ranks


def _on_nodes(scores: DomainScores) -> Ints:
    key, by_domain = scores
    return key.pattern([each << TIE_BITS for each in by_domain])
