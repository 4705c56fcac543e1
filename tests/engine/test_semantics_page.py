"""`docs/semantics.md` asks questions and gives answers: each is asked, each answer compared."""

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import msgspec
import pytest
import yaml

from service.engine import (
    Cluster,
    Colocation,
    GroupPlacement,
    NoPreemption,
    Placement,
    explain,
    place,
    place_group,
    preempt,
)
from service.model.pods.pod import Pod
from service.model.registry.manifests import parse_pod_group
from tests.builders import node, pod
from tests.engine import objects
from tests.engine.scene import Scene
from tests.paths import ROOT

PAGE = ROOT / "docs" / "semantics.md"
BLOCK = re.compile(
    r"^### (?P<title>[^\n]+)$|^```yaml\n(?P<yaml>.*?)^```$", re.MULTILINE | re.DOTALL
)

Document = dict[str, Any]


class Example(NamedTuple):
    title: str
    question: Document
    answer: Document


def examples() -> Iterator[Example]:
    """Blocks come in pairs: a question, and then its answer."""
    title = ""
    question: Document | None = None
    for block in BLOCK.finditer(PAGE.read_text(encoding="utf-8")):
        if block["title"]:
            assert question is None, f"a question without an answer in {title}"
            title = block["title"]
        elif question is None:
            question = yaml.safe_load(block["yaml"])
        else:
            yield Example(title, question, yaml.safe_load(block["yaml"]))
            question = None


EXAMPLES = [
    pytest.param(example, id=f"{number}-{example.title}")
    for number, example in enumerate(examples(), start=1)
]


@pytest.mark.parametrize("example", EXAMPLES)
def test_the_page_tells_the_truth(example):
    results = list(answer(example.question))
    assert len(results) == len(example.answer["results"])
    for got, told in zip(results, example.answer["results"], strict=True):
        assert excerpt(got, told) == told


def answer(question: Document) -> Iterator[Document]:
    """Answer like `POST /v1/simulations`: one pod after the other, each seeing those before.

    With a `podGroup` the pods are its members, which are placed together.
    """
    cluster = objects.cluster(
        question.get("config", {}),
        question.get("namespaces", []),
        question["nodes"],
        question.get("pods", []),
        question.get("objects", []),
    )
    if "podGroup" in question:
        yield from answer_together(cluster, question)
        return
    for manifest in question.get("place") or [question["pod"]]:
        incoming = objects.pod(manifest, incoming=True)
        result = {
            "name": incoming.name,
            "explanation": msgspec.to_builtins(explain(cluster, incoming)),
        }
        placement = place(cluster, incoming)
        if isinstance(placement, Placement):
            yield result | {"outcome": "Placed", "nodeName": placement.node_name}
            placed = manifest | {"spec": manifest["spec"] | {"nodeName": placement.node_name}}
            cluster.put_pod(objects.pod(placed))
        else:
            result |= {"outcome": "Unschedulable", "message": placement.message}
            yield result | {"preemption": proposed(cluster, incoming, question)}


def proposed(cluster: Cluster, incoming: Pod, question: Document) -> Document | None:
    """Who would have to leave, if the question asks for that."""
    if "preemption" not in question:
        return None
    found = preempt(cluster, incoming, scope=question.get("preemptionScope", "Node"))
    if isinstance(found, NoPreemption):
        return None
    return {
        "nodeName": found.node_name,
        "victims": [{"namespace": p.namespace, "name": p.name} for p in found.victims.pods],
    }


def answer_together(cluster: Cluster, question: Document) -> Iterator[Document]:
    """What becomes of the members of a group, or of the one at which the group fails."""
    group = parse_pod_group(question["podGroup"]).group
    pods = [objects.pod(each, incoming=True) for each in question["place"]]
    assert group.topology_key is not None
    assert len(pods) == group.min_member
    together = Colocation(group.topology_key, tuple(range(len(pods))))
    answer = place_group(cluster, pods, colocations=[together])
    if not isinstance(answer, GroupPlacement):
        failed = pods[answer.failed].name
        yield {"name": failed, "outcome": "Unschedulable", "message": answer.message}
        return
    for pod_, placement in zip(pods, answer.placements, strict=True):
        yield {"name": pod_.name, "outcome": "Placed", "nodeName": placement.node_name}


def excerpt(got: Document, told: Document) -> Document:
    """What is told of a result: some fields, of the explanation some, of the scores some."""
    return {
        name: excerpt(got[name], each) if name in {"explanation", "scores"} else got.get(name)
        for name, each in told.items()
    }


def rows() -> list[tuple[str, str, str]]:
    """Return the rows of the table of cases in which zone3 is infeasible."""
    return re.findall(r"^\| (\d/\d/\d) \| ([^|]+) \| ([^|]+) \|$", PAGE.read_text(), re.MULTILINE)


@pytest.mark.parametrize(("counts", "hard", "soft"), rows(), ids=lambda cell: cell)
def test_the_table_of_infeasible_zones_tells_the_truth(counts, hard, soft):
    scene = Scene(node("zone1").label(zone="1"), node("zone2").label(zone="2"))
    scene.put(node("zone3").label(zone="3").taint("broken"))
    for zone, count in enumerate(counts.split("/"), start=1):
        placed = pod("foo").label(app="foo").on(f"zone{zone}")
        scene.put(*(placed.named(f"foo-{zone}-{number}") for number in range(int(count))))
    foo = pod("new").label(app="foo")
    assert (", ".join(scene.feasible(foo.spread(1, "zone"))) or "none") == hard
    preferring = foo.spread(1, "zone", soft=True)
    assert ", ".join(scene.favourites(preferring, "PodTopologySpread")) == soft


def test_every_section_has_an_example():
    """And a title of its own; the table has its five rows."""
    blocks = list(BLOCK.finditer(PAGE.read_text(encoding="utf-8")))
    titles = [block["title"] for block in blocks if block["title"]]
    assert not [one for one, two in pairwise(blocks) if one["title"] and two["title"]]
    assert len(titles) == len(set(titles)) >= 20
    assert len(rows()) == 5
