"""A small cluster to tell a story in: objects come, questions are asked, pods are placed."""

from service.engine import Cluster, Explanation, Placement, explain, place
from service.engine.placing.refusal import Refusal
from tests.builders import NamespaceBuilder, NodeBuilder, ObjectBuilder, PodBuilder, node
from tests.engine import objects


class Scene:
    """The engine with a few objects in it."""

    def __init__(
        self, *things: NamespaceBuilder | NodeBuilder | PodBuilder | ObjectBuilder, **settings
    ) -> None:
        self.engine = Cluster(objects.config(settings))
        self.put(*things)

    def put(self, *things: NamespaceBuilder | NodeBuilder | PodBuilder | ObjectBuilder) -> None:
        """Store objects; pods that are `on` a node are placed there, as observed."""
        for thing in things:
            match thing:
                case NamespaceBuilder():
                    self.engine.put_namespace(objects.namespace(thing))
                case NodeBuilder():
                    self.engine.put_node(objects.node(thing))
                case PodBuilder():
                    self.engine.put_pod(objects.pod(thing))
                case ObjectBuilder():
                    self.engine.put_object(objects.kept(thing))

    def explain(self, pod: PodBuilder) -> Explanation:
        return explain(self.engine, objects.pod(pod, incoming=True))

    def feasible(self, pod: PodBuilder) -> list[str]:
        """Names of the nodes that all filters let in."""
        return self.explain(pod).feasible

    def favourites(self, pod: PodBuilder, plugin: str) -> list[str]:
        """Names of the feasible nodes to which one plugin gives most; all if it is skipped."""
        answer = self.explain(pod)
        scores = answer.scores.get(plugin, dict.fromkeys(answer.feasible, 0))
        return [name for name in answer.feasible if scores[name] == max(scores.values())]

    def reasons(self, pod: PodBuilder, node_name: str) -> dict[str, list[str]]:
        """Plugin to reasons, for one node."""
        filters = self.explain(pod).filters
        return {plugin: by[node_name] for plugin, by in filters.items() if node_name in by}

    def place(self, pod: PodBuilder) -> str | None:
        """Decide, and bind the pod; None if it fits nowhere."""
        answer: Placement | Refusal = place(self.engine, objects.pod(pod, incoming=True))
        if isinstance(answer, Refusal):
            return None
        self.put(pod.on(answer.node_name))
        return answer.node_name


def nodes(**zones: str) -> list[NodeBuilder]:
    """Nodes by name in zones: `nodes(n1="a", n2="b")`, labelled `node` and `zone`."""
    return [node(name).label(node=name, zone=zone) for name, zone in zones.items()]
