"""Random histories: the engine's counters say what the reference finds by looking at everything.

Exploration (`make explore`) runs more of them, and longer ones.
"""

from contextlib import ExitStack
from typing import ClassVar
from unittest import TestCase
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, settings

from service.engine.state.nodes.counters import DirtyLog
from service.runtime import compiled_engine
from tests.engine.machine import EngineAgainstReference
from tests.seeds import EXPLORING, examples
from tests.strategies import DATA, DEFAULT_SPREAD, NODE_FEATURES, POD_FEATURES, VOLUMES

EXAMPLES = 8
"""The gate's are always the same, so more of them would find nothing new; exploration has others."""
EXAMPLES_ON_SOURCES = 3
SETTINGS = settings(
    stateful_step_count=50 if EXPLORING else 25,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


class ShortLog(DirtyLog):
    __slots__ = ()

    def __init__(self, limit: int = 2) -> None:
        super().__init__(min(limit, 2))


TINY = {
    "service.engine.state.nodes.node_table.DirtyLog": ShortLog,
    "service.engine.state.nodes.counters.DirtyLog": ShortLog,
    "service.engine.state.nodes.counters.REPAIRS_MAX": 1,
    "service.engine.state.nodes.counters.VIEWS_BYTES_MAX": 100,
    "service.engine.state.pods.compiler.IDLE_CLASSES_MAX": 1,
    "service.engine.cluster.ROW_CACHE_BYTES_MAX": 100,
}


class PodsMeetPods(EngineAgainstReference):
    features: ClassVar = tuple(each for each in POD_FEATURES if "spread" not in each)


class NamespacesChange(EngineAgainstReference):
    features: ClassVar = ("namespaces", "affinity", "anti-affinity", "preferred-affinity")


class NamespacesAreNotSelected(EngineAgainstReference):
    """With terms that have namespace selectors, in a cluster that has switched these off."""

    features: ClassVar = NamespacesChange.features
    config: ClassVar = {"features": {"PodAffinityNamespaceSelector": False}}


class NamespacesSpreadTogether(EngineAgainstReference):
    features: ClassVar = ("namespaces", "spread", "soft-spread")


class DaemonsLiveBesideOthers(EngineAgainstReference):
    """With rules among daemons of one and of two namespaces, and between them and others."""

    features: ClassVar = ("namespaces", "anti-affinity")
    config: ClassVar = {"daemonNamespaces": ["kube-system", "shop"]}


class PodsSpread(EngineAgainstReference):
    features: ClassVar = ("spread", "soft-spread", "node-affinity", "taints")


class PodsSpreadByDefault(EngineAgainstReference):
    """By the selectors of services and owners, which come, change and go."""

    features: ClassVar = (DEFAULT_SPREAD, "node-affinity", "taints")


class NodesTakePods(EngineAgainstReference):
    features: ClassVar = NODE_FEATURES


class VolumesHaveNodes(EngineAgainstReference):
    features: ClassVar = (VOLUMES, "resources")


class OnePodGoesAhead(EngineAgainstReference):
    """With controllers and without, whose first pod is exempt from a rule."""

    features: ClassVar = ("affinity", DEFAULT_SPREAD)


class DataHasNodes(EngineAgainstReference):
    features: ClassVar = (DATA, "node-preferences")


class RoomIsKept(EngineAgainstReference):
    """For pods that wait for it on nodes that are nominated for them."""

    features: ClassVar = ("resources", "ports", *POD_FEATURES)
    nominates = True


class EverythingMeets(EngineAgainstReference):
    features: ClassVar = POD_FEATURES + NODE_FEATURES


class Patched(EngineAgainstReference):
    """With other limits than small clusters ever meet."""

    limits: ClassVar[dict[str, object]] = {}

    def __init__(self) -> None:
        super().__init__()
        self.patches = ExitStack()
        for target, value in self.limits.items():
            self.patches.enter_context(patch(target, value))

    def teardown(self) -> None:
        self.patches.close()


class MemoryIsShort(Patched):
    """Logs that forget and caches that evict at once, as large clusters make them do."""

    limits: ClassVar = TINY


class KeysHaveManyDomains(Patched):
    """Every key is treated as one of many domains."""

    features: ClassVar = POD_FEATURES
    limits: ClassVar = {
        "service.engine.state.nodes.topology.FEW_DOMAINS": 0,
        "service.engine.ranking.affinity_ranks.PASSES_BEFORE_BUILD": 0,
        "service.engine.state.nodes.tree_layout.LEAF": 1,
    }


class VolumesAreMany(Patched):
    """Sets of nodes are kept by domains and for all nodes."""

    features: ClassVar = (VOLUMES, "spread", "affinity")
    limits: ClassVar = {
        "service.engine.state.nodes.node_sets.FEW_NODES": 0,
        "service.engine.state.nodes.node_sets.BYTES_MAX": 1_000,
        "service.engine.ranking.rank_cache.PASSES_BEFORE": 0,
        "service.engine.state.nodes.tree_layout.LEAF": 1,
    }


class ManyPodsAreAlike(Patched):
    """Nodes are looked for in trees from the first."""

    features: ClassVar = POD_FEATURES
    limits: ClassVar = {
        "service.engine.ranking.rank_cache.PASSES_BEFORE": 0,
        "service.engine.state.nodes.tree_layout.LEAF": 1,
    }


def case_of(machine: type[EngineAgainstReference], share: int = 1) -> type[TestCase]:
    """The tests of a machine, with one in `share` of the examples.

    Limits can be replaced only in the sources, so that patched machines run on these. The others run
    on what is shipped, and a few of their examples on the sources.
    """
    case = machine.TestCase
    count = EXAMPLES // share
    if issubclass(machine, Patched):
        case = pytest.mark.interpreted(case)
    elif not compiled_engine.is_in_use():
        count = min(count, EXAMPLES_ON_SOURCES)
    case.settings = settings(SETTINGS, max_examples=examples(count))
    return case


TestPodsMeetPods = case_of(PodsMeetPods)
TestNamespacesChange = case_of(NamespacesChange)
TestNamespacesAreNotSelected = case_of(NamespacesAreNotSelected, share=5)
TestDaemonsLiveBesideOthers = case_of(DaemonsLiveBesideOthers)
TestPodsSpread = case_of(PodsSpread)
TestNamespacesSpreadTogether = case_of(NamespacesSpreadTogether)
TestPodsSpreadByDefault = case_of(PodsSpreadByDefault)
TestNodesTakePods = case_of(NodesTakePods)
TestDataHasNodes = case_of(DataHasNodes, share=2)
TestOnePodGoesAhead = case_of(OnePodGoesAhead, share=2)
TestRoomIsKept = case_of(RoomIsKept)
TestEverythingMeets = case_of(EverythingMeets)
TestMemoryIsShort = case_of(MemoryIsShort)
TestKeysHaveManyDomains = case_of(KeysHaveManyDomains)
TestVolumesHaveNodes = case_of(VolumesHaveNodes)
TestVolumesAreMany = case_of(VolumesAreMany)
TestManyPodsAreAlike = case_of(ManyPodsAreAlike)
