"""The oracle's answers beside the kept ones, which prove that it is kube-scheduler's code."""

import gzip
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tools.conformance.cases import Difference, differences, is_trace
from tools.oracle.process import Answer, Case, Oracle

OLDEST = "1.35"
"""The version of vectors whose file name has none."""
CHOSEN = "chosen"
"""The field of a trace's step that the oracle does not answer: the first of the best nodes."""


@dataclass
class Comparison:
    """What came of comparing the answers to the vectors of one file."""

    asked: int = 0
    equal: int = 0
    by_field: Counter[str] = field(default_factory=Counter)
    examples: list[str] = field(default_factory=list)

    def add(self, name: str, found: list[Difference]) -> None:
        """Count one answer."""
        self.asked += 1
        self.equal += not found
        self.by_field.update({" ".join(filter(None, (one.field, one.plugin))) for one in found})
        self.examples += [f"{name}: {one.describe()}" for one in found[:3]]


def version_of(path: Path) -> str:
    """Return the version whose answers a file of vectors has, by its name."""
    _, _, version = path.name.partition(".jsonl")[0].partition("_1.")
    return f"1.{version}" if version else OLDEST


def read_vectors(path: Path) -> Iterator[Case]:
    """Yield the vectors of a file of JSON Lines, which may be gzipped."""
    text = path.read_bytes()
    unpacked = gzip.decompress(text) if path.suffix == ".gz" else text
    yield from map(json.loads, unpacked.splitlines())


def cases_of(vectors: Iterable[Case]) -> Iterator[Case]:
    """Yield the cases, and for each step of a trace that asks the case that it stands for."""
    for vector in vectors:
        if is_trace(vector):
            yield from _steps_as_cases(vector)
        else:
            yield vector


def _steps_as_cases(trace: Case) -> Iterator[Case]:
    """Yield what the steps of a trace ask, each with the state that the steps before it left."""
    nodes = {node["metadata"]["name"]: node for node in trace["nodes"]}
    namespaces = {item["metadata"]["name"]: item for item in trace["namespaces"]}
    pods: dict[tuple[str, str], Mapping[str, Any]] = {}
    for number, step in enumerate(trace["steps"]):
        match step["op"]:
            case "schedule":
                yield {
                    "name": f"{trace['name']} step {number}",
                    "config": trace["config"],
                    "namespaces": list(namespaces.values()),
                    "nodes": list(nodes.values()),
                    "pods": list(pods.values()),
                    "pod": step["pod"],
                    "expect": {
                        name: step["expect"][name] for name in step["expect"].keys() - {CHOSEN}
                    },
                }
                _bind(step["pod"], step["expect"][CHOSEN], pods)
            case "deletePod":
                del pods[step["namespace"], step["name"]]
            case "addNode" | "updateNode":
                nodes[step["node"]["metadata"]["name"]] = step["node"]
            case "deleteNode":
                del nodes[step["name"]]
            case "updateNamespace":
                namespaces[step["namespace"]["metadata"]["name"]] = step["namespace"]
            case other:
                raise ValueError(f"{trace['name']}: unknown step {other}")


def _bind(
    pod: Mapping[str, Any], node: str | None, pods: dict[tuple[str, str], Mapping[str, Any]]
) -> None:
    if node is not None:
        key = pod["metadata"]["namespace"], pod["metadata"]["name"]
        pods[key] = {**pod, "spec": {**pod["spec"], "nodeName": node}}


def compare(vectors: Iterable[Case], oracle: Oracle) -> Comparison:
    """Compare the oracle's answers with what cases and traces expect of kube-scheduler's code."""
    cases = list(cases_of(vectors))
    comparison = Comparison()
    for case, answer in zip(cases, oracle.answers(cases), strict=True):
        comparison.add(case["name"], answer_differences(case, answer))
    return comparison


def answer_differences(case: Case, answer: Answer) -> list[Difference]:
    """Return how an answer differs from what a case expects, in the fields that it names."""
    if "error" in answer:
        return [Difference(field="error", expected=None, got=answer["error"])]
    expected = case["expect"]
    named = {name: value for name, value in answer["expect"].items() if name in expected}
    return differences(expected, named)
