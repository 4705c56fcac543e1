"""Devices by brute force: every way to give claims what they ask for, read of plain manifests.

Nothing is pruned and nothing is remembered. Selectors are told by functions and not by expressions, so
that no evaluation of expressions is shared with what is tested.
"""

from collections.abc import Callable, Iterator
from typing import Any

Manifest = dict[str, Any]
ID = tuple[str, str, str]
SELECTORS: dict[str, Callable[[Manifest], bool]] = {
    'device.attributes["gpu.example.com"].model == "a"': lambda d: _of(d, "model") == "a",
    'device.attributes["gpu.example.com"].model != "a"': lambda d: _of(d, "model") != "a",
    'device.attributes["gpu.example.com"].numa < 1': lambda d: _of(d, "numa") < 1,
    'device.capacity["gpu.example.com"].memory.compareTo(quantity("20Gi")) >= 0': lambda d: (
        int(d["capacity"]["memory"]["value"].removesuffix("Gi")) >= 20
    ),
    'device.driver == "gpu.example.com"': lambda _: True,
    'device.driver == "nic.example.com"': lambda _: False,
}
"""Expressions with what they mean; all devices are of one driver, and have all attributes."""


def _of(device: Manifest, name: str) -> Any:
    (value,) = device["attributes"][name].values()
    return value


class Devices:
    """The devices of a cluster, and who has which."""

    def __init__(
        self, nodes: list[Manifest], slices: list[Manifest], classes: list[Manifest], used: set[ID]
    ) -> None:
        self.nodes = {each["metadata"]["name"]: each for each in nodes}
        self.slices = slices
        self.classes = {each["metadata"]["name"]: each["spec"] for each in classes}
        self.used = used

    def pools(self, node: str) -> list[tuple[str, list[Manifest] | None]] | None:
        """What a node reaches of each pool; None in place of the devices: they can't be used."""
        answer: list[tuple[str, list[Manifest] | None]] = []
        names = sorted({each["spec"]["pool"]["name"] for each in self.slices})
        for name in names:
            all_of = [each for each in self.slices if each["spec"]["pool"]["name"] == name]
            reached = [each for each in all_of if self._reaches(each["spec"], node)]
            if not reached:
                continue
            newest = max(each["spec"]["pool"]["generation"] for each in reached)
            count = next(
                each["spec"]["pool"]["resourceSliceCount"]
                for each in sorted(reached, key=lambda each: each["metadata"]["name"])
                if each["spec"]["pool"]["generation"] == newest
            )
            mine = [each for each in reached if each["spec"]["pool"]["generation"] == newest]
            there = [each for each in all_of if each["spec"]["pool"]["generation"] == newest]
            newer = any(each["spec"]["pool"]["generation"] > newest for each in all_of)
            if len(mine) != count and newer:
                continue
            mine.sort(key=lambda each: str(each["metadata"]["name"]))
            devices = [device for each in mine for device in each["spec"]["devices"]]
            unique = len({each["name"] for each in devices}) == len(devices)
            usable = unique and count in (len(mine), len(there))
            answer.append((name, devices if usable else None))
        return answer

    def _reaches(self, spec: Manifest, node: str) -> bool:
        if "nodeName" in spec:
            return bool(spec["nodeName"] == node)
        if spec.get("allNodes"):
            return True
        (term,) = spec["nodeSelector"]["nodeSelectorTerms"]
        labels = self.nodes[node]["metadata"].get("labels", {})
        return all(labels.get(e["key"]) in e["values"] for e in term["matchExpressions"])

    def ways(self, node: str, claims: list[Manifest]) -> Iterator[list[list[tuple[str, ID]]]]:
        """Every way to give claims (their `spec.devices`) what they ask for on a node, the one that
        Kubernetes takes first."""
        pools = self.pools(node)
        offered = [
            ((name, each["name"]), each) for name, devices in pools for each in devices or ()
        ]
        broken = any(devices is None for _, devices in pools)
        asks_all = any(
            alternative.get("allocationMode") == "All"
            for claim in claims
            for request in claim["requests"]
            for _, alternative in alternatives(request)
        )
        if broken and asks_all:
            return
        yield from self._claims(offered, claims, 0, {}, [])

    def _claims(self, offered, claims, index, taken, before):
        if index == len(claims):
            yield before
            return
        for given in self._requests(offered, claims[index], index, 0, taken, []):
            after = dict(taken)
            for _, key, _ in given:
                after[key] = [*after.get(key, ()), index]
            if self._holds(claims[index], given):
                told = [(name, ("gpu.example.com", *key)) for name, key, _ in given]
                yield from self._claims(offered, claims, index + 1, after, [*before, told])

    def _requests(self, offered, claim, number, index, taken, before):
        if len(before) > 32:
            return
        if index == len(claim["requests"]):
            yield before
            return
        for name, asked in alternatives(claim["requests"][index]):
            for chosen in self._chosen(offered, asked, number, {**taken, **_own(before, number)}):
                own = [(name, key, device) for key, device in chosen]
                yield from self._requests(offered, claim, number, index + 1, taken, [*before, *own])

    def _chosen(self, offered, asked, number, taken):
        matching = [(key, each) for key, each in offered if self._matches(asked, each)]
        free = [
            (key, each)
            for key, each in matching
            if self._is_free(key, asked.get("adminAccess", False), number, taken)
        ]
        if asked.get("allocationMode") == "All":
            if matching and len(free) == len(matching):
                yield matching
            return
        yield from _subsets(free, asked.get("count", 1))

    def _matches(self, asked: Manifest, device: Manifest) -> bool:
        selectors = [*self.classes[asked["deviceClassName"]]["selectors"], *asked["selectors"]]
        return all(SELECTORS[each["cel"]["expression"]](device) for each in selectors)

    def _is_free(self, key, admin, number, taken) -> bool:
        if admin:
            return number not in taken.get(key, ())
        return key not in taken and ("gpu.example.com", *key) not in self.used

    def _holds(self, claim: Manifest, given) -> bool:
        for constraint in claim.get("constraints", ()):
            names = constraint.get("requests") or ()
            concerned = [
                device
                for name, _, device in given
                if not names or name in names or name.partition("/")[0] in names
            ]
            attribute = constraint["matchAttribute"].partition("/")[2]
            if len({_of(device, attribute) for device in concerned}) > 1:
                return False
        return True


def preference(claims: list[Manifest], way: list[list[tuple[str, ID]]]) -> int:
    """What a way is worth to Kubernetes: 8 for each first alternative, 7 for each second one."""
    worth = 0
    for claim, given in zip(claims, way, strict=True):
        for request in claim["requests"]:
            for index, each in enumerate(request.get("firstAvailable", ())):
                full_name = f"{request['name']}/{each['name']}"
                worth += 8 - index if full_name in {name for name, _ in given} else 0
    return worth


def alternatives(request: Manifest) -> list[tuple[str, Manifest]]:
    """Full names and contents of the requests of which one has to be met."""
    if "exactly" in request:
        return [(request["name"], request["exactly"])]
    return [(f"{request['name']}/{each['name']}", each) for each in request["firstAvailable"]]


def _own(before, number):
    return {key: [number] for _, key, _ in before}


def _subsets(items, count):
    if count == 0:
        yield []
        return
    for index, item in enumerate(items):
        for rest in _subsets(items[index + 1 :], count - 1):
            yield [item, *rest]
