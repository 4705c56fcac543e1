"""What a request over several clusters makes of answers that have changed since its dry runs."""

from collections.abc import Callable, Sequence

import pytest
from msgspec.structs import replace

from service.model.cluster.comparison import ClusterComparison, SpreadOverClusters
from service.model.core.errors import Overloaded
from service.scheduler.multi_cluster.cluster_bids import (
    ClusterQuery,
    MultiClusterRequest,
    Unit,
)
from service.scheduler.protocol.intents import AdvanceGroup
from service.scheduler.protocol.placements import Outcome, PlacementAnswer, PlacementResult
from service.scheduler.protocol.split_groups import GroupAnswer
from tests.builders import matching, pod
from tests.scheduler.world import world

Answer = Callable[[ClusterQuery, int], Outcome]
"""What a cluster says of the pod at an index."""


class Clusters:
    """Clusters that answer as they are told."""

    def __init__(self, answer: Answer, pods: dict[str, int] | None = None) -> None:
        self._answer = answer
        self._pods = pods or {}
        self.reserved_in: list[str] = []
        self.steps: list[tuple[str, str]] = []

    async def place(self, ask: ClusterQuery) -> PlacementAnswer:
        if ask.reserving is not None:
            self.reserved_in.append(ask.cluster)
        results = [self._result(ask, each) for each in ask.indices]
        return PlacementAnswer(
            revision=1, committed=False, attempts=1, results=results, kubernetes="1.37", group=None
        )

    async def advance(self, cluster: str, step: AdvanceGroup) -> GroupAnswer:
        self.steps.append((cluster, step.step))
        return GroupAnswer(revision=1, committed=False)

    def _result(self, ask: ClusterQuery, index: int) -> PlacementResult:
        outcome = self._answer(ask, index)
        spread = SpreadOverClusters(
            pods=self._pods.get(ask.cluster, 0),
            eligible=True,
            required=True,
            max_skew=1,
            counts_itself=True,
        )
        told = PlacementResult(
            namespace="default",
            name=f"g-{index}",
            outcome=outcome,
            node_name="n" if outcome in ("Placed", "AlreadyPlaced") else None,
            uid=None,
            score=None,
            planned_revision=1,
            reason=None,
            message=None if outcome in ("Placed", "AlreadyPlaced") else "0/1 nodes are available.",
            explanation=None,
        )
        if not ask.dry_run:
            return told
        comparison = ClusterComparison(
            stored=False, used_share=0.1, affine=None, spread=[spread] if self._pods else []
        )
        return replace(told, comparison=comparison)


async def placed(
    clusters: Clusters, names: Sequence[str], *, group: bool
) -> list[tuple[str, str | None]]:
    """Place two pods, or one; the outcome and the cluster of each."""
    async with world() as w:
        count = 2 if group else 1
        made = [
            pod(f"g-{n}").label(app="g").spread(1, "moorage.dev/cluster", matching(app="g"))
            for n in range(count)
        ]
        for each in names:
            if each != "default":
                await w.store.clusters.create(each, b"{}")
        unit = Unit(
            indices=range(count),
            names=[("default", f"g-{n}") for n in range(count)],
            is_group=group,
        )
        asked = MultiClusterRequest(
            clusters=names,
            units=[unit],
            pods=[m.pod for m in w.placing(*made).pods],
            split_groups=group,
        )
        answer = await w.schedulers[0].place_over_clusters(asked, clusters)
        assert not answer.committed
        return [(each.outcome, each.cluster) for each in answer.results]


async def test_what_was_refused_after_all_is_not_told_as_placed() -> None:
    clusters = Clusters(lambda ask, _: "Placed" if ask.dry_run else "Unschedulable")
    assert await placed(clusters, ["default"], group=False) == [("Unschedulable", None)]


def only_split(ask: ClusterQuery, reserving: Outcome) -> Outcome:
    """No cluster takes the group as a whole, and each one takes any of its pods."""
    if ask.reserving is not None:
        return reserving
    return "Placed" if ask.alone else "GroupRefused"


async def test_a_pod_that_was_stored_meanwhile_is_not_placed_in_another_cluster() -> None:
    clusters = Clusters(lambda ask, _: only_split(ask, "AlreadyPlaced"))
    with pytest.raises(Overloaded):
        await placed(clusters, ["default", "other"], group=True)
    assert clusters.reserved_in == ["default"]
    assert ("default", "Release") in clusters.steps


async def test_a_cluster_that_refused_still_counts_for_the_spread_over_clusters() -> None:
    clusters = Clusters(
        lambda ask, _: only_split(ask, "Unschedulable" if ask.cluster == "default" else "Placed"),
        {"default": 0, "b": 1, "c": 1},
    )
    found = await placed(clusters, ["default", "b", "c"], group=True)
    assert {cluster for _, cluster in found} == {None}
    assert set(clusters.reserved_in) == {"default"}
