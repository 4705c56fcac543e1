"""Many nodes and pods that change in bulk, in an engine and as plain objects.

What an engine keeps to be quick has thresholds: it repairs single entries, or many at once, or
makes all anew, by how much has changed since somebody asked. On a few nodes all of that is one
case, so these worlds have hundreds and thousands, nearly full, and change by a few, by dozens and
by hundreds at a time, between questions that are asked often enough to be worth a tree.
"""

import random
from collections.abc import Iterable, Iterator, Sequence
from itertools import count

from msgspec.structs import replace

from service.engine import Placement, digest, place, summarize
from service.model.core.primitives import Taint, TaintEffect
from service.model.nodes.node import Namespace, Node
from service.model.pods.pod import Pod
from tests.agreement import Objects, answers_anew, disagreements
from tests.builders import PodBuilder, matching, namespace, pod, requirement
from tests.engine import objects

HOST = "kubernetes.io/hostname"
ZONES = 5
RACKS = 45
"""More than there are few domains, with several nodes each."""
NAMESPACES = ("default", "shop", "lab")
TEAMS = ("red", "blue")
CPUS = ("2", "2", "2", "1500m", "4")
DISKS = ("ssd", "hdd", "hdd")
RARE = 8
"""So many nodes have a disk that some pods need: of these, all in a zone may be full."""
FULL = 0.85
FAVOURITES = 10
"""Kinds of pods that are asked for all the time in one world."""
OFTEN = 10
"""Questions of one kind in a row, after which the engine takes its quicker ways."""


CONFIGS = (
    {},
    {},
    {"hardPodAffinityWeight": 7, "symmetricPreferredAntiAffinity": False},
    {"preferredTermWeight": "PerTerm"},
)


def _kinds() -> Iterator[PodBuilder]:
    """Pods to place, by what their rules make the engine keep."""

    def kind(app: str, cpu: str = "1") -> PodBuilder:
        built = pod(app, NAMESPACES[len(app) % 2]).label(app=app)
        return built.request(cpu=cpu, memory="512Mi") if cpu else built

    yield kind("plain")
    yield kind("big", "2")
    yield kind("empty", "")
    yield kind("ssd").node_selector(disk="ssd")
    yield kind("chooser").prefer_node(5, requirement("disk", "In", "ssd"))
    yield kind("tolerant").tolerate("dedicated")
    yield kind("port").host_port(8080)
    for key in (HOST, "rack", "zone"):
        domain = key.rpartition("/")[-1]
        apart, near, far = (f"{relation}-{domain}" for relation in ("apart", "near", "far"))
        yield kind(apart).require_anti_affinity(key, matching(app=apart))
        yield kind(near).prefer_affinity(10, key, matching(app=near))
        yield kind(far).prefer_anti_affinity(10, key, matching(app=far))
        yield kind(f"even-{domain}").spread(2, key)
        yield kind(f"evenly-{domain}").spread(1, key, soft=True)
    yield (
        kind("rare-near")
        .node_selector(disk="nvme")
        .prefer_affinity(5, "zone", matching(app="rare-near"))
    )
    yield kind("rare-even").node_selector(disk="nvme").spread(1, "zone", soft=True)
    yield kind("together").require_affinity("zone", matching(app="together"))
    yield kind("rackmates").require_affinity("rack", matching(app="rackmates"))
    yield kind("shy").require_anti_affinity(
        HOST, matching(app="plain"), namespaceSelector=matching(team="red")
    )
    yield kind("hermit").require_anti_affinity(
        "rack", matching(app="hermit"), namespaceSelector=matching(team="blue")
    )
    yield kind("fan").prefer_affinity(3, HOST, matching(app="plain"))
    yield kind("herd", "").prefer_affinity(100, HOST, matching(app="herd"))
    yield (
        kind("mixed", "500m")
        .prefer_anti_affinity(4, HOST, matching(app="mixed"))
        .prefer_affinity(2, "zone", matching(app="near-zone"))
        .spread(1, "zone", soft=True)
    )
    yield (
        kind("strict", "500m")
        .spread(1, "zone")
        .require_anti_affinity(HOST, matching(app="strict"))
        .prefer_affinity(6, "zone", matching(app="together"))
    )
    for number in range(9):  # more sets of terms than are kept for one set of needs
        app = f"tenant-{number}"
        yield kind(app).prefer_anti_affinity(number + 1, HOST, matching(app=app))


KINDS: tuple[Pod, ...] = tuple(objects.pod(each, incoming=True) for each in _kinds())

APPS = tuple(each.labels["app"] for each in KINDS)


class Multitude:
    """One world: `step` changes much of it, `check` compares."""

    def __init__(self, seed: object, nodes: int, favourites: Sequence[str] = ()) -> None:
        self._dice = random.Random(f"multitude {seed}")
        self.bulks = (2, 20, 34, nodes // 9, nodes // 4)
        """Nodes that change at once: one by one, in one go, or so many that all are looked at."""
        self._names = count()
        self._rare = RARE / nodes
        self.objects = Objects(objects.config(self._dice.choice(CONFIGS)))
        chosen = favourites or self._dice.sample(APPS, FAVOURITES)
        self.favourites = [each for each in KINDS if each.labels["app"] in chosen]
        for name in NAMESPACES[:2]:
            self.objects.namespaces[name] = self._namespace(name)
        for number in range(nodes):
            each = self._node(f"n{number}")
            self.objects.nodes[each.name] = each
        self._fill()
        self.engine = self.objects.load()
        self._fresh = self.objects.load()

    # What there is

    def _namespace(self, name: str) -> Namespace:
        team = self._dice.choice((*TEAMS, None))
        built = namespace(name)
        return objects.namespace(built.label(team=team) if team else built)

    def _node(self, name: str) -> Node:
        dice = self._dice
        labels = {HOST: name, "zone": f"z{dice.randrange(ZONES)}"}
        labels["rack"] = f"r{dice.randrange(RACKS)}"
        labels["disk"] = "nvme" if dice.random() < self._rare else dice.choice(DISKS)
        if dice.random() < 0.05:
            del labels[dice.choice(tuple(labels))]
        effects: tuple[TaintEffect, ...] = ("NoSchedule", "PreferNoSchedule")
        taint = Taint(key="dedicated", value="db", effect=dice.choice(effects))
        return Node(
            name=name,
            labels=labels,
            allocatable={"cpu": dice.choice(CPUS), "memory": "16Gi", "pods": "20"},
            taints=(taint,) if dice.random() < 0.05 else (),
            unschedulable=dice.random() < 0.03,
        )

    def _fill(self) -> None:
        """Pods wherever they fell, most of the kinds that are asked for; some are over."""
        for name in self.objects.nodes:
            for _ in range(2):
                if self._dice.random() < FULL:
                    each = self._pod(name)
                    self.objects.pods[each.namespace, each.name] = each

    def _pod(self, node_name: str | None) -> Pod:
        dice = self._dice
        kind = dice.choice(self.favourites if dice.random() < 0.5 else KINDS)
        each = replace(kind, name=f"p{next(self._names)}", node_name=node_name)
        return replace(each, finished=True) if dice.random() < 0.02 else each

    # Changes

    def put(self, each: Pod | Node | Namespace) -> None:
        match each:
            case Pod():
                self.objects.pods[each.namespace, each.name] = each
                self.engine.put_pod(each)
                self._fresh.put_pod(each)
            case Node():
                self.objects.nodes[each.name] = each
                self.engine.put_node(each)
            case Namespace():
                self.objects.namespaces[each.name] = each
                self.engine.put_namespace(each)

    def delete_pods(self, pods: Iterable[Pod]) -> None:
        for each in pods:
            del self.objects.pods[each.namespace, each.name]
            self.engine.delete_pod(each.namespace, each.name)
            self._fresh.delete_pod(each.namespace, each.name)

    def _some_nodes(self, number: int | None = None) -> list[Node]:
        nodes = list(self.objects.nodes.values())
        number = self._dice.choice(self.bulks) if number is None else number
        return self._dice.sample(nodes, min(len(nodes), number))

    def _some_pods(self, number: int | None = None) -> list[Pod]:
        """All pods of some nodes, or one of each."""
        names = {each.name for each in self._some_nodes(number)}
        pods = [each for each in self.objects.pods.values() if each.node_name in names]
        if self._dice.random() < 0.3:
            return pods
        return list({each.node_name: each for each in pods}.values())

    def delete(self, number: int | None = None) -> None:
        """Pods go."""
        self.delete_pods(self._some_pods(number))

    def delete_kind(self) -> None:
        """All pods but a few of one kind go."""
        kind = self._dice.choice(self.favourites)
        owned = [each for each in self.objects.pods.values() if each.spec is kind.spec]
        self.delete_pods(owned[self._dice.choice((0, 0, 3, 9)) :])

    def bind(self, number: int | None = None) -> None:
        """Pods come to nodes that nobody asked about."""
        for each in self._some_nodes(number):
            self.put(self._pod(each.name))

    def empty_rare(self, others: int) -> None:
        """All pods go from the nodes with the rare disk, and from some others."""
        rare = {
            each.name for each in self.objects.nodes.values() if each.labels.get("disk") == "nvme"
        }
        names = rare.union(each.name for each in self._some_nodes(others))
        self.delete_pods([p for p in self.objects.pods.values() if p.node_name in names])

    def dwindle(self, app: str) -> None:
        """Pods of one kind become few, and then none, one after the other."""
        (kind,) = (each for each in KINDS if each.labels["app"] == app)
        owned = [each for each in self.objects.pods.values() if each.spec is kind.spec]
        self.delete_pods(owned[9:])
        for number, each in enumerate(owned[:9]):
            probes = [replace(kind, name=f"asked-{number}-{at}") for at in range(OFTEN)]
            self._compare(probes)
            self.delete_pods([each])
        self._compare([kind])

    def alter(self) -> None:
        """Pods move, are over, are told to go, or get another label."""
        for each in self._some_pods():
            other = self._dice.choice(list(self.objects.pods.values()))
            changes: tuple[dict[str, object], ...] = (
                {"node_name": other.node_name},
                {"node_name": other.node_name},
                {"finished": True},
                {"terminating": True},
                {"labels": other.labels},
            )
            self.put(replace(each, **self._dice.choice(changes)))

    def change_nodes(self) -> None:
        """Nodes are relabelled, resized, tainted, cordoned, or the opposite."""
        for each in self._some_nodes():
            self.put(self._node(each.name))

    def drain(self) -> None:
        """Nodes are emptied and let nobody in."""
        nodes = self._some_nodes()
        names = {each.name for each in nodes}
        for each in nodes:
            self.put(replace(each, unschedulable=True))
        self.delete_pods([p for p in self.objects.pods.values() if p.node_name in names])

    def replace_nodes(self) -> None:
        """Nodes go, with pods on them that are still known, and others come."""
        gone = self._some_nodes()[: len(self.objects.nodes) // 4]
        for each in gone:
            del self.objects.nodes[each.name]
            self.engine.delete_node(each.name)
        for each in gone[::2]:
            self.put(self._node(each.name if self._dice.random() < 0.5 else f"new-{each.name}"))

    def relabel_namespaces(self) -> None:
        """Namespaces get other labels, are stored for the first time, or not any more."""
        for name in NAMESPACES:
            if name in self.objects.namespaces and self._dice.random() < 0.2:
                del self.objects.namespaces[name]
                self.engine.delete_namespace(name)
            elif self._dice.random() < 0.7:
                self.put(self._namespace(name))

    def place(self) -> None:
        """Pods of one kind come one after the other, and now and then one of them goes."""
        kind, placed = self._dice.choice(self.favourites), []
        for _ in range(self._dice.choice((OFTEN, 3 * OFTEN))):
            each = replace(kind, name=f"p{next(self._names)}")
            self._compare([each])
            chosen = place(self.engine, each)
            if isinstance(chosen, Placement):
                placed.append(replace(each, node_name=chosen.node_name))
                self.put(placed[-1])
            if placed and self._dice.random() < 0.15:
                self.delete_pods([placed.pop(self._dice.randrange(len(placed)))])

    def try_out(self) -> None:
        """A batch is decided, its ground is lost, and all of it is undone."""
        mark, before = self.engine.mark(), self.objects.copy()
        for _ in range(self._dice.randrange(1, 4)):
            self._change()
        self.ask()
        self.engine.undo(mark)
        self.objects = before

    def _change(self) -> None:
        self._dice.choice((self.delete, self.bind, self.alter, self.place, self.delete_kind))()

    def step(self) -> None:
        """Questions, so that there is something kept; a change in bulk; questions."""
        self.ask()
        changes = (self._change, self._change, self._change, self.try_out, self.change_nodes)
        rare = (self.drain, self.replace_nodes, self.relabel_namespaces)
        self._dice.choice((*changes, self._dice.choice(rare)))()
        if self._dice.random() < 0.3:
            self.engine.commit_until(self.engine.mark())

    # Questions

    def ask(self) -> None:
        """Every favourite, and then so often that the quicker ways are taken the next time."""
        self._fresh = self.objects.load()
        for each in self.favourites:
            self._compare([replace(each, name="asked-first")])
            for number in range(OFTEN):
                place(self.engine, replace(each, name=f"asked-{number}"))
            self._compare([replace(each, name="asked-again")])

    def check(self) -> None:
        """All kinds, also for a node of their own."""
        self._fresh = self.objects.load()
        probes = [replace(each, name=f"probe-{at}") for at, each in enumerate(KINDS)]
        self._compare([*probes, *self._daemons()])
        for each in probes[:: self._dice.randrange(2, 9)]:
            assert summarize(self.engine, each) == summarize(self._fresh, each)
        assert digest(self.engine) == digest(self._fresh)

    def _daemons(self) -> Iterator[Pod]:
        for name in self._dice.sample(list(self.objects.nodes), 3):
            kind = self._dice.choice(KINDS)
            yield replace(kind, name="bound", required_node_name=name)
            yield objects.pod(daemon(name), incoming=True)

    def _compare(self, pods: Iterable[Pod]) -> None:
        assert disagreements(self.engine, answers_anew(self._fresh, pods)) == []


def daemon(node_name: str) -> PodBuilder:
    """A pod of a DaemonSet: it names its node, as the controller has it."""
    built = pod(f"daemon-{node_name}", "lab").request(cpu="100m").tolerate("dedicated")
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node_name]}]}
    built["spec"]["affinity"] = {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}
        }
    }
    return built
