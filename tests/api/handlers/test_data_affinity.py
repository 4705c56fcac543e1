"""Affinity to data, over HTTP: row R05 of `docs/requirements.md`."""

from typing import Any

import pytest

from tests.api.harness import Harness
from tests.api.story import tell
from tests.builders import ObjectBuilder, PodBuilder, node, pod
from tests.waiting import once

NODES = [node(f"n{number}").label(zone=f"z{number}") for number in (1, 2, 3)]


def data_set(name: str, namespace: str = "default", **spec: Any) -> ObjectBuilder:
    """Data that is on nodes and in domains."""
    return ObjectBuilder(
        apiVersion="moorage.dev/v1alpha1",
        kind="DataSet",
        metadata={"name": name, "namespace": namespace},
        spec=spec,
    )


def zones(*values: str) -> list[dict[str, Any]]:
    return [{"key": "zone", "values": list(values)}]


def wanting(name: str, *required: str, **preferred: int) -> PodBuilder:
    """A pod that works on data."""
    made = pod(name)
    made["spec"]["dataAffinity"] = {
        "required": [{"dataSet": each} for each in required],
        "preferred": [{"dataSet": each, "weight": weight} for each, weight in preferred.items()],
    }
    return made


async def test_a_pod_goes_where_its_data_is(harness: Harness) -> None:
    """R05: on a node that is named or of a domain; of several data sets it needs all."""
    genomes = data_set("genomes", nodes=["n1", "gone"], domains=zones("z2", "z9"))
    story = await tell(harness, *NODES, genomes, data_set("maps", domains=zones("z2", "z3")))
    assert await story.feasible(wanting("p", "genomes")) == ["n1", "n2"]
    told = await story.explain(wanting("p", "genomes", "maps"))
    assert told["feasible"] == ["n2"]
    lacking = 'node(s) didn\'t have the data set "{}"'
    assert told["filters"]["DataAffinity"] == {
        "n1": [lacking.format("maps")],
        "n3": [lacking.format("genomes")],
    }
    assert told["unresolvable"]["DataAffinity"] == ["n1", "n3"]
    assert await story.place(wanting("p", "genomes", "maps")) == ["n2"]


async def test_preferred_data_is_weighed(harness: Harness) -> None:
    """R05: with the weights of all data sets that a node has; one that is missing is nowhere."""
    here, there = data_set("here", nodes=["n1", "n2"]), data_set("there", nodes=["n2"])
    story = await tell(harness, *NODES, here, there)
    told = await story.explain(wanting("p", here=60, there=40, nowhere=100))
    assert told["scores"]["DataAffinity"] == {"n1": 60, "n2": 100, "n3": 0}
    assert await story.place(wanting("p", here=60, there=40)) == ["n2"]
    assert "DataAffinity" not in (await story.explain(pod("q")))["scoreSkipped"]


async def test_data_that_is_not_there_refuses_a_pod_with_its_name(harness: Harness) -> None:
    """R05: data sets of other namespaces are no better."""
    story = await tell(harness, *NODES, data_set("genomes", "shop", nodes=["n1"]))
    told = await story.explain(wanting("p", "genomes"))
    assert told["prefilter"]["plugin"] == "DataAffinity"
    assert told["message"] == '0/3 nodes are available: data set "genomes" not found.'
    assert await story.place(wanting("p", "genomes")) == [None]


async def test_pods_wait_for_their_data_and_follow_where_it_goes(harness: Harness) -> None:
    """R05: they are tried again by themselves; who has a place keeps it."""
    story = await tell(harness, *NODES)
    first, second = wanting("first", "genomes"), wanting("second", "genomes")
    assert await story.place(first, onUnschedulable="Queue") == [None]
    await story.put(data_set("other", nodes=["n2"]), data_set("genomes", nodes=["n1"]))

    async def placed(one: PodBuilder) -> str | None:
        return (await story.read(one))["spec"].get("nodeName")

    assert await once(lambda: placed(first)) == "n1"
    await story.put(data_set("genomes"))
    assert await story.place(second, onUnschedulable="Queue") == [None]
    await story.put(data_set("genomes", domains=zones("z3")))
    assert await once(lambda: placed(second)) == "n3"
    assert await placed(first) == "n1"
    await story.delete(data_set("genomes"))
    assert await story.place(wanting("third", "genomes")) == [None]


async def test_what_a_placed_pod_asked_of_data_does_not_change(harness: Harness) -> None:
    """R05: like its other rules."""
    story = await tell(harness, *NODES, wanting("p", "genomes").on("n1"))
    told = await story.wrong_fields(wanting("p", "maps").on("n1"))
    assert told == {"spec.dataAffinity": "may not change in a placed pod"}


@pytest.mark.parametrize(
    ("thing", "wrong"),
    [
        (wanting("p", "A B"), "spec.dataAffinity.required[0].dataSet"),
        (wanting("p", genomes=0), "spec.dataAffinity.preferred[0].weight"),
        (data_set("d", nodes=["A B"]), "spec.nodes[0]"),
        (data_set("d", domains=zones()), "spec.domains[0].values"),
        (data_set("d", domains=[{"key": "zone"}]), "spec.domains[0].values"),
        (data_set("d", zones=["z1"]), "spec.zones"),
    ],
)
async def test_what_is_wrong_about_data_is_named(harness: Harness, thing: Any, wrong: str) -> None:
    """R05: in data sets, and in the pods that name them."""
    assert list(await (await tell(harness)).wrong_fields(thing)) == [wrong]
