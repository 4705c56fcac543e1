"""The named workloads: nodes, placed pods, and pods to place. Their shapes are those of upstream.

`workloads.json` has a row for each workload and size, `templates/` has the objects with
placeholders, and `yardstick.json` has kube-scheduler v1.35.4's rates on a machine of two cores.
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

    def kept(self, count: int | None = None) -> Iterator[Manifest]:
        """Yield the objects of other kinds: for each node, and for each of the measured pods."""
        for name in self.row.get("perNode", ()):
            for index in range(sum(group["count"] for group in self.row["nodes"])):
                yield _filled(name, {"{i}": str(index)})
        for name in self.row.get("perPod", ()):
            groups = [{**each, "template": name} for each in self._measured_groups(count)]
            yield from self._pods(groups, self._first_measured())

    def before(self, count: int | None = None) -> list[Manifest]:
        """Return all that is there before the measured pods come."""
        return [*self.namespaces(), *self.nodes(), *self.kept(count), *self.placed()]

    def placed(self) -> Iterator[Manifest]:
        """Yield pods that are bound already, scattered over the nodes by a fixed stride."""
        names = [node["metadata"]["name"] for node in self.nodes()]
        for index, pod in enumerate(self._pods(self.row["init"], start=1)):
            pod["spec"]["nodeName"] = names[index * INIT_STRIDE % len(names)]
            yield pod

    def measured(self, count: int | None = None) -> Iterator[Manifest]:
        """Yield the pods to place, in order; `count` replaces the workload's own number."""
        start = self._first_measured()
        pods = self._pods(self._measured_groups(count), start)
        others = self.row.get("interleave")
        if not others:
            yield from pods
            return
        between = self._pods([{**others, "count": 10**9}], start + 10**6)
        for index, pod in enumerate(pods, start=1):
            yield pod
            if index % others["every"] == 0:
                yield next(between)

    def _first_measured(self) -> int:
        return 1 + sum(group["count"] for group in self.row["init"])

    def _measured_groups(self, count: int | None) -> list[Manifest]:
        return [{**each, "count": count or each["count"]} for each in self.row["measured"]]

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
    """Return all workloads of a size: 500 or 5,000 nodes."""
    rows = json.loads((HERE / "workloads.json").read_text())["workloads"]
    return [Workload(row["workload"], size, row) for row in rows if row["size"] == size]


def find(name: str, size: int) -> Workload:
    """Return a workload by its name.

    Raises:
        ValueError: there is no such workload; the message names all.
    """
    known = {each.name: each for each in workloads(size)}
    if name not in known:
        raise ValueError(f"no workload {name!r}; there are {', '.join(known)}")
    return known[name]


def yardstick(name: str, size: int, sampling: str = "default") -> float | None:
    """Return kube-scheduler's pods per second; None if they were not measured."""
    for row in json.loads((HERE / "yardstick.json").read_text()):
        if (row["workload"], row["size"], row["sampling"]) == (name, size, sampling):
            return row["pods_per_second"]
    return None
