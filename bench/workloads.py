"""The named workloads: nodes, pods that are there, pods to place. Shapes are upstream's.

`workloads.json` has a row per workload and size, `templates/` the objects with placeholders,
`yardstick.json` what kube-scheduler v1.35.4 does on them on a machine of two cores.
"""

import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
INIT_STRIDE = 7919
Manifest = dict[str, Any]


@dataclass(frozen=True)
class Workload:
    """One row of `workloads.json`."""

    name: str
    size: int
    row: Manifest

    def namespaces(self) -> Iterator[Manifest]:
        for each in self.row["namespaces"]:
            labels = {**each["labels"], "kubernetes.io/metadata.name": each["name"]}
            metadata = {"name": each["name"], "labels": labels}
            yield {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}

    def nodes(self) -> Iterator[Manifest]:
        for group in self.row["nodes"]:
            zones = group.get("zones") or [""]
            for index in range(group["count"]):
                values = {"{i}": str(index), "{zone}": zones[index % len(zones)]}
                yield _filled(group["template"], values)

    def placed(self) -> Iterator[Manifest]:
        """Pods that are bound already, scattered over the nodes by a fixed stride."""
        names = [node["metadata"]["name"] for node in self.nodes()]
        for index, pod in enumerate(self._pods(self.row["init"], start=1)):
            pod["spec"]["nodeName"] = names[index * INIT_STRIDE % len(names)]
            yield pod

    def measured(self, count: int | None = None) -> Iterator[Manifest]:
        """Pods to place, in order; `count` instead of the workload's own number."""
        start = 1 + sum(group["count"] for group in self.row["init"])
        groups = self.row["measured"]
        pods = self._pods([{**group, "count": count or group["count"]} for group in groups], start)
        others = self.row.get("interleave")
        if not others:
            yield from pods
            return
        between = self._pods([{**others, "count": 10**9}], start + 10**6)
        for index, pod in enumerate(pods, start=1):
            yield pod
            if index % others["every"] == 0:
                yield next(between)

    def _pods(self, groups: list[Manifest], start: int) -> Iterator[Manifest]:
        numbers = itertools.count(start)
        plain = self.size
        for group in groups:
            namespaces = group["namespaces"]
            for index in range(group["count"]):
                values = {
                    "{i}": str(next(numbers)),
                    "{ns}": namespaces[index % len(namespaces)],
                    "{node}": f"node-{index % plain}",
                }
                yield _filled(group["template"], values)


@cache
def _template(name: str) -> str:
    return json.dumps(json.loads((HERE / "templates" / f"{name}.json").read_text()))


def _filled(template: str, values: dict[str, str]) -> Manifest:
    text = _template(template)
    for placeholder, value in values.items():
        text = text.replace(placeholder, value)
    return json.loads(text)


def workloads(size: int) -> list[Workload]:
    """All workloads of a size: 500 or 5,000 nodes."""
    rows = json.loads((HERE / "workloads.json").read_text())["workloads"]
    return [Workload(row["workload"], size, row) for row in rows if row["size"] == size]


def find(name: str, size: int) -> Workload:
    """One workload by name; ValueError names those there are."""
    known = {each.name: each for each in workloads(size)}
    if name not in known:
        raise ValueError(f"no workload {name!r}; there are {', '.join(known)}")
    return known[name]


def yardstick(name: str, size: int, sampling: str = "default") -> float | None:
    """kube-scheduler's pods per second, None where it was not measured."""
    for row in json.loads((HERE / "yardstick.json").read_text()):
        if (row["workload"], row["size"], row["sampling"]) == (name, size, sampling):
            return row["pods_per_second"]
    return None
