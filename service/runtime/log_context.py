"""The cluster of the running task, which every log line names."""

from contextvars import Context, ContextVar

CLUSTER: ContextVar[str] = ContextVar("cluster", default="")
"""The name of the running task's cluster; empty if it has none or many."""


def context_of(cluster: str = "") -> Context:
    """Return the context of a background task that works for a cluster.

    A task that outlives the request that started it needs such a context: otherwise all its log
    lines would name that request.
    """
    context = Context()
    context.run(CLUSTER.set, cluster)
    return context
