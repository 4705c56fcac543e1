"""Matching of tolerations with taints, also for the interned taint sets of all nodes at once."""

from collections.abc import Iterable

import numpy as np

from service.engine.state.nodes.columns import Ints, Mask, Rows, at
from service.engine.state.nodes.node_table import NodeTable
from service.model.core.primitives import Taint
from service.model.pods.pod import Toleration

HARD_EFFECTS = frozenset(("NoSchedule", "NoExecute"))


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Return whether a toleration tolerates a taint, as Kubernetes' `ToleratesTaint` does.

    A toleration without an operator has the operator Equal.
    """
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    return toleration.operator == "Exists" or toleration.value == taint.value


def untolerated_hard(nodes: NodeTable, tolerations: Iterable[Toleration], rows: Rows) -> Mask:
    """Return the nodes with an untolerated NoSchedule or NoExecute taint, shape (rows,), bool."""
    tolerations = tuple(tolerations)
    table = np.zeros(len(nodes.taint_sets), dtype=np.bool_)
    for taints, index in nodes.taint_sets.items():
        table[index] = any(
            taint.effect in HARD_EFFECTS and not any(tolerates(t, taint) for t in tolerations)
            for taint in taints
        )
    return table.take(at(nodes.taint_set, rows))


def untolerated_soft(nodes: NodeTable, tolerations: Iterable[Toleration], rows: Rows) -> Ints:
    """Count each node's untolerated PreferNoSchedule taints, shape (rows,), int64."""
    soft = [
        toleration for toleration in tolerations if toleration.effect in ("", "PreferNoSchedule")
    ]
    table = np.zeros(len(nodes.taint_sets), dtype=np.int64)
    for taints, index in nodes.taint_sets.items():
        table[index] = sum(
            taint.effect == "PreferNoSchedule" and not any(tolerates(t, taint) for t in soft)
            for taint in taints
        )
    return table.take(at(nodes.taint_set, rows))
