"""The slow, obvious meaning of every scheduling rule, to hold the engine against.

Plain functions over plain manifests, written from the design documents and the notes beside the
conformance vectors. Nothing is counted ahead, nothing is shared with the service: each question is
answered by looking at every node and every pod again. Each plugin is one function from a `View` of
the cluster and a pod to the nodes that it rejects, and one to the scores of the feasible nodes.
"""

from tests.reference.admission import admit
from tests.reference.cluster import ReferenceCluster
from tests.reference.pipeline import evaluate
from tests.reference.preemption import evaluate_preemption
from tests.reference.view import View

__all__ = ["ReferenceCluster", "View", "admit", "evaluate", "evaluate_preemption"]
