"""Which cluster the running task works for, so that each line of the log can tell it."""

from contextvars import Context, ContextVar

CLUSTER: ContextVar[str] = ContextVar("cluster", default="")
"""The name of the cluster that the running task works for; empty if it is for none or for many."""


def context_of(cluster: str = "") -> Context:
    """Make the context of a task that works for a cluster, at nobody's request.

    A task that outlives the request which started it needs such a context: otherwise all lines that
    it logs would name that request.
    """
    context = Context()
    context.run(CLUSTER.set, cluster)
    return context
