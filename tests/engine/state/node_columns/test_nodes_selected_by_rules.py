"""The nodes that objects select: worked out again when their labels or the nodes change, and only then."""

from service.engine import Cluster
from service.model.core.primitives import LabelSelector
from tests.builders import HOST, NodeBuilder, node
from tests.engine import objects
from tests.seeds import chance

EVEN = LabelSelector(match_labels={"rack": "even"})
MANY = 40


def labelled(number: int, rack: str, cpu: str = "4") -> NodeBuilder:
    made = node(f"n{number}").label({HOST: f"n{number}"}, rack=rack)
    return made.allocatable(cpu=cpu, memory="8Gi", pods="10")


def put(cluster: Cluster, *nodes: NodeBuilder) -> None:
    for each in nodes:
        cluster.put_node(objects.node(each))


def selected(cluster: Cluster, selector: LabelSelector = EVEN) -> set[str]:
    mask = cluster.volumes.sets.of_selector(selector).mask
    return {name for name, slot in cluster.nodes.slots.items() if mask[slot]}


def test_a_set_of_few_nodes_is_kept_when_a_node_is_resized() -> None:
    cluster = Cluster()
    put(cluster, labelled(0, "even"), labelled(1, "odd"))
    before = cluster.volumes.sets.of_selector(EVEN)
    put(cluster, labelled(0, "even", cpu="9"))
    assert cluster.volumes.sets.of_selector(EVEN) is before


def test_a_set_follows_labels_and_nodes() -> None:
    cluster = Cluster()
    put(cluster, labelled(0, "even"), labelled(1, "odd"))
    assert selected(cluster) == {"n0"}
    mark = cluster.mark()
    put(cluster, labelled(1, "even"))
    assert selected(cluster) == {"n0", "n1"}
    put(cluster, labelled(2, "even"))
    cluster.delete_node("n0")
    assert selected(cluster) == {"n1", "n2"}
    cluster.undo(mark)
    assert selected(cluster) == {"n0"}


def test_sets_of_many_nodes_are_right_however_nodes_change() -> None:
    dice, cluster, racks = chance("node sets"), Cluster(), {}
    for step in range(200):
        number = step if step < 2 * MANY else dice.randrange(2 * MANY)
        if step >= 2 * MANY and dice.random() < 0.6:
            rack = racks.get(number, "even")
        else:
            rack = dice.choice(("even", "even", "odd", "lone"))
        racks[number] = rack
        put(cluster, labelled(number, rack, cpu=str(step + 1)))
        for each in ("even", "odd", "lone"):
            wanted = LabelSelector(match_labels={"rack": each})
            expected = {f"n{known}" for known, of in racks.items() if of == each}
            assert selected(cluster, wanted) == expected
