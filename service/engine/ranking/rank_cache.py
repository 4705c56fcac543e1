"""The candidate nodes of one placement by rank, and the choice of the best one.

A rank combines the sum of a node's scores with its tie-break in the low bits; it is negative if a
filter fails. The part of the ranks that depends on the node alone is cached for each set of rules
(`RowCache`) and repaired node by node: after a placement only one entry changes. `Candidates` are
the nodes that remain for one placement after rules about other pods are applied.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from service.engine.framework.plugin import DomainScores, Scale
from service.engine.profiles.profile import Profile
from service.engine.ranking.affinity_ranks import AffinityRanks
from service.engine.ranking.score_tree import BestNodeTree
from service.engine.ranking.static_rows import StaticRows
from service.engine.state.nodes.columns import ALL, Ints, Mask, Rows, Slots, at
from service.engine.state.nodes.counters import WeightedTerm
from service.engine.state.nodes.node_rules import NodeRules
from service.engine.state.nodes.node_table import NodeTable
from service.engine.state.nodes.rank import SIGN_BIT, TIE_BITS, VETO
from service.engine.state.nodes.topology import TopologyKey
from service.engine.state.nodes.vetoes import Vetoes

PASSES_BEFORE = 8
"""The number of passes over all nodes that cost as much as building a `BestNodeTree`."""
SCALARS_MAX = 32
"""The maximum number of nodes for which plain integers are faster than short arrays."""
AFFINITIES_MAX = 8
"""The maximum number of cached sets of affinity terms; the least recently used is evicted first."""
REBUILD_SHARE = 8
"""The inverse of the share of changed nodes above which rebuilding is cheaper than repairing."""


class RowCache:
    """The ranks of all nodes for one `NodeRules` under one `Profile`."""

    __slots__ = (
        "_affinities",
        "_cells",
        "_feasible",
        "_filters",
        "_nodes",
        "_nodes_seen",
        "_passes",
        "_rules",
        "_scores",
        "_static",
        "_static_rows",
        "_trees",
        "_usage_seen",
        "bytes_counted",
        "constant",
        "is_cached",
        "ranks",
        "raw",
        "size_in_bytes",
    )

    def __init__(
        self, nodes: NodeTable, rules: NodeRules, profile: Profile, static_rows: StaticRows
    ) -> None:
        self._nodes = nodes
        self._rules = rules
        self._static_rows = static_rows
        self._filters = [plugin for plugin in profile.usage_filters if plugin.applies(rules)]
        self._scores = [scorer for scorer in profile.usage_scores if scorer[0].scores_for(rules)]
        self._static = static_rows.mask.data
        self.ranks: Ints = np.zeros(0, dtype=np.int64)
        """The ranks, shape (nodes,), int64: `score << TIE_BITS | tie hash`, or `VETO`."""
        self._cells = self.ranks.data
        self._feasible: dict[TopologyKey, tuple[int, list[int]]] = {}
        """The version of each key, and the number of feasible nodes in each domain; the last entry
        is for nodes without the key."""
        self._passes = 0
        """The number of passes over all nodes since the ranks were built."""
        self._trees: dict[TopologyKey | None, BestNodeTree] = {}
        self._affinities: dict[tuple[WeightedTerm, ...], AffinityRanks] = {}
        self.raw = static_rows.raw
        """Scores that are normalized for each placement, except those that are 0 on every node."""
        self.constant = 0
        """The score added to every node by plugins whose raw scores are 0 everywhere, once
        normalized."""
        self.size_in_bytes = 0
        """The size of all arrays, including those shared with other rules of the same `static_key`.
        """
        self.bytes_counted = 0
        """The part of `size_in_bytes` that the `Cluster` has already counted."""
        self.is_cached = True
        """Whether the `Cluster` still caches the rows; otherwise, their dependencies are no longer
        updated."""
        self._nodes_seen = -1
        self._usage_seen = -1

    def refresh(self) -> None:
        """Bring all ranks up to date with the nodes."""
        nodes = self._nodes
        usage = nodes.usage_log.position
        if nodes.version != self._nodes_seen:
            self._rebuild()
        elif usage != self._usage_seen:
            self._repair_since(self._usage_seen)
        self._nodes_seen, self._usage_seen = nodes.version, usage

    def _repair_since(self, position: int) -> None:
        """Update the nodes whose pods have changed since a position of the usage log."""
        nodes = self._nodes
        last = nodes.usage_log.since(position)
        if last is not None and len(last) <= SCALARS_MAX:
            for slot in set(last):
                self._repair(slot)
            return
        rows = nodes.used_since(position)
        if len(rows) * REBUILD_SHARE > nodes.size + REBUILD_SHARE:
            self._rebuild()
        elif len(rows) <= SCALARS_MAX:
            for slot in rows.tolist():
                self._repair(slot)
        else:
            self._forget()
            self.ranks[rows] = self._ranks_of(rows)
            self._measure()

    def vacant_in(self, key: TopologyKey) -> list[bool]:
        """Return, for each domain of a key with few domains, whether it has no feasible node.

        The last entry is for the nodes without the key.
        """
        known = self._feasible.get(key)
        if known is None or known[0] != key.version:
            known = self._feasible[key] = (key.version, self._feasible_in(key))
        return [not nodes for nodes in known[1]]

    def _feasible_in(self, key: TopologyKey) -> list[int]:
        """Count the feasible nodes in each domain of a key, and last those without the key."""
        domains = key.domain_of[self.ranks >= 0] + 1
        counts = np.bincount(domains, minlength=key.capacity + 1).tolist()
        return [*counts[1:], counts[0]]

    def best_node_tree(self, key: TopologyKey | None) -> BestNodeTree | None:
        """Return a tree over all nodes, or, for a key with few domains, one tree per domain.

        Returns None while a pass over all nodes is cheaper.
        """
        tree = self._trees.get(key)
        if tree is None or (key is not None and tree.layout.version != key.version):
            self._passes += 1
            if self._passes <= PASSES_BEFORE:
                return None
            tree = self._trees[key] = BestNodeTree(self._nodes.layout(key), self.ranks)
            self._measure()
        return tree

    def best_by_affinity(
        self, terms: tuple[WeightedTerm, ...], scale: Scale, tie: int
    ) -> tuple[int, int] | None:
        """Return the best node if affinity terms of one key are the only scores to add.

        Returns None if a pass over all nodes is cheaper, or if no node is feasible.
        """
        ranks = self._affinities.pop(terms, None) or AffinityRanks(self._nodes, terms)
        self._affinities[terms] = ranks
        if len(self._affinities) > AFFINITIES_MAX:
            del self._affinities[next(iter(self._affinities))]
        size = ranks.size_in_bytes
        best = ranks.best(self.ranks, tie, scale)
        if ranks.size_in_bytes != size:
            self._measure()
        return best

    def forget_dropped(self) -> None:
        """Drop everything derived from dropped label keys and counters."""
        for key in [key for key in self._feasible if key.is_dropped]:
            del self._feasible[key]
        trees = [key for key in self._trees if key is not None and key.is_dropped]
        for tree_key in trees:
            del self._trees[tree_key]
        dropped = [
            terms for terms in self._affinities if any(term.counter.is_dropped for term in terms)
        ]
        for terms in dropped:
            del self._affinities[terms]
        if trees or dropped:
            self._measure()

    def _forget(self) -> None:
        """Drop everything derived from the ranks of all nodes, because many ranks change."""
        self._affinities.clear()
        self._feasible.clear()
        self._trees.clear()
        self._passes = 0

    def _rebuild(self) -> None:
        self._forget()
        rows = self._static_rows
        rows.refresh()
        self._static, self.raw, self.constant = rows.mask.data, rows.raw, rows.constant
        self.ranks = self._ranks_of(ALL)
        self._cells = self.ranks.data
        self._measure()

    @property
    def trees(self) -> tuple[BestNodeTree, ...]:
        """The cached trees."""
        return tuple(self._trees.values())

    @property
    def affinities(self) -> tuple[AffinityRanks, ...]:
        """The cached ranks by affinity terms, least recently used first."""
        return tuple(self._affinities.values())

    # Queries for recounts

    @property
    def is_repairable(self) -> bool:
        """Whether the rows are cached and need no rebuild, because no node itself has changed."""
        return self.is_cached and self._nodes.version == self._nodes_seen

    def ranks_hold(self, rows: Slots) -> bool:
        """Return whether the ranks of some nodes, and their static rows, equal a fresh computation.

        Like the other queries for recounts, it must be called right after a refresh.
        """
        if not self._static_rows.holds(rows):
            return False
        return bool(np.array_equal(self.ranks.take(rows), self._ranks_of(rows)))

    def feasible_holds(self) -> bool:
        """Return whether the cached numbers of feasible nodes are correct in all domains."""
        return all(
            counts == self._feasible_in(key)
            for key, (version, counts) in self._feasible.items()
            if version == key.version
        )

    def _measure(self) -> None:
        ordered = sum(tree.size_in_bytes for tree in self._trees.values())
        ordered += sum(affinity.size_in_bytes for affinity in self._affinities.values())
        self.size_in_bytes = int(self.ranks.nbytes) + self._static_rows.size_in_bytes + ordered

    def _ranks_of(self, rows: Rows) -> Ints:
        """Compute the ranks of some nodes, shape (rows,), int64."""
        nodes, rules, fixed = self._nodes, self._rules, self._static_rows.scores
        mask: Mask = at(self._static_rows.mask, rows)
        for plugin in self._filters:
            mask = mask & plugin.admits(nodes, rules, rows)
        ranks: Ints = np.zeros(len(mask), dtype=np.int64)
        if fixed is not None:
            ranks += at(fixed, rows)
        for score, weight in self._scores:
            scores = score.scores(nodes, rules, rows)
            if scores is not None:
                ranks += scores if weight == 1 else weight * scores
        ranks <<= TIE_BITS
        ranks |= at(nodes.tie, rows)
        np.putmask(ranks, ~mask, VETO)
        return ranks

    def _repair(self, slot: int) -> None:
        """Update the rank of one node whose pods have changed, using plain integers."""
        before = self._cells[slot]
        after = self._rank_at(slot)
        self._cells[slot] = after
        for tree in self._trees.values():
            tree.repair(slot)
        if (before < 0) != (after < 0):
            for key, (_, counts) in self._feasible.items():
                counts[key.cells[slot]] += 1 if before < 0 else -1

    def _rank_at(self, slot: int) -> int:
        nodes, rules, fixed = self._nodes, self._rules, self._static_rows.scores
        if not self._static[slot] or not self._fits(slot):
            return VETO
        total = 0 if fixed is None else int(fixed[slot])
        for score, weight in self._scores:
            total += weight * score.score(nodes, rules, slot)
        return (total << TIE_BITS) | nodes.tie_at(slot)

    def _fits(self, slot: int) -> bool:
        nodes, rules = self._nodes, self._rules
        for plugin in self._filters:  # noqa: SIM110 - a generator costs more than the calls
            if not plugin.admits_one(nodes, rules, slot):
                return False
        return True


class Candidates:
    """The nodes that are feasible according to the ranks of `rows` and excluded by no veto."""

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
        """The slots that may be chosen, if there are few, or None for all."""
        self._ranks: Ints | None = None

    @property
    def ranks(self) -> Ints:
        """The ranks, shape (nodes,), int64: score above tie-break, or negative if excluded."""
        if self._ranks is None:
            self._ranks = apply_vetoes(self.rows.ranks, (veto.nodes for veto in self._vetoes))
            if self._only is not None:
                allowed = np.full_like(self._ranks, VETO)
                for slot in self._only:
                    allowed[slot] = self._ranks[slot]
                self._ranks = allowed
        return self._ranks

    @property
    def infeasible(self) -> Ints:
        """A mask of shape (nodes,), int64: -1 for excluded nodes, else 0."""
        return self.ranks >> SIGN_BIT

    def has(self, slot: int) -> bool:
        """Return whether a node is a candidate."""
        return (self._only is None or slot in self._only) and self._rank_at(slot) >= 0

    def only(self, slot: int) -> "Candidates":
        """Return the candidates limited to one node."""
        return Candidates(self._nodes, self.rows, self._vetoes, only=[slot])

    def vacant(self, key: TopologyKey) -> list[bool]:
        """Return, for each domain of a key with few domains, whether it has no candidate.

        The last entry is for the nodes without the key.
        """
        by_domains = [veto.by_domain for veto in self._vetoes if veto.key is key and veto.by_domain]
        if self._only is not None or len(by_domains) < len(self._vetoes):
            occupied = np.zeros(key.capacity + 1, dtype=np.bool_)
            occupied[key.domain_of[self.ranks >= 0]] = True
            return [not has_candidate for has_candidate in occupied.tolist()]
        vacant = self.rows.vacant_in(key)
        for by_domain in by_domains:
            vacant = [is_vacant or by_domain[domain] < 0 for domain, is_vacant in enumerate(vacant)]
        return vacant

    def best(self, scores: Sequence[DomainScores | Ints], tie: int) -> tuple[int, int]:
        """Return the slot with the highest rank after adding `scores`, and that rank.

        The rank is negative if there is no candidate. There must be nodes.

        Args:
            scores: weighted scores; those per node, shape (nodes,), int64, are shifted by TIE_BITS as
                ranks are.
            tie: the pod's part of the tie-break.
        """
        if self._only is not None:
            return self._best_of(self._only, scores, tie)
        best = self._best_of_tree(scores, tie)
        if best is not None:
            return best
        totals = self.ranks
        for score in scores:
            if not isinstance(score, DomainScores):
                totals = totals + score
            elif any(score.scores):
                totals = totals + _on_nodes(score)
        slot = int((totals ^ tie).argmax())
        return slot, int(totals[slot])

    def best_by_affinity(
        self, terms: tuple[WeightedTerm, ...], scale: Scale, tie: int
    ) -> tuple[int, int] | None:
        """Return the result of `best` if affinity terms are the only scores to add, or None.

        It never passes over all nodes; None means that only such a pass can decide.
        """
        key = terms[0].counter.key
        if self._only is not None or self._vetoes or key.has_few_domains or self.rows.raw:
            return None
        if any(term.counter.key is not key for term in terms):
            return None
        return self.rows.best_by_affinity(terms, scale, tie)

    def _best_of(
        self, slots: Sequence[int], scores: Sequence[DomainScores | Ints], tie: int
    ) -> tuple[int, int]:
        """Return the best of a few slots, using plain integers."""
        best, greatest = 0, VETO
        for slot in slots:
            rank = self._rank_at(slot)
            for score in scores:
                rank += (
                    score.at(slot) << TIE_BITS
                    if isinstance(score, DomainScores)
                    else int(score[slot])
                )
            if rank ^ tie > greatest ^ tie:
                best, greatest = slot, rank
        return best, greatest

    def _rank_at(self, slot: int) -> int:
        rank = int(self.rows.ranks[slot])
        for veto in self._vetoes:
            rank |= veto.at(slot)
        return rank

    def _best_of_tree(
        self, scores: Sequence[DomainScores | Ints], tie: int
    ) -> tuple[int, int] | None:
        """Return the best node found by trees, or None if they cannot decide or would cost more."""
        by_domain = [score for score in scores if isinstance(score, DomainScores)]
        key = by_domain[0].key if by_domain else self._excluding_key()
        if len(by_domain) < len(scores) or any(score.key is not key for score in by_domain):
            return None
        best_node_tree = self.rows.best_node_tree(key)
        if best_node_tree is None:
            return None
        if key is None:
            tops, offsets, vetoes = [best_node_tree.top(0)], [0], self._vetoes
        else:
            vetoes = [veto for veto in self._vetoes if veto.key is not key or not veto.by_domain]
            offsets = self._offsets(key, by_domain)
            tops = [best_node_tree.top(tree) + offsets[tree] for tree in range(key.capacity + 1)]
        top_score, best, greatest = max(tops), 0, VETO
        for tree in range(len(tops)) if top_score >= 0 else ():
            if tops[tree] == top_score:
                slot = best_node_tree.find(tree, tie, vetoes)
                if slot < 0:
                    return None
                rank = int(self.rows.ranks[slot]) + (offsets[tree] << TIE_BITS)
                if rank ^ tie > greatest ^ tie:
                    best, greatest = slot, rank
        return best, greatest

    def _excluding_key(self) -> TopologyKey | None:
        """Return the first key with few domains by which vetoes exclude most nodes, or None."""
        for veto in self._vetoes:
            if veto.by_domain and veto.open_nodes * 2 < self._nodes.size:
                return veto.key
        return None

    def _offsets(self, key: TopologyKey, scores: list[DomainScores]) -> list[int]:
        """Return the amount added to each domain's score, which is far below zero for a veto."""
        offsets = [0] * (key.capacity + 1)
        for domain_scores in scores:
            for domain, score in enumerate(domain_scores.scores):
                offsets[domain] += score
        for rule in self._vetoes:
            if rule.key is key and rule.by_domain:
                for domain, veto in enumerate(rule.by_domain):
                    if veto:
                        offsets[domain] = VETO >> TIE_BITS
        return offsets


def apply_vetoes(ranks: Ints, vetoes: Iterable[Ints]) -> Ints:
    """Return the ranks, shape (nodes,), int64, made negative for nodes that a veto excludes."""
    for veto in vetoes:
        ranks = ranks | veto
    return ranks


def _on_nodes(scores: DomainScores) -> Ints:
    key, by_domain = scores
    return key.pattern([score << TIE_BITS for score in by_domain])
