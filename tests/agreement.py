"""Whether an engine that followed many changes decides as one that was loaded from the same objects.

All that an engine keeps between two questions (counters, ranks, trees, views) is there for speed
alone: whatever it went through, its answers are those of an engine that has seen nothing but the
objects as they are now. That needs no second implementation of the rules, so it can be asked of
thousands of nodes, where counters, repairs and trees take other ways than on a few.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Self

from service.engine import Cluster, place
from service.model.config import ClusterConfig
from service.model.objects import Namespace, Node, Pod


@dataclass
class Objects:
    """What a cluster consists of, by name."""

    config: ClusterConfig = field(default_factory=ClusterConfig)
    namespaces: dict[str, Namespace] = field(default_factory=dict)
    nodes: dict[str, Node] = field(default_factory=dict)
    pods: dict[tuple[str, str], Pod] = field(default_factory=dict)

    def copy(self) -> Self:
        """The same objects, in containers of their own."""
        return type(self)(self.config, {**self.namespaces}, {**self.nodes}, {**self.pods})

    def load(self) -> Cluster:
        """An engine that has seen nothing else."""
        engine = Cluster(self.config)
        for namespace in self.namespaces.values():
            engine.put_namespace(namespace)
        for node in self.nodes.values():
            engine.put_node(node)
        for pod in self.pods.values():
            engine.put_pod(pod)
        return engine


def disagreements(engine: Cluster, fresh: Cluster, pods: Iterable[Pod]) -> list[str]:
    """The pods that two engines decide about differently: the node, its score, or the reasons.

    The second engine looks at all nodes for each answer; the first uses what it keeps.
    """
    told = []
    for pod in pods:
        fresh.forget_rows()
        mine, expected = place(engine, pod), place(fresh, pod)
        if mine != expected:
            told.append(f"{pod.namespace}/{pod.name}: {mine}, and loaded anew {expected}")
    return told
