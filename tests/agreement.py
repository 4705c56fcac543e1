"""Checks that an engine that followed many changes decides like one loaded from the same objects.

All that an engine keeps between two questions (counters, ranks, trees, views) is there for speed
alone: whatever changes it followed, its answers must be those of an engine that has seen only the
present objects. This check needs no second implementation of the rules, so it can be made with
thousands of nodes, where counters, repairs and trees take other paths in the code than with a few.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Self

from service.engine import Cluster, Placement, Refusal, place
from service.model.cluster.cluster_config import ClusterConfig
from service.model.nodes.node import Namespace, Node
from service.model.pods.pod import Pod

Answer = Placement | Refusal


@dataclass
class Objects:
    """The objects of a cluster, by name."""

    config: ClusterConfig = field(default_factory=ClusterConfig)
    namespaces: dict[str, Namespace] = field(default_factory=dict)
    nodes: dict[str, Node] = field(default_factory=dict)
    pods: dict[tuple[str, str], Pod] = field(default_factory=dict)

    def copy(self) -> Self:
        """A copy with the same objects, in containers of its own."""
        return type(self)(self.config, {**self.namespaces}, {**self.nodes}, {**self.pods})

    def load(self) -> Cluster:
        """Load a new engine from these objects alone."""
        engine = Cluster(self.config)
        for namespace in self.namespaces.values():
            engine.put_namespace(namespace)
        for node in self.nodes.values():
            engine.put_node(node)
        for pod in self.pods.values():
            engine.put_pod(pod)
        return engine


def answers_anew(fresh: Cluster, pods: Iterable[Pod]) -> list[tuple[Pod, Answer]]:
    """What an engine says of each pod if it looks at all nodes for each answer."""
    answers = []
    for pod in pods:
        fresh.forget_rows()
        answers.append((pod, place(fresh, pod)))
    return answers


def disagreements(engine: Cluster, anew: Iterable[tuple[Pod, Answer]]) -> list[str]:
    """The pods for which an engine gives another node, another score or other reasons.

    It uses the counters that it keeps, and is compared with the answers of one without them.
    """
    told = []
    for pod, expected in anew:
        mine = place(engine, pod)
        if mine != expected:
            told.append(f"{pod.namespace}/{pod.name}: {mine}, and loaded anew {expected}")
    return told
