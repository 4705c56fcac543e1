"""The engine alone: parsed pods in, decisions out, each visible to the next. Nothing is stored."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter, process_time

from msgspec.structs import replace

from bench.figures import Figures, quantile
from bench.stack import peak_bytes
from bench.verify import broken, put
from bench.workloads import Workload
from service.engine import Cluster, Placement, place
from service.model.cluster.cluster_config import ClusterConfig
from service.model.pods.pod import Pod
from service.model.registry.manifests import TemplateCache, parse_pod
from service.server.worker import COLLECTION_THRESHOLDS


def loaded(workload: Workload, templates: TemplateCache, pods: int | None = None) -> Cluster:
    """Make the cluster as it is before the measured pods come."""
    cluster = Cluster(ClusterConfig())
    for each in workload.before(pods):
        put(cluster, each, templates)
    return cluster


def place_one(cluster: Cluster, pod: Pod) -> bool:
    """Place a pod and bind it; return whether it found a node."""
    answer = place(cluster, pod)
    if not isinstance(answer, Placement):
        return False
    cluster.put_pod(replace(pod, node_name=answer.node_name))
    return True


@contextmanager
def collecting_as_workers_do() -> Iterator[None]:
    """Set the garbage collector's thresholds as server processes do, until the context ends."""
    before = gc.get_threshold()
    gc.collect()
    gc.set_threshold(*COLLECTION_THRESHOLDS)
    try:
        yield
    finally:
        gc.set_threshold(*before)


def run(workload: Workload, pods: int | None = None) -> Figures:
    """Place the measured pods one after another, and bind each."""
    templates = TemplateCache()
    cluster = loaded(workload, templates, pods)
    asked = [parse_pod(each, templates, to_place=True).pod for each in workload.measured(pods)]
    unplaced, latencies = 0, []
    with collecting_as_workers_do():
        began, began_cpu = perf_counter(), process_time()
        last = began
        for pod in asked:
            unplaced += not place_one(cluster, pod)
            cluster.commit_until(cluster.mark())
            now = perf_counter()
            latencies.append(now - last)
            last = now
        seconds, cpu = last - began, process_time() - began_cpu
    megabytes = peak_bytes() / 1e6
    latencies.sort()
    return Figures(
        layer="engine",
        workload=workload.name,
        nodes=workload.size,
        pods=len(asked),
        unplaced=unplaced,
        violations=len(broken(cluster)),
        seconds=seconds,
        cpu_seconds=cpu,
        p50_ms=quantile(latencies, 0.5) * 1000,
        p99_ms=quantile(latencies, 0.99) * 1000,
        megabytes=megabytes,
    )
