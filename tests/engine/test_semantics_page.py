"""`docs/semantics.md` asks questions and gives answers: each is asked, each answer compared."""

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import msgspec
import pytest
import yaml

from service.engine import Placement, explain, place
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
    """As `POST /v1/simulations`: one pod after the other, each seeing those before."""
    cluster = objects.cluster(
        question.get("config", {}),
        question.get("namespaces", []),
        question["nodes"],
        question.get("pods", []),
    )
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
            yield result | {"outcome": "Unschedulable", "message": placement.message}


def excerpt(got: Document, told: Document) -> Document:
    """What is told of a result: some fields, of the explanation some, of the scores some."""
    return {
        name: excerpt(got[name], each) if name in {"explanation", "scores"} else got.get(name)
        for name, each in told.items()
    }


def rows() -> list[tuple[str, str, str]]:
    """Of the table of cases in which zone3 is infeasible."""
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
